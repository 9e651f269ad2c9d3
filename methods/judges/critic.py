"""Critic: a sequence classifier with one output, the estimated Q of an action (paper appendix B.7)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from harness.protocols import Question
from harness.records import Action, Score
from methods.judges.local import LocalJudge


class LocalCritic(LocalJudge):
    """Critic: a local sequence classifier scores actions in [0, 1] over a shared state; it has to be trained.

    Args: as for `LocalComparator`; `model` is an artefact folder of `cota-bench train critic`.
    """

    kind = "classifier"
    preset = "critic"
    estimate: ClassVar[Mapping[str, float]] = {"calls": 5, "prompt": 8000, "seconds": 0.2}

    def score(self, question: Question, actions: Sequence[Action]) -> Sequence[Score]:
        """One score an action, all in one forward pass."""
        return self.score_texts(question.view, [action.text for action in actions], question.deadline)

    def score_texts(self, view: str, actions: Sequence[str], deadline: float | None = None) -> list[Score]:
        """`score` for a rendered view and action texts."""
        if not actions:
            return []
        scored = self._score(view, lambda encoder: [encoder.single(view, action) for action in actions], deadline)
        return [self._score_of(row, usage) for row, usage in zip(scored.outputs, scored.usages, strict=True)]

    @staticmethod
    def _score_of(row: Any, usage: Any) -> Score:
        value = float(row[0].sigmoid())
        return Score(value, None, usage) if value == value else Score(None, "not_finite", usage)
