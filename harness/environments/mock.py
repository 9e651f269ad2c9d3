"""Mock environment: a corridor, for tests and for measuring the harness itself.

The task is to reach the end by taking `right` `length` times; `left` goes back.  Nothing is random, so two runs differ
only by what actors and methods do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from harness.errors import IllegalAction, UsageError, nearest
from harness.records import Action, DecisionState, Observation, Outcome
from harness.seeds import digest

MOVES = ("left", "right", "wait")


class MockOracle:
    """Knows the way: right."""

    def __init__(self, env: MockEnvironment) -> None:
        self.env = env

    def expert(self) -> Action:
        return Action("right", "right")

    def mistakes(self) -> Sequence[Action]:
        return [Action("left", "left"), Action("wait", "wait")]

    def value(self, action: Action) -> float:
        return {"right": 1.0, "wait": 0.4}.get(action.canonical, 0.1)

    def reason(self, action: Action) -> str:
        return f"I think {action.text} is the way."


class MockEnvironment:
    """Mock: walk a corridor to its right end."""

    name: ClassVar[str] = "mock"
    version: ClassVar[str] = "1"
    metric: ClassVar[str] = "success_rate"
    max_steps: ClassVar[int] = 20
    estimate: ClassVar[Mapping[str, float]] = {"seconds": 0.0001}
    simulated: tuple[str, ...] = ("environment",)

    def __init__(self, length: int = 5, size: int = 100) -> None:
        self.length = length
        self.size = size
        self._at = 0

    def tasks(self, split: str) -> Sequence[str]:
        if split not in ("train", "validation", "test"):
            raise UsageError(f"mock has no split {split!r}.{nearest(split, ('train', 'validation', 'test'))}")
        return [f"{split}-{i}" for i in range(self.size)]

    def fingerprint(self, task_id: str) -> str:
        return digest([self.version, self.length, task_id])

    def briefing(self) -> str:
        return "Walk to the right end of the corridor. Actions: left, right, wait."

    def reset(self, task_id: str, seed: int) -> tuple[str, Observation]:
        split, _, number = task_id.partition("-")
        if split not in ("train", "validation", "test") or not number.isdigit() or int(number) >= self.size:
            raise UsageError(f"mock has no task {task_id!r}. Valid: test-0 to test-{self.size - 1}.")
        self._at = 0
        return "Reach the right end.", self._look()

    def _look(self) -> Observation:
        return Observation(f"You stand at {self._at} of {self.length}.", MOVES)

    def step(self, action: Action) -> Outcome:
        if action.canonical == "right":
            self._at += 1
        elif action.canonical == "left":
            self._at = max(0, self._at - 1)
        done = self._at >= self.length
        return Outcome(self._look(), 1.0 if done else 0.0, done)

    def snapshot(self) -> int:
        return self._at

    def restore(self, snapshot: int) -> None:
        self._at = snapshot

    def canonical(self, text: str) -> Action:
        word = text.strip().lower()
        if not word or len(word) > 40:
            raise IllegalAction(f"{text[:40]!r} is no action here; take one of {', '.join(MOVES)}.")
        return Action(word, word)

    def legal(self, action: Action) -> bool:
        return action.canonical in MOVES

    def pool(self, state: DecisionState) -> Sequence[Action]:
        return [Action(move, move) for move in MOVES]

    def render(self, state: DecisionState) -> str:
        lines = [state.task, state.opening.text]
        lines += [f"> {turn.action.text}\n{turn.observation.text}" for turn in state.turns]
        return "\n".join(lines)

    def oracle(self) -> MockOracle:
        return MockOracle(self)

    def close(self) -> None:
        self._at = 0
