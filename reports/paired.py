"""Paired statistics: pure functions on what two methods did with the same tasks and seeds.

Position i of `ours` and `base` is the same actor, environment, task and seed.  Seeds of one task are no independent
evidence: intervals resample tasks, tests flip tasks, standard errors are clustered by task.  Randomness comes from the
generator that the caller gives; the same generator state gives the same number.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Final

import numpy as np

from reports.stats import CHUNK, EMPTY, RESAMPLES, Estimate, Values, by_task, mean_by_task

FLIPS: Final = 9999
POWER: Final = 0.8
ALPHA: Final = 0.05
# Half a rounding error of a sum of rewards: two sums nearer than this are the same sum.
CLOSE: Final = 1e-9


@dataclass(frozen=True, slots=True)
class Paired:
    """What pairs say about a difference.

    Attributes:
        difference: Mean of ours less base, with a 95% interval over tasks.
        p: Two-sided p-value; None for fewer than two tasks.
        test: Which test gave it.
        wins: Pairs in which ours is higher.
        ties: Pairs of equal value.
        losses: Pairs in which ours is lower.
        detectable: Smallest true difference that this many tasks would show with 80% power at the 5% level.
        needed: Tasks needed to show a difference as large as the one seen, with the same power and level.
    """

    difference: Estimate
    p: float | None
    test: str
    wins: int
    ties: int
    losses: int
    detectable: float | None
    needed: int | None


NOTHING: Final = Paired(EMPTY, None, "", 0, 0, 0, None, None)


def compare(
    ours: Sequence[float],
    base: Sequence[float],
    tasks: Sequence[Hashable],
    rng: np.random.Generator,
    *,
    resamples: int = RESAMPLES,
    flips: int = FLIPS,
) -> Paired:
    """All paired statistics of two samples (n,).

    The test is McNemar's exact one where every value is 0 or 1 and each task stands for one pair, and the sign-flip
    permutation test clustered by task otherwise.

    Raises:
        ValueError: lengths differ, or a value is not finite.
    """
    if not len(ours) == len(base) == len(tasks):
        raise ValueError(f"{len(ours)} against {len(base)} values for {len(tasks)} tasks: pairs need all three")
    if not len(ours):
        return NOTHING
    first, second = np.asarray(ours, dtype=np.float64), np.asarray(base, dtype=np.float64)
    change = first - second
    binary = bool(np.isin(first, (0.0, 1.0)).all() and np.isin(second, (0.0, 1.0)).all())
    wins, ties, losses = win_tie_loss(first, second)
    difference = mean_by_task(change, tasks, rng, resamples=resamples)
    if binary and len(set(tasks)) == len(tasks):
        test, p = "McNemar", mcnemar_exact(wins, losses) if len(tasks) > 1 else None
    else:
        test, p = "sign flip", sign_flip(change, tasks, rng, flips=flips)
    error = standard_error(change, tasks)
    return Paired(
        difference=difference,
        p=p,
        test=test,
        wins=wins,
        ties=ties,
        losses=losses,
        detectable=minimum_detectable(error),
        needed=tasks_needed(error, difference.clusters, difference.value),
    )


def win_tie_loss(ours: Values, base: Values) -> tuple[int, int, int]:
    """Pairs in which ours is above, level with, and below the base; values (n,), (n,)."""
    change = np.asarray(ours, dtype=np.float64) - np.asarray(base, dtype=np.float64)
    above, below = int((change > CLOSE).sum()), int((change < -CLOSE).sum())
    return above, len(change) - above - below, below


def mcnemar_exact(wins: int, losses: int) -> float:
    """Two-sided exact McNemar test: are `wins` of the discordant pairs what a fair coin would give?

    Ties carry no evidence; without any discordant pair p is 1. Source: McNemar 1947, exact form; equal to
    `scipy.stats.binomtest(wins, wins + losses).pvalue`.
    """
    if wins < 0 or losses < 0:
        raise ValueError("counts are not negative")
    n, few = wins + losses, min(wins, losses)
    if n == 0:
        return 1.0
    tail = sum(math.comb(n, k) for k in range(few + 1))
    return min(1.0, float(2 * tail / 2**n))


def sign_flip(
    differences: Values, tasks: Sequence[Hashable], rng: np.random.Generator, *, flips: int = FLIPS
) -> float | None:
    """Two-sided permutation test of a zero mean: each task's differences change their sign together.

    Args:
        differences: Ours less base, (n,).
        tasks: The task of each, (n,).
        rng: The generator; not used when all flips can be listed.
        flips: Random flips when there are more possible ones than this.

    Returns:
        The share of flips at least as far from zero as what was seen; the seen one counts as a flip, so that p is
        never 0. None for fewer than two tasks. Source: Fisher 1935; Phipson & Smyth 2010 for the count.
    """
    sums, _ = by_task(differences, tasks)
    if len(sums) < 2:
        return None
    sums = sums[np.abs(sums) > CLOSE]
    seen = abs(float(sums.sum())) - CLOSE
    if 2 ** len(sums) <= flips + 1:
        bits = (np.arange(2 ** len(sums))[:, None] >> np.arange(len(sums))) & 1
        return float((np.abs((2.0 * bits - 1.0) @ sums) >= seen).mean())
    far, at, rows = 0, 0, max(1, CHUNK // len(sums))
    while at < flips:
        size = min(rows, flips - at)
        signs = rng.integers(0, 2, size=(size, len(sums)), dtype=np.int8)
        # sum of signed values = 2 * (sum of those with a plus) - sum of all
        far += int((np.abs(2.0 * (signs @ sums) - sums.sum()) >= seen).sum())
        at += size
    return (1 + far) / (1 + flips)


def holm(values: Sequence[float | None]) -> list[float | None]:
    """P-values corrected for their number, step-down; None stays None and counts for nothing.

    Source: Holm 1979, Scandinavian Journal of Statistics 6.
    """
    known = sorted((p, i) for i, p in enumerate(values) if p is not None)
    found: list[float | None] = [None] * len(values)
    highest = 0.0
    for rank, (p, i) in enumerate(known):
        highest = max(highest, min(1.0, (len(known) - rank) * p))
        found[i] = highest
    return found


def standard_error(values: Values, tasks: Sequence[Hashable]) -> float | None:
    """Standard error of the mean of values (n,), clustered by task; None for fewer than two tasks."""
    sums, counts = by_task(values, tasks)
    groups, n = len(sums), float(counts.sum())
    if groups < 2:
        return None
    residual = sums - sums.sum() / n * counts
    return math.sqrt(groups / (groups - 1) * float((residual**2).sum())) / n


def minimum_detectable(error: float | None, *, alpha: float = ALPHA, power: float = POWER) -> float | None:
    """The smallest true difference that a two-sided test at `alpha` finds with `power`; normal approximation.

    None when the standard error is unknown or zero: without any spread nothing can be said about other differences.
    """
    return None if not error else _reach(alpha, power) * error


def tasks_needed(
    error: float | None, tasks: int, effect: float | None, *, alpha: float = ALPHA, power: float = POWER
) -> int | None:
    """Tasks needed to find a true difference of `effect`, given the standard error that `tasks` tasks gave."""
    if not error or not effect:
        return None
    return max(2, math.ceil(tasks * (_reach(alpha, power) * error / abs(effect)) ** 2))


def _reach(alpha: float, power: float) -> float:
    normal = NormalDist()
    return normal.inv_cdf(1 - alpha / 2) + normal.inv_cdf(power)
