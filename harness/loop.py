"""The episode loop: propose, review, execute or replan, until the environment ends it or a limit does.

`Rollout` is one run through an environment; it can begin at a task or go on from a restored prefix, so episodes,
branches (paper appendix B.2) and audits are run by the same code; `harness.episode` makes a record of it.  The inner
methods are plans (`harness.guard.Plan`): they yield the calls to plugins, so that a call that hangs can be left behind.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypeVar

from harness import intake
from harness.desk import ReviewDesk, Tools
from harness.errors import EpisodeError, IllegalAction, UsageError
from harness.guard import GRACE_S, Call, CallTimeout, Clock, Guard, Plan, give_up_at
from harness.protocols import Actor, Environment, Execute, Method, Mind, Verdict
from harness.records import (
    Action,
    Advice,
    DecisionState,
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
        self._run(self._begin(task_id))

    def at(self, state: DecisionState, thoughts: tuple[str, ...] = ()) -> None:
        """Go on from a prefix that the caller has restored in the environment."""
        self._run(self._at(state, thoughts))

    def advance(self, forced: Action | None = None) -> Step:
        """One executed step; `forced` skips proposal and review (the first action of a branch)."""
        return self._run(self._advance(forced))

    def play(self, task_id: str) -> None:
        """Reset the environment to a task and advance until the episode is over."""
        self._run(self._play(task_id))

    def _run(self, plan: Plan[T]) -> T:
        limits = (self.limits.call_s, self.limits.step_s, self.limits.episode_s)
        return self.guard.run(plan, limited=any(limit is not None for limit in limits))

    def _play(self, task_id: str) -> Plan[None]:
        yield from self._begin(task_id)
        while not self.over:
            yield from self._advance(None)

    def _begin(self, task_id: str) -> Plan[None]:
        reset = partial(self.environment.reset, task_id, self.streams.seed_for("environment"))
        found = yield from self._timed("environment", reset, self._deadline(step=False))
        task, opening = intake.opening(found)
        yield from self._at(DecisionState(self.environment.name, task_id, task, opening), ())

    def _at(self, state: DecisionState, thoughts: tuple[str, ...]) -> Plan[None]:
        self.state, self.thoughts = state, thoughts
        self._briefing = yield from self._timed("environment", self.environment.briefing, self._deadline(step=False))

    @property
    def over(self) -> bool:
        """The environment ended the episode, or no step is left."""
        ended = self.outcome is not None and self.outcome.done
        return ended or self._now().step >= self.limits.max_steps

    def _now(self) -> DecisionState:
        if self.state is None:
            raise RuntimeError("a rollout begins with begin() or at()")
        return self.state

    def _advance(self, forced: Action | None) -> Plan[Step]:
        state, deadline = self._now(), self._deadline()
        with self.clock.role("harness"):
            if forced is None:
                action, proposal, reviews = yield from self._decide(state, deadline)
            else:
                action, proposal, reviews = forced, Proposal(forced), ()
            found = yield from self._timed("environment", lambda: self.environment.step(action), deadline)
            outcome = intake.outcome(found)
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

    def _decide(
        self, state: DecisionState, deadline: float | None
    ) -> Plan[tuple[Action, Proposal, tuple[Review, ...]]]:
        mind = self._mind(state, 0, deadline)
        proposal = yield from self._actor(lambda: self.actor.propose(state, mind), deadline)
        reviews: list[Review] = []
        rendered: list[str] = []

        def view() -> str:
            if not rendered:
                rendered.append(self.environment.render(state))
            return rendered[0]

        for attempt in range(self.limits.replans + 1):
            current = proposal
            verdict = yield from self._review(state, current, attempt, view, deadline)
            if isinstance(verdict, Execute):
                reviews.append(verdict.review)
                return verdict.action, current, tuple(reviews)
            if attempt == self.limits.replans:
                causes = (*verdict.review.fail_open, "replan_limit")
                reviews.append(replace(verdict.review, fail_open=causes))
                break
            mind = self._mind(state, attempt + 1, deadline)
            answer_to = partial(self.actor.replan, state, current, verdict.advice, mind)
            proposal = yield from self._actor(answer_to, deadline, "replan")
            answer = classify(proposal.action, current.action, verdict.advice.recommended)
            reviews.append(replace(verdict.review, response=answer))
        return proposal.action, proposal, tuple(reviews)

    def _review(
        self, state: DecisionState, proposal: Proposal, attempt: int, view: Callable[[], str], deadline: float | None
    ) -> Plan[Verdict]:
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
            work = partial(self.method.review, state, proposal, desk)
            answer = yield from self._timed("advisor", work, deadline, wrap=False)
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

    def _actor(self, work: Callable[[], Proposal], deadline: float | None, call: str = "propose") -> Plan[Proposal]:
        try:
            answer = yield from self._timed("actor", work, deadline)
            proposal = intake.proposal(answer, call)
        except (IllegalAction, EpisodeError) as error:
            self._count_lost("actor", error)
            if isinstance(error, EpisodeError):
                if error.status == "timeout" and deadline is not None and time.monotonic() > deadline - GRACE_S:
                    raise self._late("actor", CallTimeout(0.0), shared=True) from error
                raise
            raise EpisodeError("actor", f"no action in the answer: {error}", "unparsed") from error
        self._count("actor", proposal.usage)
        return proposal

    def _timed(self, role: Role, work: Callable[[], T], deadline: float | None = None, wrap: bool = True) -> Plan[T]:
        left = None if deadline is None else deadline - time.monotonic()
        given = [limit for limit in (self.limits.call_s, left) if limit is not None]
        try:
            with self.clock.role(role):
                answer: T = yield Call(work, min(given) if given else None)
                return answer
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
