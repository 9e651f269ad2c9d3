"""ALFWorld: states are alike when the task type, what is held and the kind of place agree.

Templates keep verbs and replace each numbered entity by a slot: where one stands, what one holds, an object of a kind
that the task names, or else any entity of the same kind.  Binding is matching: an admissible command of the present
state that makes the same template.
"""

from __future__ import annotations

import re
from random import Random

from harness.records import DecisionState
from methods.candidates.conditions import Unbindable

_ENTITY = re.compile(r"\b([a-z]+) (\d+)\b")
TYPES = (
    ("look", re.compile(r"\b(?:look at|examine)\b")),
    ("two", re.compile(r"\btwo\b")),
    ("clean", re.compile(r"\bclean\b")),
    ("heat", re.compile(r"\b(?:hot|heat)\b")),
    ("cool", re.compile(r"\b(?:cool|cold)\b")),
)


class AlfWorldCondition:
    """Task type, held object, kind of place."""

    def keys(self, state: DecisionState) -> tuple[str, ...]:
        task, (here, held) = task_type(state), situation(state)
        place = _kind(here) if here else "nowhere"
        holds = "nothing" if not held else "target" if _wanted(_kind(held), state) else "other"
        return f"{task}/{holds}/{place}", f"{task}/{holds}", holds

    def abstract(self, action: str, state: DecisionState) -> str:
        here, held = situation(state)

        def slot(match: re.Match[str]) -> str:
            name, kind = match.group(0), match.group(1)
            if name == here:
                return "{here}"
            if name == held:
                return "{held}"
            return "{wanted}" if _wanted(kind, state) else f"{{kind:{kind}}}"

        return _ENTITY.sub(slot, action.lower())

    def bind(self, template: str, state: DecisionState, chance: Random) -> str:
        here, held = situation(state)
        if "{here}" in template and not here:
            raise Unbindable("not at a place")
        if "{held}" in template and not held:
            raise Unbindable("nothing held")
        fitting = [text for text in state.observation.actions if self.abstract(text, state) == template]
        if not fitting:
            raise Unbindable("nothing here fits")
        return chance.choice(fitting)


def task_type(state: DecisionState) -> str:
    """look, two, clean, heat, cool or pick, from the words of the task."""
    goal = state.task.lower().rpartition("your task is to:")[2]
    return next((name for name, pattern in TYPES if pattern.search(goal)), "pick")


def situation(state: DecisionState) -> tuple[str, str]:
    """(where one stands, what one holds) as the executed prefix tells; empty when nowhere or nothing."""
    here = held = ""
    for turn in state.turns:
        if turn.observation.text.strip().lower().startswith("nothing happens"):
            continue
        verb, names = turn.action.text.split(" ")[0], [m.group(0) for m in _ENTITY.finditer(turn.action.text)]
        if verb == "go" and names:
            here = names[0]
        elif verb == "take" and names:
            held = names[0]
        elif verb in ("move", "put") and names:
            held = ""
    return here, held


def _kind(name: str) -> str:
    return name.partition(" ")[0]


def _wanted(kind: str, state: DecisionState) -> bool:
    """Whether the task names this kind (object or place)."""
    goal = state.task.lower().rpartition("your task is to:")[2]
    return bool(re.search(rf"\b{re.escape(kind)}s?\b", goal))
