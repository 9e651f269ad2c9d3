"""Episode: a rollout from reset to end as a record that exists whatever happens.

Who broke is in `boundary`; what happened before is kept.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, Protocol

from harness.desk import Tools
from harness.errors import EpisodeError, UsageError
from harness.loop import Limits, Rollout, Streams
from harness.protocols import Actor, Environment, Method
from harness.records import Episode, Usage


class CellLike(Protocol):
    """What the loop needs to know of a cell."""

    @property
    def key(self) -> str: ...
    @property
    def study(self) -> str: ...
    @property
    def method(self) -> str: ...
    @property
    def actor(self) -> str: ...
    @property
    def environment(self) -> str: ...
    @property
    def seed(self) -> int: ...
    @property
    def split(self) -> str: ...


def run_episode(
    *,
    environment: Environment,
    actor: Actor,
    method: Method,
    tools: Tools,
    cell: CellLike,
    task_id: str,
    limits: Limits,
    attempt: int = 1,
) -> Episode:
    """Run one episode to its end or its limit; failures become a record. Only `KeyboardInterrupt` passes through."""
    wall, began = time.time(), time.perf_counter()
    streams = Streams(environment.name, task_id, cell.seed)
    run = Rollout(environment, actor, method, tools, limits, streams)
    status, reason, boundary = "done", "the environment ended the episode", None
    try:
        run.play(task_id)
        if run.outcome is None or not run.outcome.done:
            status, reason = "truncated", f"step limit {limits.max_steps}"
    except EpisodeError as error:
        status, reason, boundary = error.status, error.reason, error.boundary
    except UsageError as error:
        status, reason, boundary = "failed", str(error), "harness"
    except Exception as error:  # noqa: BLE001  becomes the episode's record
        status, reason, boundary = "failed", f"{type(error).__name__}: {error}", "harness"
    finally:
        run.guard.close()
    fields: dict[str, Any] = {"status": status, "reason": reason, "boundary": boundary}
    return _record(run, cell, task_id, attempt, wall, time.perf_counter() - began, fields)


def _record(
    run: Rollout, cell: CellLike, task_id: str, attempt: int, wall: float, took: float, fields: Mapping[str, Any]
) -> Episode:
    scored = fields["status"] in ("done", "truncated")
    reward = run.outcome.reward if run.outcome is not None and scored else None
    state = run.state
    seconds, usage = _totals(run)
    return Episode(
        cell=cell.key,
        study=cell.study,
        method=cell.method,
        actor=cell.actor,
        environment=cell.environment,
        seed=cell.seed,
        split=cell.split,
        task_id=task_id,
        reward=reward,
        success=None if reward is None else bool(reward >= 1.0 - 1e-9),
        steps=tuple(run.steps),
        seconds=seconds,
        usage=usage,
        simulated=(*(("actor",) if run.actor.simulated else ()), *run.environment.simulated),
        task=state.task if state else "",
        final_observation=state.observation.text if state else "",
        info=dict(run.outcome.info) if run.outcome else {},
        attempt=attempt,
        started_at=wall,
        wall_s=took,
        **fields,
    )


def _totals(run: Rollout) -> tuple[dict[str, float], dict[str, Usage]]:
    seconds, usage = run.clock.take(), run._take_usage()
    for step in run.steps:
        for role, value in step.seconds.items():
            seconds[role] = seconds.get(role, 0.0) + value
        for role, spent in step.usage.items():
            usage[role] = usage.get(role, Usage()) + spent
    return seconds, usage
