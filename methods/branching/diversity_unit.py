"""One prefix of the diversity measurement: the actor asked n times, the candidate source once (paper section 4.5).

The prefix is restored by replay with every observation compared.  Samples differ in their seed alone; what an actor
keeps for a whole episode stays.  An action counts by its canonical form, and only when it could be executed there.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from harness.desk import ReviewDesk, Tools
from harness.errors import EpisodeError, IllegalAction
from harness.guard import CallTimeout, Guard
from harness.loop import Streams
from harness.protocols import Actor, CandidateSource, Environment, Mind
from harness.records import Action, Advice, DecisionState, Proposal, Usage
from harness.seeds import seed_of
from methods.branching.export import state_of
from methods.branching.restore import PrefixMismatch, walk
from methods.branching.rollouts import usage_json


@dataclass(frozen=True)
class Prefix:
    """A verified decision point: where it is, the state as JSON, and what the source actor did there."""

    key: str
    task_id: str
    trajectory: int
    seed: int
    step: int
    state: Mapping[str, Any] = field(repr=False)
    thoughts: tuple[str, ...] = field(default=(), repr=False)
    action: tuple[str, str] = ("", "")  # text and canonical form


@dataclass
class SampleBench:
    """What one worker samples with; `broken`: a call was abandoned inside, so nothing of it is used again."""

    environment: Environment
    actor: Actor
    source: CandidateSource
    samples: int
    k: int
    call_s: float | None = None
    broken: bool = False


def sample_unit(bench: SampleBench, prefix: Prefix) -> dict[str, Any]:
    """One record: canonical actions of the samples (None: no executable one) and of the candidates."""
    began = time.perf_counter()
    record: dict[str, Any] = {"key": prefix.key, "task_id": prefix.task_id, "step": prefix.step, "attempt": 1}
    record |= {"status": "done", "reason": "", "boundary": None, "samples": [], "candidates": []}
    usage: dict[str, Usage] = {}
    guard = Guard()
    try:
        state, streams = _restored(bench.environment, prefix)
        record["candidates"] = _candidates(bench, state, prefix, streams, usage)
        for number in range(bench.samples):
            record["samples"].append(_sample(bench, state, prefix, streams, number, guard, usage))
    except PrefixMismatch as error:
        record.update(status="skipped", reason=f"prefix not reproduced: {error}")
    except CallTimeout as error:
        bench.broken = True
        record.update(status="timeout", reason=str(error), boundary="actor")
    except EpisodeError as error:
        record.update(status="failed", reason=error.reason, boundary=error.boundary)
    finally:
        guard.close()
    return record | {"seconds": round(time.perf_counter() - began, 6), "usage": usage_json(usage)}


def _restored(environment: Environment, prefix: Prefix) -> tuple[DecisionState, Streams]:
    extra = (("trajectory", prefix.trajectory),) if prefix.trajectory else ()
    streams = Streams(environment.name, prefix.task_id, prefix.seed, extra)
    recorded = state_of(environment.name, prefix.task_id, prefix.state)
    (live,) = walk(environment, recorded, streams.seed_for("environment"), {prefix.step})
    return live, streams


def _sample(
    bench: SampleBench,
    state: DecisionState,
    prefix: Prefix,
    streams: Streams,
    number: int,
    guard: Guard,
    usage: dict[str, Usage],
) -> str | None:
    environment, actor = bench.environment, bench.actor
    mind = Mind(
        seed=seed_of(consumer="diversity", sample=number, seed=streams.seed_for("actor", state.step)),
        thoughts=prefix.thoughts,
        briefing=environment.briefing(),
        parse=environment.canonical,
        episode_seed=streams.seed_for("actor"),
        legal=environment.legal,
        oracle=environment.oracle() if actor.simulated else None,
    )
    try:
        proposal = guard.call(lambda: actor.propose(state, mind), bench.call_s)
    except IllegalAction:
        return None
    usage["actor"] = usage.get("actor", Usage()) + proposal.usage
    return proposal.action.canonical if environment.legal(proposal.action) else None


def _candidates(
    bench: SampleBench, state: DecisionState, prefix: Prefix, streams: Streams, usage: dict[str, Usage]
) -> list[str]:
    def nobody(_: Advice) -> Proposal:
        raise EpisodeError("harness", "a candidate source asked the actor while diversity was measured")

    desk = ReviewDesk(
        state=state,
        proposal=Proposal(Action(*prefix.action)),
        environment=bench.environment,
        tools=Tools(candidates=bench.source),
        seed=streams.seed_for("candidates", state.step),
        attempt=0,
        ask_actor=nobody,
        view=lambda: bench.environment.render(state),
    )
    drawn = [candidate.action.canonical for candidate in desk.candidates(bench.k)]
    if desk.usage.calls:
        usage["advisor"] = desk.usage
    return drawn
