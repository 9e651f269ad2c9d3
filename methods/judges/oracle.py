"""Oracle judges, for tests only: they read latent state, so no shipped study may use them and no result means a thing.

With `noise` they become judges of known quality, which is what gate and audit tests need.
"""

from __future__ import annotations

from collections.abc import Sequence

from harness.errors import UsageError
from harness.protocols import Oracle, Question
from harness.records import Action, Ballot, Label, Score
from harness.seeds import stream


def _oracle(question: Question) -> Oracle:
    if question.oracle is None:
        raise UsageError("An oracle judge needs an environment with an oracle; this one has none.")
    return question.oracle


class OracleComparator:
    """Oracle comparator (tests only): prefers the action of higher latent value; wrong with probability `noise`."""

    needs_oracle = True

    def __init__(self, margin: float = 0.0, noise: float = 0.0) -> None:
        self.margin = margin
        self.noise = noise

    def compare(self, question: Question, pairs: Sequence[tuple[Action, Action]]) -> Sequence[Ballot]:
        oracle = _oracle(question)
        ballots = []
        for first, second in pairs:
            gap = oracle.value(first) - oracle.value(second)
            label: Label = "T" if abs(gap) <= self.margin else ("A" if gap > 0 else "B")
            if self.noise and self._chance(question, first, second) < self.noise:
                label = "B" if label == "A" else "A"
            ballots.append(Ballot(label))
        return ballots

    @staticmethod
    def _chance(question: Question, first: Action, second: Action) -> float:
        state = question.state
        return stream(
            role="oracle-judge", task=state.task_id, step=state.step, first=first.text, second=second.text
        ).random()


class OracleCritic:
    """Oracle critic (tests only): the latent value itself."""

    needs_oracle = True

    def score(self, question: Question, actions: Sequence[Action]) -> Sequence[Score]:
        oracle = _oracle(question)
        return [Score(oracle.value(action)) for action in actions]
