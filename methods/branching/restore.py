"""Restoring a prefix exactly, and knowing that it is exact (paper appendix B.2).

`walk` resets the task and replays the executed actions; every observation on the way must be what was seen then, or
the prefix is not the same state and `PrefixMismatch` says where.  At a verified point a `Bookmark` is taken: the
environment's snapshot where it has one, otherwise the recipe for another replay.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace
from typing import Any

from harness.protocols import Environment
from harness.records import DecisionState, Observation, Turn

Same = Callable[[Observation, Observation], bool]


class PrefixMismatch(Exception):
    """The replayed prefix differs from the recorded one at `step` (0: the opening)."""

    def __init__(self, step: int, seen: str, recorded: str) -> None:
        super().__init__(f"after {step} actions the environment shows {seen[:80]!r} instead of {recorded[:80]!r}")
        self.step = step


def same_observation(seen: Observation, recorded: Observation) -> bool:
    """Equal in text, affordances and schemas."""
    return seen == recorded


def same_text(seen: Observation, recorded: Observation) -> bool:
    """Equal in text: for prefixes recorded without affordances (ledger episodes)."""
    return seen.text == recorded.text


def walk(
    environment: Environment, recorded: DecisionState, seed: int, stops: Collection[int], same: Same = same_observation
) -> Iterator[DecisionState]:
    """Replay `recorded` and yield the live state at each step in `stops`, in increasing order.

    Args:
        environment: is reset; between two yields the caller may use it only if it puts it back.
        recorded: task, opening and turns as they were.
        seed: the environment's seed of that episode.
        stops: numbers of executed actions at which to stop.
        same: what makes two observations equal.

    Raises:
        PrefixMismatch: at the first difference, or when the environment ends early.
    """
    task, opening = environment.reset(recorded.task_id, seed)
    if task != recorded.task or not same(opening, recorded.opening):
        raise PrefixMismatch(0, opening.text, recorded.opening.text)
    state = replace(recorded, opening=opening, turns=())
    last = max(stops, default=0)
    for step in range(last + 1):
        if step in stops:
            yield state
        if step == last:
            return
        turn = recorded.turns[step]
        outcome = environment.step(turn.action)
        if outcome.done or not same(outcome.observation, turn.observation):
            raise PrefixMismatch(step + 1, outcome.observation.text, turn.observation.text)
        state = replace(state, turns=(*state.turns, Turn(turn.action, outcome.observation)))


@dataclass(frozen=True, slots=True)
class Bookmark:
    """A verified point to come back to, as often as wanted; use on the environment instance it was made with."""

    state: DecisionState
    seed: int
    snapshot: Any = None
    has_snapshot: bool = False

    @classmethod
    def here(cls, environment: Environment, state: DecisionState, seed: int) -> Bookmark:
        """Mark the present state of `environment`, which the caller knows to be `state`."""
        try:
            return cls(state, seed, environment.snapshot(), True)
        except NotImplementedError:
            return cls(state, seed)

    def restore(self, environment: Environment) -> None:
        """Put the environment back. Raises `PrefixMismatch` when it has no snapshots and the replay differs."""
        if self.has_snapshot:
            environment.restore(self.snapshot)
            return
        for _ in walk(environment, self.state, self.seed, {self.state.step}):
            pass
