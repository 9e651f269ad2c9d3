"""A method in one file: withhold the first proposal of each step once, and name one alternative."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from harness.protocols import Desk, Execute, Verdict, Withhold
from harness.records import Advice, DecisionState, Proposal, Review
from methods.panel import draw


class SecondLook:
    """Second look: asks once about each step whether one drawn alternative would be better."""

    paper: ClassVar[Mapping[str, str]] = {"title": "none", "section": "none", "defaults": "none"}
    needs: ClassVar[frozenset[str]] = frozenset({"candidates"})

    def review(self, state: DecisionState, proposal: Proposal, desk: Desk) -> Verdict:
        """Withhold at the first attempt when there is an alternative; execute otherwise."""
        if desk.attempt > 0:
            return Execute(proposal.action, Review(proposal.action))
        # Trouble with the source comes back as causes, not as an exception: the method fails open.
        found, causes = draw(desk, 1)
        if not found:
            return Execute(proposal.action, Review(proposal.action, fail_open=causes))
        advice = Advice(f"Would {found[0].action.text} be better?", (found[0].action,))
        evidence = Review(proposal.action, candidates=found, fired=True, recommended=advice.recommended)
        return Withhold(advice, evidence)
