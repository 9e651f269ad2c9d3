"""Generated games: the embedded data of this environment.

A game is drawn from its number alone: room, receptacles, objects, goal, wording.  All six task types of the official
games take turns.  Splits are disjoint by construction, by what a player sees first: the room's receptacles (how many
of each type) are hashed, and the hash says to which split such a room belongs; a draw that belongs elsewhere is
thrown away.  So no room of a test game, whatever it holds, was ever a room of a training game: the official
"unseen" setting.  The goal is never true at the start, and everything it needs is there.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass

from harness.environments.alfworld import package
from harness.environments.alfworld.rooms import (
    LAMP,
    LAMP_PLACES,
    RECEPTACLE_OBJECTS,
    ROOMS,
    Place,
    coordinates,
    counts,
    furnish,
    things,
)
from harness.seeds import digest, stream

KINDS: Mapping[str, str] = {
    "pick": "pick_and_place_simple",
    "look": "look_at_obj_in_light",
    "clean": "pick_clean_then_place_in_recep",
    "heat": "pick_heat_then_place_in_recep",
    "cool": "pick_cool_then_place_in_recep",
    "two": "pick_two_obj_and_place",
}
WHERE: Mapping[str, tuple[str, ...]] = {
    "pick": ("kitchen", "livingroom", "bedroom", "bathroom"),
    "look": ("bedroom", "livingroom"),
    "clean": ("kitchen", "kitchen", "bathroom"),
    "heat": ("kitchen",),
    "cool": ("kitchen",),
    "two": ("kitchen", "livingroom", "bedroom", "bathroom"),
}
TREATMENT: Mapping[str, tuple[str, str]] = {
    "clean": ("Cleanable", "SinkBasin"),
    "heat": ("Heatable", "Microwave"),
    "cool": ("Coolable", "Fridge"),
}
SHARES: Mapping[str, tuple[int, ...]] = {"test": (0, 1), "validation": (2,), "train": (3, 4, 5, 6, 7, 8, 9)}
_FIXED_TYPES = ("SinkType", "SinkBasinType", "MicrowaveType", "FridgeType")  # the domain names them
_FIXED_KINDS = ("KnifeType", "ButterKnifeType")


@dataclass(frozen=True, slots=True)
class Drawn:
    """A drawn game: its PDDL problem, task sentence and goal."""

    problem: str
    sentence: str
    kind: str
    thing: str
    place: str
    room: str


@dataclass(frozen=True, slots=True)
class _Object:
    kind: str
    ident: str
    place: Place


def draw(seed: int, split: str, number: int) -> Drawn:
    """Game `number` of a split; the same arguments give the same game everywhere."""
    short = list(KINDS)[number % len(KINDS)]
    rng = stream(use="alfworld game", seed=seed, split=split, number=number)
    while True:
        kind = rng.choice(WHERE[short])
        numbers = counts(ROOMS[kind], rng)
        if int(digest(numbers)[:8], 16) % 10 not in SHARES[split]:
            continue
        places = furnish(numbers, rng)
        amounts = things(ROOMS[kind], places, rng)
        goal = _goal(short, places, amounts, rng)
        if goal is not None:
            thing, place = goal
            if short == "two":
                amounts[thing] = max(2, amounts[thing])
            objects = _place_all(short, thing, place, amounts, places, rng)
            problem = _problem(KINDS[short], f"{split}_{number:04d}", places, objects, thing, place, rng)
            sentence = rng.choice(package.sentences(KINDS[short], thing, place))
            return Drawn(problem, sentence, KINDS[short], thing, place, kind)


def _goal(short: str, places: list[Place], amounts: Mapping[str, int], rng: random.Random) -> tuple[str, str] | None:
    """Object type and target type (the lamp's for `look`), or None when this room allows none."""
    present = sorted({place.kind for place in places})
    if short == "look":
        lamp = any(kind in LAMP_PLACES for kind in present)
        return (rng.choice(sorted(amounts)), LAMP) if lamp else None
    able, device = TREATMENT.get(short, ("", ""))
    options: dict[str, list[str]] = {}
    for thing in sorted(amounts):
        homes = [kind for kind in present if thing in package.holds()[kind]]
        if able and thing not in package.able(able):
            continue
        targets = [kind for kind in homes if kind != device and len(homes) > 1]
        if targets:
            options[thing] = targets
    if not options:
        return None
    thing = rng.choice(sorted(options))
    return thing, rng.choice(options[thing])


def _place_all(
    short: str, thing: str, target: str, amounts: Mapping[str, int], places: list[Place], rng: random.Random
) -> list[_Object]:
    """Spread the objects; those of the goal's type start outside the receptacles of the goal's type."""
    objects = []
    for kind, amount in amounts.items():
        homes = [p for p in places if kind in package.holds()[p.kind] and not (kind == thing and p.kind == target)]
        for _ in range(amount if homes else 0):
            objects.append(_Object(kind, f"{kind}_bar_{coordinates(rng)}", rng.choice(homes)))
    if short == "look":
        homes = [place for place in places if place.kind in LAMP_PLACES]
        objects.append(_Object(LAMP, f"{LAMP}_bar_{coordinates(rng)}", rng.choice(homes)))
    return objects


def _spots(places: list[Place], rng: random.Random) -> dict[int, str]:
    """A location id for each spot; spot 0 is where the agent starts, away from all receptacles."""
    grid = rng.sample([(x, z) for x in range(-12, 13) for z in range(-12, 13)], max(p.spot for p in places) + 1)

    def part(value: int) -> str:
        return f"_minus_{-value}" if value < 0 else str(value)

    turns = [(rng.randrange(4), rng.choice((0, 15, 30, 45, 60))) for _ in grid]
    spots = zip(grid, turns, strict=True)
    return {i: f"loc_bar_{part(x)}_bar_{part(z)}_bar_{r}_bar_{h}" for i, ((x, z), (r, h)) in enumerate(spots)}


def _problem(
    kind: str, name: str, places: list[Place], objects: list[_Object], thing: str, target: str, rng: random.Random
) -> str:
    """The PDDL problem, laid out as the official ones are."""
    spots = _spots(places, rng)
    place_kinds = sorted({place.kind for place in places})
    object_kinds = sorted({item.kind for item in objects})
    declared = ["agent1 - agent"]
    declared += [f"{item.ident} - object" for item in objects]
    declared += [f"{place.ident} - receptacle" for place in places]
    declared += [f"{spot} - location" for spot in spots.values()]
    declared += [f"{k} - rtype" for k in sorted({f"{k}Type" for k in place_kinds} | set(_FIXED_TYPES))]
    declared += [f"{k} - otype" for k in sorted({f"{k}Type" for k in object_kinds} | set(_FIXED_KINDS))]
    facts = [f"receptacleType {p.ident} {p.kind}Type" for p in places]
    facts += [f"receptacleAtLocation {p.ident} {spots[p.spot]}" for p in places]
    facts += [f"openable {p.ident}" for p in places if p.kind in package.openable()]
    facts += [f"canContain {p}Type {o}Type" for p in place_kinds for o in object_kinds if o in package.holds()[p]]
    facts.append(f"atLocation agent1 {spots[0]}")
    for item in objects:
        facts += _object_facts(item, spots[item.place.spot])
    lines = [f"(define (problem {name})", "(:domain alfred)", "(:objects", *(f"        {d}" for d in declared), ")"]
    lines += ["(:init", *(f"        ({fact})" for fact in facts), ")", package.goal(kind, thing, target)]
    return "\n".join(lines)


def _object_facts(item: _Object, spot: str) -> list[str]:
    facts = [f"objectType {item.ident} {item.kind}Type", f"objectAtLocation {item.ident} {spot}"]
    facts.append(f"inReceptacle {item.ident} {item.place.ident}")
    facts.append(f"toggleable {item.ident}" if item.kind in package.able("Toggleable") else f"pickupable {item.ident}")
    for what, predicate in (
        ("Cleanable", "cleanable"),
        ("Heatable", "heatable"),
        ("Coolable", "coolable"),
        ("Sliceable", "sliceable"),
    ):
        if item.kind in package.able(what):
            facts.append(f"{predicate} {item.ident}")
    if item.kind in RECEPTACLE_OBJECTS:
        facts.append(f"isReceptacleObject {item.ident}")
    return facts
