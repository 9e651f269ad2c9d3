"""Decision points: where along a base trajectory branches start (paper appendix B.2)."""

from __future__ import annotations

import math

from harness.seeds import stream


def count_points(actions: int, share: float = 0.5, most: int = 10) -> int:
    """min(ceil(share * T), most) points for a trajectory of T actions."""
    # ceil of 0.1 * 30 is 4 in floating point; the small slack keeps shares exact without ever losing a point.
    return min(math.ceil(share * actions - 1e-9), most, actions)


def choose_points(actions: int, seed: int, share: float = 0.5, most: int = 10) -> tuple[int, ...]:
    """Temporally stratified step indices: the trajectory is cut into equal strata and each gives one step.

    Args:
        actions: T, number of executed actions; steps are 0 to T - 1.
        seed: decides the step inside each stratum.
        share: share of the steps that become points.
        most: upper limit.

    Returns:
        Increasing, distinct step indices.
    """
    points = count_points(actions, share, most)
    chosen = []
    for index in range(points):
        first, past = index * actions // points, (index + 1) * actions // points
        chosen.append(stream(consumer="points", seed=seed, stratum=index).randrange(first, past))
    return tuple(chosen)
