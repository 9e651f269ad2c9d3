"""Audit units: which reviews of a ledger's episodes are audited, and their branches.

For a sampled review the prefix is rebuilt by replay (every observation compared), and the original proposal, all
candidates, the advice and what came after it are continued M times by the same actor alone, with shared streams.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from harness.errors import EpisodeError
from harness.loop import Limits, Streams
from harness.protocols import Actor, Environment
from harness.records import Action, DecisionState, Episode, Observation, Turn
from harness.seeds import seed_of
from methods.branching.restore import Bookmark, PrefixMismatch, same_text, walk
from methods.branching.rollouts import BranchStreams, Ending, continuation


@dataclass(frozen=True, slots=True)
class Ref:
    """Where one review is, small enough to hold a whole ledger of them."""

    cell: str
    task_id: str
    step: int
    review: int
    fired: bool


@dataclass(frozen=True, slots=True)
class Target:
    """One review: what was compared and what came of it."""

    ref: Ref
    proposal: Action
    candidates: tuple[Action, ...]
    advice: Action | None
    after: Action | None
    response: str | None

    def actions(self) -> list[Action]:
        """Distinct actions to branch, the proposal first."""
        every = [self.proposal, *self.candidates, self.advice, self.after]
        return list({action.canonical: action for action in every if action is not None}.values())


def refs(episode: Episode) -> list[Ref]:
    """Reviews of an episode that can be audited: it has a score, and the review had candidates."""
    if episode.status not in ("done", "truncated") or episode.reward is None:
        return []
    return [
        Ref(episode.cell, episode.task_id, step.index, index, review.fired)
        for step in episode.steps
        for index, review in enumerate(step.reviews)
        if review.candidates
    ]


def target(episode: Episode, ref: Ref) -> Target:
    """The review that `ref` points at."""
    step = episode.steps[ref.step]
    review = step.reviews[ref.review]
    advice = review.recommended[0] if review.fired and review.recommended else None
    # At the replan limit the gate fired but nobody was asked: the proposal went through, and there is no "after".
    answered = advice is not None and "replan_limit" not in review.fail_open
    later = ref.review + 1
    following = step.reviews[later].proposal if later < len(step.reviews) else step.executed
    candidates = tuple(candidate.action for candidate in review.candidates)
    return Target(ref, review.proposal, candidates, advice, following if answered else None, review.response)


def sample(every: Sequence[Ref], fired: int, quiet: int, seed: int) -> tuple[list[Ref], dict[bool, float]]:
    """Up to so many fired and quiet reviews, chosen by hash, and how many reviews one of each kind stands for."""
    chosen: list[Ref] = []
    weights: dict[bool, float] = {}
    for kind, most in ((True, fired), (False, quiet)):
        mine = [ref for ref in every if ref.fired is kind]
        mine.sort(key=lambda r: seed_of(seed=seed, cell=r.cell, task=r.task_id, step=r.step, review=r.review))
        chosen += mine[:most]
        weights[kind] = len(mine) / min(most, len(mine)) if mine and most else 0.0
    return chosen, weights


@dataclass
class AuditBench:
    """What one worker audits with; `broken`: the environment must not be used again."""

    environment: Environment
    actor: Actor
    limits: Limits
    continuations: int
    broken: bool = False


def audit_unit(bench: AuditBench, episode: Episode, wanted: Sequence[Ref]) -> dict[str, Any]:
    """Branch all audited reviews of one episode; a record with one entry a review."""
    began = time.perf_counter()
    record: dict[str, Any] = {
        "key": f"{episode.cell}/{episode.task_id}",
        "status": "done",
        "reason": "",
        "boundary": None,
        "attempt": 1,
        "items": [],
    }
    dropped: Counter[str] = Counter()
    streams = Streams(bench.environment.name, episode.task_id, episode.seed)
    state = _state(bench.environment, episode)
    thoughts = tuple(step.thought for step in episode.steps)
    seed = streams.seed_for("environment")
    by_step: dict[int, list[Target]] = {}
    for ref in wanted:
        by_step.setdefault(ref.step, []).append(target(episode, ref))
    marks: list[Bookmark] = []
    try:
        for live in walk(bench.environment, state, seed, set(by_step), same_text):
            marks.append(Bookmark.here(bench.environment, live, seed))
    except PrefixMismatch as error:
        dropped["prefix not reproduced"] = sum(len(some) for step, some in by_step.items() if step >= error.step)
    try:
        for mark in marks:
            step = mark.state.step
            seen = _seen(episode, step)
            items = _branch(bench, mark, streams, thoughts[:step], by_step[step], episode.steps[step].executed, seen)
            dropped["executed action not reproduced"] += len(by_step[step]) * (items is None)
            record["items"] += items or []
    except EpisodeError as error:
        record.update(status="failed", reason=error.reason, boundary=error.boundary)
    record["dropped"] = {reason: number for reason, number in dropped.items() if number}
    record["seconds"] = round(time.perf_counter() - began, 6)
    return record


def _state(environment: Environment, episode: Episode) -> DecisionState:
    """The executed prefix as a state; observations carry text only, which is what the ledger keeps."""
    turns = tuple(Turn(step.executed, Observation(_seen(episode, step.index))) for step in episode.steps)
    opening = Observation(episode.steps[0].observation)
    return DecisionState(environment.name, episode.task_id, episode.task, opening, turns)


def _seen(episode: Episode, step: int) -> str:
    """What the action executed at `step` brought."""
    following = step + 1
    return episode.steps[following].observation if following < len(episode.steps) else episode.final_observation


def _branch(
    bench: AuditBench,
    mark: Bookmark,
    streams: Streams,
    thoughts: tuple[str, ...],
    wanted: Sequence[Target],
    executed: Action,
    seen: str,
) -> list[dict[str, Any]] | None:
    """Continue every action of all targets at this step; None when the executed action shows something else."""
    actions = {action.canonical: action for one in wanted for action in one.actions()}
    actions.pop(executed.canonical, None)
    actions[executed.canonical] = executed  # last: siblings have used the bookmark before it is checked
    returns: dict[str, list[float]] = {name: [] for name in actions}
    for m in range(bench.continuations):
        named = BranchStreams(streams.environment, streams.task_id, streams.seed, streams.extra, m)
        for name, action in actions.items():
            ending = continuation(bench.environment, bench.actor, bench.limits, named, mark, thoughts, action)
            _heed(bench, ending)
            if ending.reward is not None:
                returns[name].append(ending.reward)
        if ending.first is None or ending.first.text != seen:
            return None
    return [_item(one, returns) for one in wanted]


def _heed(bench: AuditBench, ending: Ending) -> None:
    if ending.abandoned:
        bench.broken = True
        raise EpisodeError(ending.boundary or "harness", ending.reason, ending.status)


def _item(one: Target, returns: Mapping[str, list[float]]) -> dict[str, Any]:
    def of(action: Action | None) -> list[float]:
        return returns[action.canonical] if action is not None else []

    return {
        **asdict(one.ref),
        "response": one.response,
        "proposal": of(one.proposal),
        "candidates": [of(action) for action in one.candidates],
        "advice": of(one.advice),
        "after": of(one.after),
    }
