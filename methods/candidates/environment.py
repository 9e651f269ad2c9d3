"""Environment candidates: executable actions that the environment exposes here (paper appendix B.6, first source).

Uniform without replacement from a finite pool, which is the sampling that Proposition 3.1 allows besides independent
draws.  A draw of k is the beginning of a draw of more, so asking again for more changes nothing that was drawn.
"""

from __future__ import annotations

from harness.protocols import Desk
from harness.seeds import stream
from methods.candidates.drawn import Drawn, Sieve


class EnvironmentCandidates:
    """Legal actions exposed by the environment, uniform without replacement."""

    def draw(self, desk: Desk, k: int) -> Drawn:
        """Up to k actions of `desk.pool()`, never the proposal."""
        pool = list(desk.pool())
        stream(consumer="candidates/environment", seed=desk.seed).shuffle(pool)
        sieve = Sieve(desk, k, "environment")
        sieve.offer_all(pool)
        return sieve.drawn()
