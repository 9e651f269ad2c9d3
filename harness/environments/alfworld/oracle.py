"""Latent knowledge of a running game, for simulated actors and for the oracle judge of tests.

It knows where everything is, which no real player does: its expert walks the shortest way, and a value says by how
many steps an action brings the goal nearer or puts it off.  Mistakes are the ones that cost real players episodes:
the wrong receptacle, the wrong object, the wrong appliance, a thing put down too early, and steps that lead nowhere.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence

from harness.environments.alfworld.commands import normal, parts
from harness.environments.alfworld.plans import plan
from harness.environments.alfworld.world import DEVICE, MARK, Goal, Layout, Now, after
from harness.records import Action

MOST = 10  # mistakes at most
WON, NEARER, WASTED, BACK, FAR_BACK, ILLEGAL = 1.0, 0.9, 0.45, 0.25, 0.1, 0.02


class AlfWorldOracle:
    """`view` gives the present state and the admissible commands; everything else follows from them."""

    def __init__(self, layout: Layout, goal: Goal, view: Callable[[], tuple[Now, Sequence[str]]]) -> None:
        self._layout, self._goal, self._view = layout, goal, view
        self._plans: dict[tuple[object, ...], list[str] | None] = {}

    def expert(self) -> Action:
        """The first command of the shortest plan; `look` where there is none or the game is won."""
        now, _ = self._view()
        commands = self._plan(now)
        return _action(commands[0] if commands else "look")

    def mistakes(self) -> Sequence[Action]:
        """Admissible commands that do not bring the goal nearer, the harmful kinds first."""
        now, legal = self._view()
        chosen: list[str] = []
        for group, most in self._groups(now, legal):
            worse = [command for command in group if self._score(now, command) < NEARER]
            chosen += worse[:most]
        return [_action(command) for command in dict.fromkeys(chosen)][:MOST]

    def value(self, action: Action) -> float:
        """1 wins, 0.9 brings the goal a step nearer, 0.45 wastes a step, 0.25 and 0.1 undo work, 0.02 is impossible."""
        now, legal = self._view()
        command = normal(action.text)
        return self._score(now, command) if command in legal else ILLEGAL

    def reason(self, action: Action) -> str:
        """One short sentence, in the voice of a player who believes in the action."""
        now, _ = self._view()
        verb, first, second = parts(normal(action.text))
        thing, place = _noun(self._goal.thing), _noun(self._goal.place)
        holding = now.held is not None
        carried = f"I carry the {now.held}, so" if holding else f"I still need a {thing};"
        texts = {
            "go": f"{carried} I go to {first}.",
            "open": f"The {first} may hold what I need, so I open it.",
            "close": f"I am done with the {first} and close it.",
            "take": f"The {first} looks like what the task asks for, so I take it.",
            "move": f"The {second} is where the {first} should go.",
            "heat": f"The {first} has to be hot, so I heat it.",
            "cool": f"The {first} has to be cool, so I cool it.",
            "clean": f"The {first} has to be clean, so I clean it.",
            "use": f"I switch on the {first} to look at the {thing}.",
            "examine": f"A closer look at the {first} may help.",
            "look": "I look around to see where I am.",
            "inventory": "I check what I am carrying.",
            "slice": f"I cut the {first} with the {second}.",
        }
        return texts.get(verb, f"I think this helps with the {thing} and the {place}.")

    def _plan(self, now: Now) -> list[str] | None:
        key = (now.at, now.held, frozenset(now.inside.items()), now.opened, now.marks)
        if key not in self._plans:
            if len(self._plans) > 256:
                self._plans.clear()
            self._plans[key] = plan(self._layout, now, self._goal)
        return self._plans[key]

    def _score(self, now: Now, command: str) -> float:
        before = self._plan(now)
        then = self._plan(after(self._layout, now, command))
        if before is None or then is None:
            return WASTED if before is None else FAR_BACK
        if not then:
            return WON
        lost = len(then) - len(before)
        return NEARER if lost < 0 else WASTED if lost == 0 else BACK if lost == 1 else FAR_BACK

    def _groups(self, now: Now, legal: Sequence[str]) -> list[tuple[list[str], int]]:
        """Kinds of mistakes, each with the most to take of it."""
        by_verb: dict[str, list[str]] = {}
        for command in self._shuffled(now, legal):
            by_verb.setdefault(parts(command)[0], []).append(command)
        treatments = [c for verb in MARK for c in by_verb.get(verb, ())]
        wanders = sorted(by_verb.get("go", ()), key=lambda command: not self._tempting(now, command))
        return [
            (by_verb.get("move", []), 2),
            (by_verb.get("take", []), 2),
            (treatments, 2),
            (wanders, 3),
            (by_verb.get("use", []), 1),
            ([*by_verb.get("close", ()), *by_verb.get("open", ())], 1),
            (by_verb.get("examine", []), 1),
            (by_verb.get("look", []), 1),
            (by_verb.get("inventory", []), 1),
        ]

    def _tempting(self, now: Now, command: str) -> bool:
        """Whether a player could want to go there: it could hold the object, or it is the target or an appliance."""
        kind = self._layout.places[parts(command)[1]]
        if now.held is None:
            return (kind, self._goal.thing) in self._layout.fits
        return kind == self._goal.place or kind in DEVICE.values()

    def _shuffled(self, now: Now, legal: Sequence[str]) -> list[str]:
        """A fixed order that differs from place to place, so that not always the first drawer tempts."""

        def mixed(command: str) -> bytes:
            return hashlib.blake2b(f"{now.at}|{now.held}|{command}".encode(), digest_size=8).digest()

        return sorted(legal, key=mixed)


def _noun(kind: str) -> str:
    return kind.removesuffix("type")


def _action(command: str) -> Action:
    return Action(command, command)
