"""Origin: the actor alone (paper section 4.1)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from harness.protocols import Desk, Execute, Verdict
from harness.records import DecisionState, Proposal, Review


class Origin:
    """The actor alone: every proposal is executed."""

    paper: ClassVar[Mapping[str, str]] = {
        "title": "Don't Solve, Just Compare (arXiv 2608.21027)",
        "section": "4.1",
        "defaults": "no parameters",
    }
    estimate: ClassVar[Mapping[str, float]] = {"calls": 0, "seconds": 0.0001}
    needs: ClassVar[frozenset[str]] = frozenset()

    def review(self, state: DecisionState, proposal: Proposal, desk: Desk) -> Verdict:
        return Execute(proposal.action, Review(proposal.action))
