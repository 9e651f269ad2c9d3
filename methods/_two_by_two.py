"""The 2x2 of {absolute Q, pairwise} x {forced, constructive} (paper section 4.4): one class, four settings."""

from __future__ import annotations

from typing import ClassVar, Literal

from harness.errors import UsageError
from harness.protocols import Desk, Verdict
from harness.records import DecisionState, Proposal
from methods.interventions import constructive, forced, message_template
from methods.panel import absolute, pairwise

TITLE = "Don't Solve, Just Compare (arXiv 2608.21027)"


class JudgeAndAct:
    """A judge and an intervention; subclasses name both.

    Args:
        k: candidates asked for at each review, at least 1.
        r: winners needed for the gate to fire, 1..k.
        lazy: skip comparisons that cannot change the decision; the decision is the same.
        message_file: a user's advice text with $proposal and $alternatives.
    """

    judge: ClassVar[Literal["pairwise", "absolute"]]
    intervention: ClassVar[Literal["forced", "constructive"]]

    def __init__(self, k: int = 4, r: int = 1, lazy: bool = True, message_file: str | None = None) -> None:
        self.k = k
        self.r = r
        self.lazy = lazy
        self.message_file = message_file
        self._template: str | None = None

    def review(self, state: DecisionState, proposal: Proposal, desk: Desk) -> Verdict:
        """Judge k candidates against the proposal and act on the winners."""
        if not 1 <= self.r <= self.k:
            raise UsageError(f"r must lie in 1..k, but k = {self.k} and r = {self.r}.")
        if self.judge == "pairwise":
            panel = pairwise(desk, self.k, self.r, self.lazy)
        else:
            panel = absolute(desk, self.k, self.r)
        if self.intervention == "forced":
            return forced(desk, panel)
        if self._template is None:
            self._template = message_template(self.message_file)
        return constructive(desk, panel, self._template)
