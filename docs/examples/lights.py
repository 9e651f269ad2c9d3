"""An environment in one file: a row of lights, some of them on; switch all of them off."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import ClassVar

from harness.errors import IllegalAction, UsageError, nearest
from harness.records import Action, DecisionState, Observation, Outcome
from harness.seeds import digest, stream

SPLITS = ("train", "validation", "test")
PRESS = re.compile(r"press (\d{1,3})")


class Lights:
    """Lights: press the switches of a row until every light is off."""

    name: ClassVar[str] = "lights"
    version: ClassVar[str] = "1"  # raise it when a change gives other outcomes: it is part of every cell's identity
    metric: ClassVar[str] = "success_rate"
    max_steps: ClassVar[int] = 12
    simulated: tuple[str, ...] = ()

    def __init__(self, count: int = 5, size: int = 40) -> None:
        self.count = count
        self.size = size
        self._on: tuple[bool, ...] = ()

    def tasks(self, split: str) -> Sequence[str]:
        """Ids in a fixed order; a task is addressed by its id and never by its position."""
        if split not in SPLITS:
            raise UsageError(f"lights has no split {split!r}.{nearest(split, SPLITS)}")
        return [f"{split}-{i}" for i in range(self.size)]

    def fingerprint(self, task_id: str) -> str:
        """Everything that decides the outcome of a task."""
        return digest([self.version, self._start(task_id)])

    def _start(self, task_id: str) -> tuple[bool, ...]:
        split, _, number = task_id.partition("-")
        if split not in SPLITS or task_id not in self.tasks(split):
            raise UsageError(f"lights has no task {task_id!r}. Valid: test-0 to test-{self.size - 1}.")
        draw = stream(part="lights", split=split, number=int(number), count=self.count)
        lights = [draw.random() < 0.5 for _ in range(self.count)]
        lights[draw.randrange(self.count)] = True  # never won at the start
        return tuple(lights)

    def briefing(self) -> str:
        """Rules and action format, the same for each task."""
        return 'Switch all lights off. Write "press N" to press the switch of light N; each action presses one switch.'

    def reset(self, task_id: str, seed: int) -> tuple[str, Observation]:
        """Start a task. Nothing is drawn while it runs, so the seed changes nothing."""
        self._on = self._start(task_id)
        return "Switch all lights off.", self._look()

    def _look(self) -> Observation:
        row = " ".join("on" if light else "off" for light in self._on)
        return Observation(f"Lights: {row}.", tuple(f"press {i + 1}" for i in range(self.count)))

    def step(self, action: Action) -> Outcome:
        """Press one switch; what is no switch changes nothing."""
        if self.legal(action) and any(self._on):
            at = int(action.canonical.removeprefix("press ")) - 1
            self._on = tuple(light != (i == at) for i, light in enumerate(self._on))
        won = not any(self._on)
        return Outcome(self._look(), float(won), won)

    def snapshot(self) -> tuple[bool, ...]:
        """The exact state; it is immutable, so this costs nothing."""
        return self._on

    def restore(self, snapshot: tuple[bool, ...]) -> None:
        """Back to a snapshot, as often as wanted."""
        self._on = snapshot

    def canonical(self, text: str) -> Action:
        """Parse one action; the message of `IllegalAction` is for the actor."""
        found = PRESS.fullmatch(" ".join(text[:100].lower().split()))
        if found is None:
            raise IllegalAction(f'{text[:40]!r} is no action here; write "press N".')
        plain = f"press {int(found[1])}"
        return Action(plain, plain)

    def legal(self, action: Action) -> bool:
        """Whether there is such a switch."""
        found = PRESS.fullmatch(action.canonical)
        return found is not None and 1 <= int(found[1]) <= self.count

    def pool(self, state: DecisionState) -> Sequence[Action]:
        """Concrete actions from which environment candidates are drawn; it knows nothing of what is good."""
        return [Action(text, text) for text in state.observation.actions]

    def render(self, state: DecisionState) -> str:
        """What a judge sees: task, steps so far, and last what changes most."""
        done = [f"{turn.action.text} -> {turn.observation.text}" for turn in state.turns]
        return "\n".join([f"Task: {state.task}", state.opening.text, *done, f"Now: {state.observation.text}"])

    def oracle(self) -> LightsOracle:
        """For simulated actors and oracle judges alone; an environment without one returns None."""
        return LightsOracle(self)

    def close(self) -> None:
        """Nothing to free."""


class LightsOracle:
    """Knows which switch to press."""

    def __init__(self, lights: Lights) -> None:
        self._lights = lights

    def expert(self) -> Action:
        """The first light that is on (any switch once all are off)."""
        on = self._lights.snapshot()
        text = f"press {on.index(True) + 1 if any(on) else 1}"
        return Action(text, text)

    def mistakes(self) -> Sequence[Action]:
        """Switching a dark one on."""
        dark = [i for i, light in enumerate(self._lights.snapshot()) if not light]
        actions = [Action(f"press {i + 1}", f"press {i + 1}") for i in dark]
        return [action for action in actions if action != self.expert()]

    def value(self, action: Action) -> float:
        """1 for a press that helps, less for one that does not."""
        on, found = self._lights.snapshot(), PRESS.fullmatch(action.canonical)
        at = int(found[1]) - 1 if found else -1
        return 1.0 if 0 <= at < len(on) and on[at] else 0.2

    def reason(self, action: Action) -> str:
        """What an actor could think."""
        return f"I think {action.text} is next."
