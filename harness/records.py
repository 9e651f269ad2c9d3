"""Records: everything that happens in an episode, as immutable values.

Together with `harness.protocols` this is the whole vocabulary; the rest of the package only moves these values
around.  A record never holds an object that JSON cannot hold, so the ledger, the tracker, the reports and the viewer
read the same thing.  A `DecisionState` never holds a thought: advisors see exactly what it holds (paper section 2).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

SCHEMA_VERSION = 1
Role = Literal["actor", "advisor", "environment", "simulator", "harness"]
Status = Literal["done", "truncated", "timeout", "unparsed", "failed", "skipped"]
Label = Literal["A", "B", "T"]
Response = Literal["adopt", "keep", "novel"]


@dataclass(frozen=True, slots=True)
class Action:
    """One action: `text` is what the environment executes, `canonical` is equal iff the action is the same."""

    text: str
    canonical: str


@dataclass(frozen=True, slots=True)
class Observation:
    """What the actor reads; `actions` are concrete legal texts, `schemas` describe open-ended ones (search, tools)."""

    text: str
    actions: tuple[str, ...] = ()
    schemas: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Turn:
    """One executed action and what came back."""

    action: Action
    observation: Observation


@dataclass(frozen=True, slots=True)
class DecisionState:
    """s_t: task, first observation, executed prefix, current observation (paper eq. 1 without the thoughts)."""

    environment: str
    task_id: str
    task: str
    opening: Observation
    turns: tuple[Turn, ...] = ()

    @property
    def observation(self) -> Observation:
        """The current observation."""
        return self.turns[-1].observation if self.turns else self.opening

    @property
    def step(self) -> int:
        """Number of executed actions."""
        return len(self.turns)


@dataclass(frozen=True, slots=True)
class Usage:
    """Model calls and tokens; None is unknown and makes a sum unknown. `waited_s`: seconds queued, not working.

    `saved_*` are the tokens of `prompt` and `completion` that a response cache gave: billed is the difference.
    """

    calls: int = 0
    prompt: int | None = 0
    completion: int | None = 0
    cached: int | None = 0
    reasoning: int | None = 0
    waited_s: float = 0.0
    saved_prompt: int | None = 0
    saved_completion: int | None = 0

    def __add__(self, other: Usage) -> Usage:
        def plus(a: int | None, b: int | None) -> int | None:
            return None if a is None or b is None else a + b

        return Usage(
            self.calls + other.calls,
            plus(self.prompt, other.prompt),
            plus(self.completion, other.completion),
            plus(self.cached, other.cached),
            plus(self.reasoning, other.reasoning),
            self.waited_s + other.waited_s,
            plus(self.saved_prompt, other.saved_prompt),
            plus(self.saved_completion, other.saved_completion),
        )


@dataclass(frozen=True, slots=True)
class Proposal:
    """a_t, not yet executed; the thought is private to the actor."""

    action: Action
    thought: str = ""
    usage: Usage = Usage()


@dataclass(frozen=True, slots=True)
class Advice:
    """What the actor is shown when it answers again: `recommended` is ranked, best first, and non-binding."""

    message: str
    recommended: tuple[Action, ...] = ()
    kind: Literal["advice", "self_check", "feedback"] = "advice"


@dataclass(frozen=True, slots=True)
class Candidate:
    """An executable alternative and the source that drew it."""

    action: Action
    source: str


@dataclass(frozen=True, slots=True)
class Ballot:
    """One answer of a comparator to (first, second); `label` None with a `cause` when there is no valid answer."""

    label: Label | None
    cause: str | None = None
    text: str = ""
    usage: Usage = Usage()


@dataclass(frozen=True, slots=True)
class Score:
    """One answer of a critic: estimated Q in [0, 1], or None with a cause."""

    value: float | None
    cause: str | None = None
    usage: Usage = Usage()


@dataclass(frozen=True, slots=True)
class Vote:
    """Candidate against proposal in both orders; None = not asked (lazy gate) or invalid (see the causes)."""

    candidate: int
    forward: Label | None
    backward: Label | None
    won: bool


@dataclass(frozen=True, slots=True)
class Review:
    """One review of one proposal: the evidence behind a verdict, complete enough to rebuild every table."""

    proposal: Action
    thought: str = ""
    candidates: tuple[Candidate, ...] = ()
    votes: tuple[Vote, ...] = ()
    scores: tuple[float | None, ...] = ()
    fired: bool = False
    message: str = ""
    recommended: tuple[Action, ...] = ()
    response: Response | None = None
    fail_open: tuple[str, ...] = ()
    comparisons: int = 0
    usage: Usage = Usage()
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Outcome:
    """What `step` returns. `reward` is the episode's score as it stands, in [0, 1]; None = cannot be scored here."""

    observation: Observation
    reward: float | None = 0.0
    done: bool = False
    info: Mapping[str, str | float | bool] = field(default_factory=dict)
    usage: Usage = Usage()
    simulator_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Step:
    """One executed step: what was seen, every review in order, what was executed and what came of it."""

    index: int
    observation: str
    legal_actions: int
    reviews: tuple[Review, ...]
    executed: Action
    thought: str
    reward: float | None
    done: bool
    seconds: Mapping[str, float]
    usage: Mapping[str, Usage]


@dataclass(frozen=True, slots=True)
class Episode:
    """One episode: unique by (cell, task_id); `boundary` and `reason` say who broke and how when it failed."""

    cell: str
    study: str
    method: str
    actor: str
    environment: str
    seed: int
    split: str
    task_id: str
    status: Status
    reason: str
    reward: float | None
    success: bool | None
    steps: tuple[Step, ...]
    seconds: Mapping[str, float]
    usage: Mapping[str, Usage]
    boundary: Role | None = None
    simulated: tuple[str, ...] = ()
    task: str = ""
    final_observation: str = ""
    info: Mapping[str, str | float | bool] = field(default_factory=dict)
    attempt: int = 1
    started_at: float = 0.0
    wall_s: float = 0.0
    schema: int = SCHEMA_VERSION
