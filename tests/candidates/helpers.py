"""Desks over hand-made states, so that candidate sources can be tested without an environment."""

from __future__ import annotations

from collections.abc import Sequence

from harness.errors import IllegalAction
from harness.protocols import Question
from harness.records import Action, Candidate, DecisionState, Observation, Proposal, Turn, Usage


def action(text: str) -> Action:
    return Action(text, text)


def state_of(environment: str, task: str, *story: str | tuple[str, str], actions: Sequence[str] = ()) -> DecisionState:
    """First the opening text, then (action, what came back); `actions` are affordances of the last observation."""
    opening, *turns = story
    seen = [Observation(str(opening)), *(Observation(text) for _, text in turns)]
    seen[-1] = Observation(seen[-1].text, tuple(actions))
    done = tuple(Turn(action(turn[0]), after) for turn, after in zip(turns, seen[1:], strict=True))
    return DecisionState(environment, "task-1", task, seen[0], done)


class Desk:
    """As much of a desk as a candidate source may use; `usage` shows what was counted."""

    attempt = 0
    deadline = None

    def __init__(self, state: DecisionState, pool: Sequence[str], proposal: str = "proposal", seed: int = 1) -> None:
        self.state = state
        self.proposal = Proposal(action(proposal))
        self.seed = seed
        self.usage = Usage()
        self._pool = [action(text) for text in pool]

    def pool(self) -> list[Action]:
        return self._pool

    def legal(self, one: Action) -> bool:
        return one in self._pool

    def parse(self, text: str) -> Action:
        if not text:
            raise IllegalAction("nothing")
        return action(text)

    def question(self) -> Question:
        return Question(self.state, f"{self.state.task}\n{self.state.observation.text}")

    def count(self, usage: Usage) -> None:
        self.usage = self.usage + usage


class Listed:
    """A source that gives a fixed list, as often as asked."""

    def __init__(self, texts: Sequence[str], name: str = "listed") -> None:
        self.texts, self.name, self.asked = texts, name, 0

    def draw(self, desk: Desk, k: int) -> list[Candidate]:
        self.asked += 1
        return [Candidate(action(text), self.name) for text in self.texts[:k]]
