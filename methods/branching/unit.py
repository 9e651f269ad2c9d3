"""One unit of collection: a base trajectory of one task and all branches from its decision points, as one record.

1. The actor alone completes the task. 2. Points are chosen. 3. The prefix is replayed, every observation compared
with what was seen, alternatives are drawn and a bookmark taken at each point. 4. Every action is continued M times.
The base action goes last: its first observation must be the recorded one although all its siblings ran from the same
bookmark before it, so a snapshot that leaks between branches is caught as well.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from harness.desk import ReviewDesk, Tools
from harness.errors import EpisodeError
from harness.loop import Limits, Streams
from harness.protocols import Actor, CandidateSource, Environment
from harness.records import Action, Advice, DecisionState, Observation, Proposal, Usage
from methods.branching.points import choose_points
from methods.branching.restore import Bookmark, PrefixMismatch, walk
from methods.branching.rollouts import BranchStreams, Ending, base_trajectory, continuation, usage_json
from methods.branching.spec import FORMAT, CollectSpec


@dataclass
class Bench:
    """What one worker branches with: an environment, the frozen actor and the source of alternatives."""

    spec: CollectSpec
    environment: Environment
    actor: Actor
    source: CandidateSource
    limits: Limits
    broken: bool = False  # a call was abandoned inside the environment: make a new bench


@dataclass
class _Tally:
    seconds: dict[str, float] = field(default_factory=dict)
    dropped: Counter[str] = field(default_factory=Counter)
    rejected: Counter[str] = field(default_factory=Counter)
    usage: dict[str, dict[str, Usage]] = field(default_factory=dict)

    def time(self, phase: str, seconds: float) -> None:
        self.seconds[phase] = self.seconds.get(phase, 0.0) + seconds

    def spend(self, phase: str, ending: Ending) -> None:
        self.time(phase, ending.seconds)
        roles = self.usage.setdefault(phase, {})
        for role, spent in ending.usage.items():
            roles[role] = roles.get(role, Usage()) + spent


@dataclass(frozen=True)
class _Stop:
    """A verified decision point: where, what the actor did there, and what else could be done."""

    bookmark: Bookmark
    base: Action
    seen: Observation  # what the base action brought in the base trajectory
    alternatives: tuple[tuple[Action, str], ...]


def unit_key(task_id: str, trajectory: int) -> str:
    """The record's key."""
    return f"{task_id}#{trajectory}"


def collect_unit(bench: Bench, task_id: str, trajectory: int, attempt: int = 1) -> dict[str, Any]:
    """One record: JSON, complete, and the same for the same spec and task (its `seconds` and `attempt` aside).

    Failures of the actor, the simulator or the environment give a record with status "failed" and who broke.
    """
    extra = (("trajectory", trajectory),) if trajectory else ()
    streams = Streams(bench.environment.name, task_id, bench.spec.seed, extra)
    tally = _Tally()
    record: dict[str, Any] = {
        "key": unit_key(task_id, trajectory),
        "format": FORMAT,
        "task_id": task_id,
        "trajectory": trajectory,
        "attempt": attempt,
        "status": "done",
        "reason": "",
        "boundary": None,
        "points": [],
        "views": [],
        "chosen": 0,
    }
    try:
        record["fingerprint"] = bench.environment.fingerprint(task_id)
        _fill(bench, record, streams, tally)
    except EpisodeError as error:
        record.update(status="failed", reason=error.reason, boundary=error.boundary)
    record["seconds"] = {phase: round(value, 6) for phase, value in sorted(tally.seconds.items())}
    record["usage"] = {phase: usage_json(roles) for phase, roles in sorted(tally.usage.items())}
    record["dropped"] = dict(sorted(tally.dropped.items()))
    record["rejected"] = dict(sorted(tally.rejected.items()))
    return record


def _fill(bench: Bench, record: dict[str, Any], streams: Streams, tally: _Tally) -> None:
    state, thoughts, base = base_trajectory(bench.environment, bench.actor, bench.limits, streams, record["task_id"])
    tally.spend("base", base)
    _heed(bench, base)
    if state is None or base.status not in ("done", "truncated"):
        raise EpisodeError(base.boundary or "harness", base.reason, base.status)
    record.update(_trajectory_json(state, base), thoughts=list(thoughts))
    if base.reward is None:
        record.update(status="skipped", reason="the outcome cannot be scored here")
        return
    chosen = choose_points(state.step, streams.seed_for("points"), bench.spec.share, bench.spec.most_points)
    record["chosen"] = len(chosen)
    for stop in _verified_stops(bench, state, streams, chosen, record, tally):
        point = _branch(bench, stop, streams, thoughts[: stop.bookmark.state.step], tally)
        if point is not None:
            record["points"].append(point)


