"""Rollouts for branching: a base trajectory of the frozen actor, and continuations from a restored prefix.

Both run through `harness.loop.Rollout` with the method `origin`, the very loop that evaluates; a continuation differs
from an episode only in where it starts and in its first action.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from harness.desk import Tools
from harness.errors import EpisodeError
from harness.loop import Limits, Rollout, Streams
from harness.protocols import Actor, Environment
from harness.records import Action, DecisionState, Observation, Role, Status, Usage
from methods.branching.restore import Bookmark
from methods.origin import Origin


@dataclass(frozen=True, slots=True)
class BranchStreams(Streams):
    """Streams of continuation m of one prefix: siblings share them, so branch differences are paired.

    What an actor keeps for a whole episode (its stream without a step) stays that of the base trajectory: the branch
    goes on with the same mind, only its later draws are new.  No continuation proposes at step 0, whose action is the
    earliest that can be forced, so a seed asked for step 0 is the episode's.
    """

    continuation: int = 0

    def seed_for(self, role: str, step: int = 0, attempt: int = 0) -> int:
        """The seed of one draw of one consumer."""
        base = Streams(self.environment, self.task_id, self.seed, self.extra)
        if step == 0 and attempt == 0:
            return base.seed_for(role)
        named = (*self.extra, ("continuation", self.continuation))
        return Streams(self.environment, self.task_id, self.seed, named).seed_for(role, step, attempt)


@dataclass(frozen=True, slots=True)
class Ending:
    """How a rollout ended. `reward` None: no score (failed, or not scorable here); `steps`: actions it executed."""

    status: Status
    reason: str
    boundary: Role | None
    reward: float | None
    steps: int
    seconds: float
    usage: Mapping[str, Usage] = field(default_factory=dict)
    first: Observation | None = None  # what the first action brought

    @property
    def abandoned(self) -> bool:
        """A call was given up while it may still be using the environment, which must not be used again."""
        return self.status == "timeout"


def start(environment: Environment, actor: Actor, limits: Limits, streams: Streams) -> Rollout:
    """A rollout of the actor alone."""
    return Rollout(environment, actor, Origin(), Tools(), limits, streams)


def finish(run: Rollout, forced: Action | None = None) -> Ending:
    """Run to the end; trouble becomes the ending's status, as in `run_episode`."""
    began, reason, boundary = time.perf_counter(), "", None
    status: Status = "done"
    try:
        if forced is not None:
            run.advance(forced)
        while not run.over:
            run.advance()
        if run.outcome is None or not run.outcome.done:
            status, reason = "truncated", f"step limit {run.limits.max_steps}"
    except EpisodeError as error:
        status, reason, boundary = error.status, error.reason, error.boundary
    finally:
        run.guard.close()
    scored = status in ("done", "truncated") and run.outcome is not None
    usage: dict[str, Usage] = {}
    for step in run.steps:
        for role, spent in step.usage.items():
            usage[role] = usage.get(role, Usage()) + spent
    return Ending(
        status,
        reason,
        boundary,
        run.outcome.reward if scored and run.outcome is not None else None,
        len(run.steps),
        time.perf_counter() - began,
        usage,
        _first(run),
    )


def _first(run: Rollout) -> Observation | None:
    if run.state is None or not run.steps:
        return None
    return run.state.turns[run.steps[0].index].observation


def base_trajectory(
    environment: Environment, actor: Actor, limits: Limits, streams: Streams, task_id: str
) -> tuple[DecisionState | None, tuple[str, ...], Ending]:
    """The actor alone from the start of a task: (final state, thoughts, ending)."""
    run = start(environment, actor, limits, streams)
    began = time.perf_counter()
    try:
        run.begin(task_id)
    except EpisodeError as error:
        run.guard.close()
        return None, (), Ending(error.status, error.reason, error.boundary, None, 0, time.perf_counter() - began)
    ending = finish(run)
    return run.state, run.thoughts, ending


def continuation(
    environment: Environment,
    actor: Actor,
    limits: Limits,
    streams: BranchStreams,
    bookmark: Bookmark,
    thoughts: tuple[str, ...],
    action: Action,
) -> Ending:
    """Restore, take `action`, and let the actor go on with the remaining step budget.

    The branch action carries no thought, the base action's neither: siblings differ in the action alone.
    """
    began = time.perf_counter()
    bookmark.restore(environment)
    run = start(environment, actor, limits, streams)
    run.at(bookmark.state, thoughts)
    ending = finish(run, action)
    return replace(ending, seconds=time.perf_counter() - began)


def usage_json(usage: Mapping[str, Usage]) -> dict[str, dict[str, Any]]:
    """Usage by role as JSON."""
    return {role: asdict(spent) for role, spent in sorted(usage.items())}
