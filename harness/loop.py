"""The episode loop: propose, review, execute or replan, until the environment ends it or a limit does.

`Rollout` is one run through an environment; it can begin at a task or go on from a restored prefix, so episodes,
branches (paper appendix B.2) and audits are run by the same code.  `run_episode` wraps it into a record that exists
whatever happens: who broke is in `boundary`, what happened before is kept.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Protocol, TypeVar

from harness import intake
from harness.desk import ReviewDesk, Tools
from harness.errors import EpisodeError, IllegalAction, UsageError
from harness.guard import GRACE_S, CallTimeout, Clock, Guard, give_up_at
from harness.protocols import Actor, Environment, Execute, Method, Mind, Verdict
from harness.records import (
    Action,
    Advice,
    DecisionState,
    Episode,
    Outcome,
    Proposal,
    Response,
    Review,
    Role,
    Step,
    Turn,
    Usage,
)
from harness.seeds import seed_of

T = TypeVar("T")
BLAMED: tuple[Role, ...] = ("actor", "advisor", "environment", "simulator")


@dataclass(frozen=True, slots=True)
class Limits:
    """`max_steps` and `replans` change outcomes (identity); the seconds are policy. None: no limit."""

    max_steps: int
    replans: int = 2
    call_s: float | None = None
    step_s: float | None = None
    episode_s: float | None = None


@dataclass(frozen=True, slots=True)
class Streams:
    """Names of the random streams of one episode; the method is not among them, so methods meet the same draws."""

    environment: str
    task_id: str
    seed: int
    extra: tuple[tuple[str, int], ...] = ()

    def seed_for(self, role: str, step: int = 0, attempt: int = 0) -> int:
        """The seed of one draw of one consumer."""
        return seed_of(
            role=role,
            step=step,
            attempt=attempt,
            environment=self.environment,
            task=self.task_id,
            seed=self.seed,
            **dict(self.extra),
        )


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


def classify(new: Action, old: Action, recommended: tuple[Action, ...]) -> Response:
    """Adopt, keep or novel by canonical action; a recommended repeat of the proposal counts as adopt."""
    if new.canonical in {action.canonical for action in recommended}:
        return "adopt"
    return "keep" if new.canonical == old.canonical else "novel"


@dataclass
class Rollout:
    """One run; `begin` or `at`, then `advance` until `over`. Not thread-safe: one episode, one rollout."""

    environment: Environment
    actor: Actor
    method: Method
    tools: Tools
    limits: Limits
    streams: Streams
    guard: Guard = field(default_factory=Guard)
    clock: Clock = field(default_factory=Clock)
    state: DecisionState | None = None
    thoughts: tuple[str, ...] = ()
    steps: list[Step] = field(default_factory=list)
    outcome: Outcome | None = None
    started: float = field(default_factory=time.monotonic)
    _usage: dict[str, Usage] = field(default_factory=dict)
    _briefing: str = ""
    _limit: str = ""
    _before: dict[str, float] = field(default_factory=dict)

    def begin(self, task_id: str) -> None:
        """Reset the environment to a task."""
        reset = partial(self.environment.reset, task_id, self.streams.seed_for("environment"))
        task, opening = intake.opening(self._timed("environment", reset, self._deadline(step=False)))
        self.at(DecisionState(self.environment.name, task_id, task, opening))

    def at(self, state: DecisionState, thoughts: tuple[str, ...] = ()) -> None:
        """Go on from a prefix that the caller has restored in the environment."""
        self.state, self.thoughts = state, thoughts
        self._briefing = self._timed("environment", self.environment.briefing, self._deadline(step=False))

    @property
    def over(self) -> bool:
        """The environment ended the episode, or no step is left."""
        ended = self.outcome is not None and self.outcome.done
        return ended or self._now().step >= self.limits.max_steps

    def _now(self) -> DecisionState:
        if self.state is None:
            raise RuntimeError("a rollout begins with begin() or at()")
        return self.state

    def advance(self, forced: Action | None = None) -> Step:
        """One executed step; `forced` skips proposal and review (the first action of a branch)."""
        state, deadline = self._now(), self._deadline()
        with self.clock.role("harness"):
            if forced is None:
                action, proposal, reviews = self._decide(state, deadline)
            else:
                action, proposal, reviews = forced, Proposal(forced), ()
            outcome = intake.outcome(self._timed("environment", lambda: self.environment.step(action), deadline))
            self.clock.move("environment", "simulator", outcome.simulator_s)
            self._count("simulator", outcome.usage)
        step = Step(
            index=state.step,
            observation=state.observation.text,
            legal_actions=len(state.observation.actions),
            reviews=reviews,
            executed=action,
            thought=proposal.thought,
            reward=outcome.reward,
            done=outcome.done,
            seconds=self.clock.take(),
            usage=self._take_usage(),
        )
        self.steps.append(step)
        self.outcome = outcome
        self.thoughts = (*self.thoughts, proposal.thought)
        self.state = replace(state, turns=(*state.turns, Turn(action, outcome.observation)))
        return step

    def propose(self) -> Proposal:
        """The actor's proposal from the present state, uncounted by any step (for branching and audits)."""
        return self.actor.propose(self._now(), self._mind(self._now(), 0, None))

    def ask(self, proposal: Proposal, advice: Advice, attempt: int = 1) -> Proposal:
        """The actor's answer to advice from the present state (for audits)."""
        return self.actor.replan(self._now(), proposal, advice, self._mind(self._now(), attempt, None))

    def _decide(self, state: DecisionState, deadline: float | None) -> tuple[Action, Proposal, tuple[Review, ...]]:
        mind = self._mind(state, 0, deadline)
        proposal = self._actor(lambda: self.actor.propose(state, mind), deadline)
        reviews: list[Review] = []
        rendered: list[str] = []

        def view() -> str:
            if not rendered:
                rendered.append(self.environment.render(state))
            return rendered[0]

        for attempt in range(self.limits.replans + 1):
            current = proposal
            verdict = self._review(state, current, attempt, view, deadline)
            if isinstance(verdict, Execute):
                reviews.append(verdict.review)
                return verdict.action, current, tuple(reviews)
            if attempt == self.limits.replans:
                causes = (*verdict.review.fail_open, "replan_limit")
                reviews.append(replace(verdict.review, fail_open=causes))
                break
            mind = self._mind(state, attempt + 1, deadline)
            answer_to = partial(self.actor.replan, state, current, verdict.advice, mind)
            proposal = self._actor(answer_to, deadline, "replan")
            answer = classify(proposal.action, current.action, verdict.advice.recommended)
            reviews.append(replace(verdict.review, response=answer))
        return proposal.action, proposal, tuple(reviews)

    def _review(
        self, state: DecisionState, proposal: Proposal, attempt: int, view: Callable[[], str], deadline: float | None
    ) -> Verdict:
        def ask_actor(advice: Advice) -> Proposal:
            with self.clock.role("actor"):
                mind = self._mind(state, 100 + attempt, deadline, role="actor-revise")
                try:
                    answer = intake.proposal(self.actor.replan(state, proposal, advice, mind), "replan")
                except Exception as error:
                    self._count_lost("actor", error)
                    raise
            self._count("actor", answer.usage)
            return answer

        desk = ReviewDesk(
            state=state,
            proposal=proposal,
            environment=self.environment,
            tools=self.tools,
            seed=self.streams.seed_for("candidates", state.step, attempt),
            attempt=attempt,
            ask_actor=ask_actor,
            view=view,
            deadline=give_up_at(deadline, self.limits.call_s),
        )
        before = time.perf_counter()
        try:
            answer = self._timed("advisor", lambda: self.method.review(state, proposal, desk), deadline, wrap=False)
            verdict = intake.verdict(answer)
        except CallTimeout:
            desk.close()
            verdict = Execute(proposal.action, Review(proposal.action, fail_open=("timeout",)))
        except (EpisodeError, UsageError):
            raise
        except (Exception, SystemExit) as error:
            raise EpisodeError("advisor", f"review raised {type(error).__name__}: {error}") from error
        usage = verdict.review.usage + desk.usage
        intake.usage("advisor", usage)
        self._count("advisor", usage)
        seconds = time.perf_counter() - before
        review = replace(verdict.review, thought=proposal.thought, usage=usage, seconds=seconds)
        return replace(verdict, review=review)

    def _mind(self, state: DecisionState, attempt: int, deadline: float | None, role: str = "actor") -> Mind:
        return Mind(
            seed=self.streams.seed_for(role, state.step, attempt),
            thoughts=self.thoughts,
            briefing=self._briefing,
            parse=self.environment.canonical,
            episode_seed=self.streams.seed_for("actor"),
            legal=self.environment.legal,
            deadline=give_up_at(deadline, self.limits.call_s),
            oracle=self.environment.oracle() if self.actor.simulated else None,
        )

    def _actor(self, work: Callable[[], Proposal], deadline: float | None, call: str = "propose") -> Proposal:
        try:
            proposal = intake.proposal(self._timed("actor", work, deadline), call)
        except (IllegalAction, EpisodeError) as error:
            self._count_lost("actor", error)
            if isinstance(error, EpisodeError):
                if error.status == "timeout" and deadline is not None and time.monotonic() > deadline - GRACE_S:
                    raise self._late("actor", CallTimeout(0.0), shared=True) from error
                raise
            raise EpisodeError("actor", f"no action in the answer: {error}", "unparsed") from error
        self._count("actor", proposal.usage)
        return proposal

    def _timed(self, role: Role, work: Callable[[], T], deadline: float | None = None, wrap: bool = True) -> T:
        left = None if deadline is None else deadline - time.monotonic()
        given = [limit for limit in (self.limits.call_s, left) if limit is not None]
        try:
            with self.clock.role(role):
                return self.guard.call(work, min(given) if given else None)
        except CallTimeout as error:
            if not wrap:
                raise
            raise self._late(role, error, shared=error.seconds == left) from error
        except (EpisodeError, IllegalAction, UsageError):
            raise
        except (Exception, SystemExit) as error:
            if not wrap:
                raise
            raise EpisodeError(role, f"{type(error).__name__}: {error}") from error

    def _late(self, role: Role, error: CallTimeout, shared: bool) -> EpisodeError:
        """A limit that all roles share is charged to the one that used most of this step, not to who came last."""
        spent = {who: self.clock.seconds.get(who, 0.0) - self._before.get(who, 0.0) for who in BLAMED}
        if not shared:
            return EpisodeError(role, str(error), "timeout")
        most = max(spent, key=lambda who: spent[who])
        reason = f"{self._limit} reached in the {role}'s turn; {spent[most]:.3g} s of this step went to the {most}"
        return EpisodeError(most, reason, "timeout")

    def _deadline(self, step: bool = True) -> float | None:
        ends, self._before = [], dict(self.clock.seconds)
        if step and self.limits.step_s is not None:
            ends.append((time.monotonic() + self.limits.step_s, f"step limit of {self.limits.step_s:g} s"))
        if self.limits.episode_s is not None:
            ends.append((self.started + self.limits.episode_s, f"episode limit of {self.limits.episode_s:g} s"))
        deadline, self._limit = min(ends, default=(None, ""))
        return deadline

    def _count(self, role: Role, usage: Usage) -> None:
        self._usage[role] = self._usage.get(role, Usage()) + usage

    def _count_lost(self, role: Role, error: Exception) -> None:
        """Tokens spent on an answer that was none: an error may carry them as `usage`."""
        spent = getattr(error, "usage", None)
        if isinstance(spent, Usage):
            self._count(role, spent)

    def _take_usage(self) -> dict[str, Usage]:
        taken, self._usage = self._usage, {}
        return {role: usage for role, usage in taken.items() if usage != Usage()}


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
        run.begin(task_id)
        while not run.over:
            run.advance()
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
