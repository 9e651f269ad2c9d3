"""Desk: what one review may use.  Everything a method takes from here is counted and timed for who did the work."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from harness.errors import EpisodeError, UsageError
from harness.protocols import Adviser, CandidateSource, Comparator, Critic, Environment, Question
from harness.records import Action, Advice, Candidate, DecisionState, Proposal, Usage


@dataclass(frozen=True, slots=True)
class Tools:
    """What a study gives a method, besides the actor itself; None where the study gives nothing."""

    comparator: Comparator | None = None
    critic: Critic | None = None
    adviser: Adviser | None = None
    candidates: CandidateSource | None = None


class ReviewDesk:
    """The `Desk` of one proposal. Once closed (the review was abandoned) it answers nothing more."""

    def __init__(
        self,
        *,
        state: DecisionState,
        proposal: Proposal,
        environment: Environment,
        tools: Tools,
        seed: int,
        attempt: int,
        ask_actor: Callable[[Advice], Proposal],
        view: Callable[[], str],
        deadline: float | None = None,
    ) -> None:
        self.state = state
        self.proposal = proposal
        self.seed = seed
        self.attempt = attempt
        self.deadline = deadline
        self.usage = Usage(calls=0)
        self._environment = environment
        self._tools = tools
        self._ask = ask_actor
        self._view = view
        self._closed = False

    def close(self) -> None:
        """No further use: an abandoned review must not meet the episode that went on without it."""
        self._closed = True

    def _open(self) -> None:
        if self._closed:
            raise EpisodeError("advisor", "the review was abandoned after its time limit")

    def _need(self, tool: Any, word: str) -> Any:
        self._open()
        if tool is None:
            raise UsageError(
                f"This method needs a {word}, and the study gives it none. Name one under `judges:` or `candidates:` "
                f"and set `{word}: <label>` on the method."
            )
        return tool

    def question(self) -> Question:
        """The decision as judges see it."""
        self._open()
        tools = (self._tools.comparator, self._tools.critic)
        oracle = self._environment.oracle() if any(getattr(t, "needs_oracle", False) for t in tools if t) else None
        return Question(self.state, self._view(), oracle, self.deadline)

    def candidates(self, k: int) -> tuple[Candidate, ...]:
        """Up to k legal alternatives, distinct from the proposal and from each other, in drawn order."""
        source: CandidateSource = self._need(self._tools.candidates, "candidates")
        seen = {self.proposal.action.canonical}
        kept: list[Candidate] = []
        for candidate in source.draw(self, k):
            fresh = candidate.action.canonical not in seen
            if fresh and self._environment.legal(candidate.action) and len(kept) < k:
                kept.append(candidate)
                seen.add(candidate.action.canonical)
        return tuple(kept)

    def pool(self) -> Sequence[Action]:
        """Concrete executable actions here, oracle-free."""
        self._open()
        return self._environment.pool(self.state)

    def count(self, usage: Usage) -> None:
        """Add model usage of a helper of the advisor (a candidate generator) to this review."""
        self.usage = self.usage + usage

    def comparator(self) -> Comparator:
        """The study's comparator."""
        tool: Comparator = self._need(self._tools.comparator, "comparator")
        return tool

    def critic(self) -> Critic:
        """The study's critic."""
        tool: Critic = self._need(self._tools.critic, "critic")
        return tool

    def adviser(self) -> Adviser:
        """The study's free-text critic model."""
        tool: Adviser = self._need(self._tools.adviser, "adviser")
        return tool

    def ask_actor(self, advice: Advice) -> Proposal:
        """One extra turn of the actor itself."""
        self._open()
        return self._ask(advice)

    def legal(self, action: Action) -> bool:
        """Whether the environment would execute it now."""
        self._open()
        return self._environment.legal(action)

    def parse(self, text: str) -> Action:
        """Text to action. Raises `IllegalAction`."""
        self._open()
        return self._environment.canonical(text)

    def briefing(self) -> str:
        """Rules and action format of the environment."""
        self._open()
        return self._environment.briefing()