def _heed(bench: Bench, ending: Ending) -> None:
    if ending.abandoned:
        bench.broken = True
        raise EpisodeError(ending.boundary or "harness", ending.reason, ending.status)


def _verified_stops(
    bench: Bench, state: DecisionState, streams: Streams, chosen: Sequence[int], record: dict[str, Any], tally: _Tally
) -> list[_Stop]:
    began = time.perf_counter()
    stops: list[_Stop] = []
    seed = streams.seed_for("environment")
    try:
        for live in walk(bench.environment, state, seed, range(state.step)):
            record["views"].append(bench.environment.render(live))
            if live.step in chosen:
                turn = state.turns[live.step]
                alternatives = _alternatives(bench, live, turn.action, streams, tally)
                if alternatives:
                    mark = Bookmark.here(bench.environment, live, seed)
                    stops.append(_Stop(mark, turn.action, turn.observation, alternatives))
                else:
                    tally.dropped["no alternative"] += 1
    except PrefixMismatch as error:
        tally.dropped["prefix not reproduced"] += sum(step >= error.step for step in chosen)
    tally.time("verify", time.perf_counter() - began)
    return stops


def _alternatives(
    bench: Bench, state: DecisionState, base: Action, streams: Streams, tally: _Tally
) -> tuple[tuple[Action, str], ...]:
    def nobody(_: Advice) -> Proposal:
        raise EpisodeError("harness", "a candidate source asked the actor while branches were collected")

    desk = ReviewDesk(
        state=state,
        proposal=Proposal(base),
        environment=bench.environment,
        tools=Tools(candidates=bench.source),
        seed=streams.seed_for("alternatives", state.step),
        attempt=0,
        ask_actor=nobody,
        view=lambda: bench.environment.render(state),
    )
    drawn = desk.candidates(bench.spec.alternatives)
    if desk.usage.calls:
        roles = tally.usage.setdefault("alternatives", {})
        roles["advisor"] = roles.get("advisor", Usage()) + desk.usage
    return tuple((candidate.action, candidate.source) for candidate in drawn)


def _branch(
    bench: Bench, stop: _Stop, streams: Streams, thoughts: tuple[str, ...], tally: _Tally
) -> dict[str, Any] | None:
    actions = [*stop.alternatives, (stop.base, "base")]
    endings: dict[str, list[Ending]] = {action.canonical: [] for action, _ in actions}
    for m in range(bench.spec.continuations):
        named = BranchStreams(streams.environment, streams.task_id, streams.seed, streams.extra, m)
        for action, _ in actions:
            ending = continuation(bench.environment, bench.actor, bench.limits, named, stop.bookmark, thoughts, action)
            tally.spend("branch", ending)
            _heed(bench, ending)
            endings[action.canonical].append(ending)
        if endings[stop.base.canonical][-1].first != stop.seen:
            tally.dropped["base action not reproduced"] += 1
            return None
    rows = [_row(action, source, endings[action.canonical]) for action, source in (actions[-1], *actions[:-1])]
    for row in rows:
        tally.dropped["branches without a score"] += not row["returns"]
    return {"step": stop.bookmark.state.step, "branches": rows}


def _row(action: Action, source: str, endings: Sequence[Ending]) -> dict[str, Any]:
    scored = [ending for ending in endings if ending.reward is not None]
    return {
        "action": action.text,
        "canonical": action.canonical,
        "source": source,
        "base": source == "base",
        "returns": [ending.reward for ending in scored],
        "lengths": [ending.steps for ending in scored],
        "statuses": [ending.status for ending in endings],
    }


def _observation_json(observation: Observation) -> list[Any]:
    return [observation.text, list(observation.actions), list(observation.schemas)]


def _trajectory_json(state: DecisionState, base: Ending) -> Mapping[str, Any]:
    return {
        "task": state.task,
        "opening": _observation_json(state.opening),
        "turns": [[t.action.text, t.action.canonical, _observation_json(t.observation)] for t in state.turns],
        "base": {"status": base.status, "reward": base.reward, "steps": base.steps},
    }
