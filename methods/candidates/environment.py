"""Environment candidates: executable actions that the environment exposes here (paper appendix B.6, first source).

Uniform without replacement from a finite pool, which is the sampling that Proposition 3.1 allows besides independent
draws.  A draw of k is the beginning of a draw of more, so asking again for more changes nothing that was drawn.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from harness.protocols import Desk
from harness.seeds import stream
from methods.candidates.drawn import Drawn, Sieve


class EnvironmentCandidates:
    """Legal actions exposed by the environment, uniform without replacement."""

    estimate: ClassVar[Mapping[str, float]] = {}

    def draw(self, desk: Desk, k: int) -> Drawn:
        """Up to k actions of `desk.pool()`, never the proposal."""
        pool = {action.canonical: action for action in desk.pool()}
        order = sorted(pool)  # so that the draw depends on what is executable, not on how it is listed
        stream(role="environment-candidates", seed=desk.seed).shuffle(order)
        sieve = Sieve(desk, k, "environment")
        sieve.offer_all(pool[name] for name in order)
        return sieve.drawn()
