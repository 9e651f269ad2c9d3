"""The true state of a game in plain words, for the oracle: what is where, and what an action would change.

`Layout` holds what never changes in a game, `Now` what does.  Both use the names that commands use ("mug 2").  `after`
repeats the effects of the domain's actions; the tests compare it with the engine, step by step.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from harness.environments.alfworld.commands import parts

Fact = tuple[str, tuple[str, ...]]
Kind = Literal["pick", "clean", "heat", "cool", "two", "look"]
CHANGING = frozenset(
    {"atlocation", "holds", "inreceptacle", "opened", "isclean", "ishot", "iscool", "istoggled", "issliced"}
)
LASTING = frozenset(
    {
        "receptacletype",
        "receptacleatlocation",
        "openable",
        "objecttype",
        "pickupable",
        "cleanable",
        "heatable",
        "coolable",
        "toggleable",
        "cancontain",
    }
)
MARK: Mapping[str, str] = {"clean": "isclean", "heat": "ishot", "cool": "iscool"}
ABLE: Mapping[str, str] = {"clean": "cleanable", "heat": "heatable", "cool": "coolable"}
DEVICE: Mapping[str, str] = {"clean": "sinkbasintype", "heat": "microwavetype", "cool": "fridgetype"}


@dataclass(frozen=True, slots=True)
class Goal:
    """What wins: `thing` and `place` are types in lower case ("mugtype"); for `look`, `place` is the lamp's type."""

    kind: Kind
    thing: str
    place: str


def goal_of(text: str) -> Goal | None:
    """The goal of a problem's `(:goal ...)`, or None for a kind that the six task types do not cover."""
    line = " ".join(text.lower().split())
    if "issliced" in line or "inreceptacleobject" in line:
        return None
    types = dict(re.findall(r"\(objecttype (\?\w+) (\w+)\)", line))
    toggled = re.search(r"\(istoggled (\?\w+)\)", line)
    if toggled is not None:
        held = [kind for name, kind in types.items() if name != toggled[1]]
        lamp = types.get(toggled[1])
        return Goal("look", held[0], lamp) if lamp and len(held) == 1 else None
    place = re.search(r"\(receptacletype \?\w+ (\w+)\)", line)
    if place is None or len(set(types.values())) != 1:
        return None
    thing = next(iter(types.values()))
    if len(types) == 2:
        return Goal("two", thing, place[1])
    marks: tuple[Kind, ...] = ("clean", "heat", "cool")
    wanted: list[Kind] = [kind for kind in marks if MARK[kind] in line]
    return Goal(wanted[0] if wanted else "pick", thing, place[1]) if len(types) == 1 and len(wanted) < 2 else None


@dataclass(frozen=True, slots=True)
class Layout:
    """Receptacles (`places`) and objects (`things`) by type, spots, and what each can be or do."""

    places: Mapping[str, str]
    spots: Mapping[str, str]
    things: Mapping[str, str]
    openable: frozenset[str]
    able: Mapping[str, frozenset[str]]
    fits: frozenset[tuple[str, str]]

    def holds(self, place: str, thing: str) -> bool:
        """Whether a receptacle takes an object of this type."""
        return (self.places[place], self.things[thing]) in self.fits

    def of(self, kind: str) -> list[str]:
        """Receptacles of a type, sorted."""
        return sorted(place for place, found in self.places.items() if found == kind)


@dataclass(frozen=True, slots=True)
class Now:
    """Where the agent is, what it holds, where things are, what is open, and marks such as ("ishot", "mug 1").

    A thing can be in several receptacles: in half of the official games a pan covers two burners, or a mug stands in
    the coffee machine and so on the countertop.  Taking it out of one leaves it in the other, also while it is held.
    """

    at: str
    held: str | None
    inside: Mapping[str, frozenset[str]]
    opened: frozenset[str]
    marks: frozenset[tuple[str, str]]


def layout_of(facts: Iterable[Fact], names: Mapping[str, str]) -> Layout:
    """From the engine's lasting facts and its display names."""
    groups: dict[str, list[tuple[str, ...]]] = {name: [] for name in LASTING}
    for name, arguments in facts:
        if name in groups:
            groups[name].append(arguments)

    def shown(name: str) -> frozenset[str]:
        return frozenset(names[row[0]] for row in groups[name])

    return Layout(
        places={names[place]: kind for place, kind in groups["receptacletype"]},
        spots={names[place]: spot for place, spot in groups["receptacleatlocation"]},
        things={names[thing]: kind for thing, kind in groups["objecttype"]},
        openable=shown("openable"),
        able={name: shown(name) for name in ("pickupable", "cleanable", "heatable", "coolable", "toggleable")},
        fits=frozenset((place, thing) for place, thing in groups["cancontain"]),
    )


def now_of(facts: Iterable[Fact], names: Mapping[str, str]) -> Now:
    """From the engine's changing facts and its display names."""
    at, held = "", None
    inside: dict[str, frozenset[str]] = {}
    opened, marks = set(), set()
    for name, arguments in sorted(facts):
        if name == "atlocation":
            at = arguments[1]
        elif name == "holds":
            held = names[arguments[1]]
        elif name == "inreceptacle":
            thing, place = names[arguments[0]], names[arguments[1]]
            inside[thing] = inside.get(thing, frozenset()) | {place}
        elif name == "opened":
            opened.add(names[arguments[0]])
        elif name in CHANGING:
            marks.add((name, names[arguments[0]]))
    return Now(at, held, inside, frozenset(opened), frozenset(marks))


def after(layout: Layout, now: Now, command: str) -> Now:
    """The state after an admissible command."""
    verb, first, second = parts(command)
    if verb == "go":
        return replace(now, at=layout.spots[first])
    if verb == "open":
        return replace(now, opened=now.opened | {first})
    if verb == "close":
        return replace(now, opened=now.opened - {first})
    if verb == "take":
        return replace(now, held=first, inside=_inside(now, first, now.inside[first] - {second}))
    if verb == "move":
        return replace(now, held=None, inside=_inside(now, first, now.inside.get(first, frozenset()) | {second}))
    if verb == "use":
        return replace(now, marks=now.marks | {("istoggled", first)})
    if verb == "slice":
        return replace(now, marks=now.marks | {("issliced", first)})
    if verb in MARK:
        undone = {("iscool", first)} if verb == "heat" else {("ishot", first)} if verb == "cool" else set()
        return replace(now, marks=(now.marks - undone) | {(MARK[verb], first)})
    return now


def _inside(now: Now, thing: str, places: frozenset[str]) -> dict[str, frozenset[str]]:
    others = {name: where for name, where in now.inside.items() if name != thing}
    return {**others, thing: places} if places else others
