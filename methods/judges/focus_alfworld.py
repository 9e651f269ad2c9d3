"""Focused ALFWorld views: what was seen where, what is held, and how each command relates to the task's words.

Everything is read from task, executed commands and their answers, as the player saw them.  Entities are not named but
told by relation: `wanted` (its kind is a word of the task), `goal` (the place that the task names), `tool` (the
appliance that the task's treatment needs).  Marks say what is the case, never what is good.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache

from methods.candidates.conditions.alfworld import TYPES

_SEEN = re.compile(r"\b([a-z]+ \d+)\b")
_OBSERVED = "Observation: "
TOOLS = {"heat": "microwave", "cool": "fridge", "clean": "sinkbasin"}
START = "task: "


@dataclass
class World:
    """A view taken apart; `inside` holds for each place seen what lay there last, None while it was closed."""

    words: frozenset[str]
    need: str
    places: frozenset[str]
    here: str = ""
    held: str = ""
    treated: set[str] = field(default_factory=set)
    inside: dict[str, list[str] | None] = field(default_factory=dict)
    done: list[str] = field(default_factory=list)

    def wanted(self, thing: str) -> bool:
        """Whether the task names this kind of object."""
        return _kind(thing) in self.words and _kind(thing) not in {_kind(place) for place in self.places}

    def role(self, place: str) -> str:
        """How a place relates to the task."""
        if _kind(place) in self.words:
            return "goal"
        return "tool" if _kind(place) == TOOLS.get(self.need) else "plain"

    def known(self, place: str) -> str:
        """What the player has seen of a place."""
        if place not in self.inside:
            return "new"
        held = self.inside[place]
        if held is None:
            return "shut"
        return "wanted" if any(self.wanted(thing) for thing in held) else "bare"


def applies(view: str) -> bool:
    """Whether this is a view of ALFWorld."""
    return "\nAdmissible commands: " in view and view[:6].lower() == START


@lru_cache(maxsize=256)
def read(view: str) -> World:
    """Replay what a view tells."""
    lines = view.split("\n")
    task, opening = lines[0][len(START) :].lower(), lines[1].lower()
    words = re.findall(r"[a-z]+", task)
    need = next((name for name, pattern in TYPES if pattern.search(task)), "pick")
    places = frozenset(_SEEN.findall(opening))
    world = World(frozenset([*words, *(word[:-1] for word in words if word.endswith("s"))]), need, places)
    action = ""
    for line in lines[2:]:
        if line.startswith("Action: "):
            action = line[len("Action: ") :].lower()
        elif line.startswith(_OBSERVED) and action:
            _follow(world, action, line[len(_OBSERVED) :].lower())
            action = ""
    return world


def _follow(world: World, action: str, answer: str) -> None:
    world.done.append(action)
    names = _SEEN.findall(action)
    verb = action.split(" ")[0]
    if answer.startswith("nothing happens") or not names:
        return
    if verb == "go":
        world.here = names[0]
    if verb in ("go", "open", "examine") and names[0] in world.places:
        listed = answer.rpartition("you see")[2] if "you see" in answer else None
        if listed is not None:
            world.inside[names[0]] = _SEEN.findall(listed)
        elif "closed" in answer:
            world.inside.setdefault(names[0], None)
    elif verb == "take":
        world.held = names[0]
        lay = world.inside.get(names[-1]) or []
        world.inside[names[-1]] = [thing for thing in lay if thing != names[0]]
    elif verb in ("move", "put"):
        world.held = ""
        world.inside[names[-1]] = [*(world.inside.get(names[-1]) or []), names[0]]
    elif verb in TOOLS and verb == world.need:
        world.treated.add(names[0])


def focus_state(view: str) -> str:
    """The state in a line of closed words."""
    world = read(view)
    placed = sum(
        world.wanted(thing)
        for place, things in world.inside.items()
        if world.role(place) == "goal"
        for thing in things or ()
    )
    elsewhere = any(world.known(place) == "wanted" for place in world.inside if place != world.here)
    return (
        f"need {world.need} | hold {_thing(world, world.held)} | here {_where(world)} | put {min(placed, 2)}"
        f" | elsewhere {'wanted' if elsewhere else 'bare'} | step {min(len(world.done), 19)}"
    )


def focus_action(view: str, action: str) -> str:
    """A command in closed words: verb and relations."""
    world = read(view)
    names, verb = _SEEN.findall(action.lower()), action.lower().split(" ")[0]
    tried = min(world.done.count(action.lower()), 3)
    marks = [verb]
    if verb == "go" and names:
        marks += [world.role(names[0]), world.known(names[0]), f"with {_thing(world, world.held)}"]
        marks += ["leaving", *_where(world).split(" ")]
    elif verb in ("open", "close") and names:
        marks += [world.role(names[0]), f"with {_thing(world, world.held)}"]
    elif verb in ("take", "move") and len(names) > 1:
        marks += [_thing(world, names[0]), "from" if verb == "take" else "to", world.role(names[-1])]
    elif verb in TOOLS and names:
        marks += [_thing(world, names[0]), "needed" if verb == world.need else "unneeded"]
    elif verb == "use":
        marks += [f"with {_thing(world, world.held)}"]
    else:
        marks += ["at", *_where(world).split(" ")]
    return " ".join([*marks, *([f"tried {tried}"] if tried else [])])


def _where(world: World) -> str:
    return f"{world.role(world.here)} {world.known(world.here)}" if world.here else "nowhere"


def _thing(world: World, thing: str) -> str:
    if not thing:
        return "nothing"
    if not world.wanted(thing):
        return "other"
    ready = world.need not in TOOLS or thing in world.treated
    return "wanted ready" if ready else "wanted raw"


def _kind(name: str) -> str:
    return name.partition(" ")[0]
