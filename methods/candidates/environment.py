"""Environment candidates: legal actions, uniform without replacement (paper appendix B.6)."""

from __future__ import annotations

from collections.abc import Sequence

from harness.protocols import Desk
from harness.records import Candidate
from harness.seeds import stream


class EnvironmentCandidates:
    """Legal actions exposed by the environment, uniform without replacement."""

    def draw(self, desk: Desk, k: int) -> Sequence[Candidate]:
        """Up to k candidates; the proposal is left out before drawing, so that k alternatives come where k exist."""
        mine = desk.proposal.action.canonical
        pool = {action.canonical: action for action in desk.pool() if action.canonical != mine}
        order = sorted(pool)
        stream(role="environment-candidates", seed=desk.seed).shuffle(order)
        return [Candidate(pool[name], "environment") for name in order[:k]]
