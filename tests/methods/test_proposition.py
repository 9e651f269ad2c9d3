"""Proposition 3.1 and the support ceiling, by simulation (paper section 3.3, appendix A.5)."""

from __future__ import annotations

import math
import random

import pytest


def winners(chance: random.Random, pool: list[bool], k: int, error: float, replace: bool) -> float:
    """rho-hat of one review: k candidates from a pool of truths, each judged wrong with probability `error`."""
    drawn = chance.choices(pool, k=k) if replace else chance.sample(pool, k)
    return sum(truth != (chance.random() < error) for truth in drawn) / k


@pytest.mark.parametrize("replace", [True, False])
@pytest.mark.parametrize(("better", "error", "k"), [(2, 0.0, 4), (5, 0.1, 4), (12, 0.25, 8), (0, 0.1, 4)])
def test_the_bound_holds_with_and_without_replacement(better: int, error: float, k: int, replace: bool) -> None:
    chance = random.Random(better * 100 + k + replace)
    pool = [index < better for index in range(20)]
    rho, delta, n = better / 20, 0.1, 4000
    bound = error + math.sqrt(math.log(2 / delta) / (2 * k))
    found = [winners(chance, pool, k, error, replace) for _ in range(n)]
    assert sum(abs(value - rho) > bound for value in found) / n <= delta
    assert abs(sum(found) / n - rho) <= error + 3 / math.sqrt(n)  # eq. 11: the bias is at most the pairwise error


@pytest.mark.parametrize(("better", "k"), [(1, 4), (3, 4), (10, 4), (2, 8)])
def test_the_support_ceiling(better: int, k: int) -> None:
    chance = random.Random(better + k)
    pool = [index < better for index in range(20)]
    n = 6000
    infinite = sum(any(chance.choices(pool, k=k)) for _ in range(n)) / n
    finite = sum(any(chance.sample(pool, k)) for _ in range(n)) / n
    assert infinite == pytest.approx(1 - (1 - better / 20) ** k, abs=0.025)
    assert finite == pytest.approx(1 - math.comb(20 - better, k) / math.comb(20, k), abs=0.025)
