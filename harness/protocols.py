"""Protocols: what a plugin must be.  A plugin's constructor only stores parameters; it does no work.

Nothing here is stateful across episodes except an `Environment`, which holds one episode at a time.  Actors, methods,
judges and candidate sources get all they may use as arguments, so they can be shared, replayed from any prefix and
batched.  Requirements beyond the signatures are what `harness.conformance` checks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from harness.records import (
    Action,
    Advice,
    Ballot,
    Candidate,
    DecisionState,
    Observation,
    Outcome,
    Proposal,
    Review,
    Score,
    Usage,
)


class Oracle(Protocol):
    """Latent knowledge of the running episode, for simulated actors (and oracle judges in tests) only."""

    def expert(self) -> Action:
        """The next action of a good policy from here."""

    def mistakes(self) -> Sequence[Action]:
        """Plausible wrong actions here: legal, distinct, and such as really happen in this environment."""

    def value(self, action: Action) -> float:
        """How good it is to take `action` now and go on well, in [0, 1]."""

    def reason(self, action: Action) -> str:
        """A short sentence an actor could think when it takes `action`."""


class Environment(Protocol):
    """One episode at a time; tasks are addressed by id; `step` of the same actions gives the same observations."""

    name: ClassVar[str]
    version: ClassVar[str]
    metric: ClassVar[str]  # "mean_reward" or "success_rate"
    max_steps: ClassVar[int]
    simulated: tuple[str, ...]  # parts that are simulated, such as ("user",)

    def tasks(self, split: str) -> Sequence[str]:
        """Ids of a split, in a fixed order. Raises `UsageError` for an unknown split, naming those there are."""

    def fingerprint(self, task_id: str) -> str:
        """Content hash of one task and all that decides its outcome (game file, goal, price, catalogue)."""

    def briefing(self) -> str:
        """Rules and action format of this environment, the same for each task (domain policy included)."""

    def reset(self, task_id: str, seed: int) -> tuple[str, Observation]:
        """Start a task: (task text, first observation). Raises `UsageError` for an unknown id."""

    def step(self, action: Action) -> Outcome:
        """Execute. An illegal action is answered as the environment answers it, never by an exception."""

    def snapshot(self) -> Any:
        """The exact present state, valid for `restore` on the same instance as often as wanted."""

    def restore(self, snapshot: Any) -> None:
        """Back to a snapshot: later steps give what they gave."""

    def canonical(self, text: str) -> Action:
        """Parse one action. Raises `IllegalAction` (a message for the actor) when the text is none."""

    def legal(self, action: Action) -> bool:
        """Whether the action can be executed now."""

    def pool(self, state: DecisionState) -> Sequence[Action]:
        """Concrete executable actions here, oracle-free: the reference distribution of environment candidates."""

    def render(self, state: DecisionState) -> str:
        """The advisor's view: deterministic, append-only over the steps, without thoughts, what changes last."""

    def oracle(self) -> Oracle | None:
        """Latent knowledge of the running episode, or None where there is none."""

    def close(self) -> None:
        """Free what was opened; safe to call twice."""


@dataclass(frozen=True, slots=True)
class Mind:
    """What only the actor gets: past thoughts, its own random stream, rules, a parser, a deadline, an oracle."""

    seed: int
    thoughts: tuple[str, ...]
    briefing: str
    parse: Callable[[str], Action]
    episode_seed: int = 0
    legal: Callable[[Action], bool] | None = None
    deadline: float | None = None
    oracle: Oracle | None = None


class Actor(Protocol):
    """The frozen policy pi. `simulated` actors are labelled so everywhere."""

    simulated: bool

    def propose(self, state: DecisionState, mind: Mind) -> Proposal:
        """Propose one action; same state and seed, same proposal (as far as the model allows)."""

    def replan(self, state: DecisionState, proposal: Proposal, advice: Advice, mind: Mind) -> Proposal:
        """Answer again from the same state after advice, feedback or the request for a self-check."""


@dataclass(frozen=True, slots=True)
class Question:
    """A decision as a judge sees it; the oracle is there only for a judge whose `needs_oracle` is true."""

    state: DecisionState
    view: str
    oracle: Oracle | None = None
    deadline: float | None = None  # time.monotonic() after which no answer is of use


class Comparator(Protocol):
    """C(s, a, b): one ballot for each ordered pair, as one batch (paper eq. 4, appendix B.4)."""

    needs_oracle: bool

    def compare(self, question: Question, pairs: Sequence[tuple[Action, Action]]) -> Sequence[Ballot]:
        """Label A: the first of the pair is better. Raising is allowed: the method fails open."""


class Critic(Protocol):
    """Q(s, a): one score for each action, as one batch (paper appendix B.7)."""

    needs_oracle: bool

    def score(self, question: Question, actions: Sequence[Action]) -> Sequence[Score]:
        """Scores in [0, 1]. Raising is allowed: the method fails open."""


class Adviser(Protocol):
    """A separate language model that writes free-form feedback (Asym-AC)."""

    def feedback(self, system: str, user: str, seed: int, deadline: float | None) -> tuple[str, Usage]:
        """One answer. Raising is allowed: the method fails open."""


class Desk(Protocol):
    """What a method may use in one review, and nothing else."""

    state: DecisionState
    proposal: Proposal
    seed: int
    attempt: int  # replans already asked for in this step
    deadline: float | None  # time.monotonic() at which the review is abandoned

    def question(self) -> Question:
        """The decision as judges see it (rendered once a step)."""

    def candidates(self, k: int) -> tuple[Candidate, ...]:
        """Up to k legal alternatives, distinct from the proposal and from each other."""

    def comparator(self) -> Comparator:
        """The study's comparator. Raises `UsageError` when the method has none."""

    def critic(self) -> Critic:
        """The study's critic. Raises `UsageError` when the method has none."""

    def adviser(self) -> Adviser:
        """The study's free-text critic model (Asym-AC). Raises `UsageError` when the method has none."""

    def pool(self) -> Sequence[Action]:
        """Concrete executable actions here, oracle-free."""

    def count(self, usage: Usage) -> None:
        """Add model usage of the advisor's helpers (a candidate generator) to this review."""

    def ask_actor(self, advice: Advice) -> Proposal:
        """One extra turn of the actor itself; timed and counted for the actor."""

    def legal(self, action: Action) -> bool: ...
    def parse(self, text: str) -> Action: ...
    def briefing(self) -> str: ...


class CandidateSource(Protocol):
    """mu(.|s): draws alternatives; the desk filters what is illegal or a repeat."""

    def draw(self, desk: Desk, k: int) -> Sequence[Candidate]:
        """Up to k candidates in drawn order, from `desk.seed` alone."""


@dataclass(frozen=True, slots=True)
class Execute:
    """Let `action` pass to the environment (the proposal, or what the method puts in its place)."""

    action: Action
    review: Review


@dataclass(frozen=True, slots=True)
class Withhold:
    """Do not execute; show `advice` to the actor, whose new proposal is reviewed again."""

    advice: Advice
    review: Review


Verdict = Execute | Withhold


class Method(Protocol):
    """When and how to step in: a pure function of what it is given."""

    paper: ClassVar[Mapping[str, str]]  # "title", "section", "defaults": where the default parameters come from
    needs: ClassVar[frozenset[str]]  # of {"comparator", "critic", "adviser", "candidates"}

    def review(self, state: DecisionState, proposal: Proposal, desk: Desk) -> Verdict:
        """Look at a proposal before it is executed. Never raises for advisor trouble: fails open and says why."""
