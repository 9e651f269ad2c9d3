"""Statistics: pure functions over plain arrays, with explicit randomness.

Every function returns its n, so that no number can be shown without it.  An empty sample has no mean, a sample of one
(or of one task) has no interval; both are None, never NaN or zero.  Episodes of one task are not independent of each
other: intervals resample or count *tasks*, with all their seeds inside.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Values = Sequence[float] | Floats
Z95: Final = 1.959963984540054
RESAMPLES: Final = 2000
CHUNK: Final = 1 << 20  # resampled tasks held at once


@dataclass(frozen=True, slots=True)
class Estimate:
    """A point estimate with its 95% interval; `n` values from `clusters` independent groups (tasks)."""

    value: float | None
    low: float | None
    high: float | None
    n: int
    clusters: int

    @property
    def interval(self) -> tuple[float, float] | None:
        """(low, high), or None when the sample allows none."""
        return None if self.low is None or self.high is None else (self.low, self.high)


EMPTY: Final = Estimate(None, None, None, 0, 0)


def mean_by_task(
    values: Values,
    tasks: Sequence[Hashable],
    rng: np.random.Generator,
    *,
    resamples: int = RESAMPLES,
    level: float = 0.95,
) -> Estimate:
    """Mean of `values` (n,) with a percentile bootstrap over tasks.

    Args:
        values: One number an episode.
        tasks: The task of each episode, same length; seeds of one task are resampled together.
        rng: The generator; the same state gives the same interval.
        resamples: Bootstrap draws.
        level: Coverage of the interval.

    Returns:
        The estimate; no interval for fewer than two tasks, nor where all tasks agree.

    Raises:
        ValueError: lengths differ, or a value is not finite.
    """
    sums, counts = by_task(values, tasks)
    return _ratio(sums, counts, rng, n=len(values), resamples=resamples, level=level)


def wilson(successes: float, n: float, *, z: float = Z95) -> tuple[float, float] | None:
    """Wilson's score interval for a share of `successes` in `n`; None when n < 2.

    `n` may be an effective sample size (see `effective_n`). Source: Wilson 1927, JASA 22.
    Raises ValueError when `successes` lies outside [0, n].
    """
    if n < 0 or successes < 0 or successes > n + 1e-9:
        raise ValueError(f"{successes} successes of {n} is no share")
    if n < 2:
        return None
    share = min(1.0, successes / n)
    centre = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    return _around(share, max(0.0, centre - half), min(1.0, centre + half))


def effective_n(values: Sequence[float], tasks: Sequence[Hashable]) -> float:
    """How many independent episodes `values` (n,) are worth when seeds share tasks: n / design effect.

    The design effect is the variance of the mean between tasks over that of independent draws, held in
    [1, n / tasks]; with no spread at all it cannot be estimated and the number of tasks is returned.
    Source: Korn & Graubard 1998.
    """
    sums, counts = by_task(values, tasks)
    n, groups = float(counts.sum()), len(sums)
    if groups < 2:
        return float(groups)
    mean = sums.sum() / n
    simple = float(np.var(np.asarray(values, dtype=np.float64))) / n
    if simple == 0.0:
        return float(groups)
    residual = sums - mean * counts
    clustered = groups / (groups - 1) * float((residual**2).sum()) / n**2
    return n / min(max(clustered / simple, 1.0), n / groups)


def success_rate(successes: Sequence[float], tasks: Sequence[Hashable]) -> Estimate:
    """Share of successes (n,) of 0 or 1, with Wilson's interval on the effective n."""
    if not successes:
        return EMPTY
    values = finite(successes)
    if not np.isin(values, (0.0, 1.0)).all():
        raise ValueError("a success is 0 or 1")
    share, clusters = float(values.mean()), len(set(tasks))
    worth = effective_n(successes, tasks)
    interval = wilson(share * worth, worth) if clusters > 1 else None
    low, high = (None, None) if interval is None else _around(share, *interval)
    return Estimate(share, low, high, len(values), clusters)


def paired_ratio(
    ours: Sequence[float],
    base: Sequence[float],
    tasks: Sequence[Hashable],
    rng: np.random.Generator,
    *,
    resamples: int = RESAMPLES,
    level: float = 0.95,
) -> Estimate:
    """sum(ours) / sum(base) over pairs (n,), with a percentile bootstrap over tasks: the paper's Avg. T.

    Pair i is the same actor, environment, task and seed under the method and under the baseline. The value is None
    when there is no pair or the baseline took no time at all.
    """
    if len(ours) != len(base):
        raise ValueError(f"{len(ours)} against {len(base)} values: pairs need both")
    top, _ = by_task(ours, tasks)
    bottom, _ = by_task(base, tasks)
    return _ratio(top, bottom, rng, n=len(ours), resamples=resamples, level=level)


def mean_of_means(
    parts: Sequence[tuple[Sequence[float], Sequence[Hashable]]],
    rng: np.random.Generator,
    *,
    resamples: int = RESAMPLES,
    level: float = 0.95,
) -> Estimate:
    """Unweighted mean over several samples' means, tasks resampled inside each sample.

    Args:
        parts: (values, tasks) of each sample, such as one an environment.
        rng: The generator.
        resamples: Bootstrap draws.
        level: Coverage of the interval.

    Returns:
        The estimate; no value when any sample is empty, no interval when any has fewer than two tasks, or
        when all agree.
    """
    pairs = [by_task(values, tasks) for values, tasks in parts]
    n, clusters = sum(len(values) for values, _ in parts), sum(len(sums) for sums, _ in pairs)
    if not pairs or any(len(sums) == 0 for sums, _ in pairs):
        return Estimate(None, None, None, n, clusters)
    value = float(np.mean([sums.sum() / counts.sum() for sums, counts in pairs]))
    if any(len(sums) < 2 for sums, _ in pairs):
        return Estimate(value, None, None, n, clusters)
    draws = np.mean([_draws(sums, counts, rng, resamples) for sums, counts in pairs], axis=0)
    low, high = _between(value, draws, level)
    return Estimate(value, low, high, n, clusters)


def _between(value: float, draws: Floats, level: float) -> tuple[float, float] | tuple[None, None]:
    """The middle `level` of the draws; nothing where all are alike: resampling cannot tell that from certainty."""
    if np.ptp(draws) <= 1e-12 * max(1.0, abs(value)):
        return None, None
    return _around(value, *np.quantile(draws, ((1 - level) / 2, (1 + level) / 2)))


def _around(value: float, low: float, high: float) -> tuple[float, float]:
    """The interval, widened to its estimate where only rounding keeps them apart (an error bar cannot be negative)."""
    slack = 1e-9 * max(1.0, abs(value))
    low = value if value < low <= value + slack else low
    high = value if value - slack <= high < value else high
    return float(low), float(high)


def _ratio(top: Floats, bottom: Floats, rng: np.random.Generator, *, n: int, resamples: int, level: float) -> Estimate:
    """sum(top) / sum(bottom) over tasks (t,), with the interval of tasks resampled."""
    tasks = len(top)
    if tasks == 0 or bottom.sum() == 0:
        return Estimate(None, None, None, n, tasks)
    value = float(top.sum() / bottom.sum())
    if tasks < 2:
        return Estimate(value, None, None, n, tasks)
    draws = _draws(top, bottom, rng, resamples)
    low, high = _between(value, draws[np.isfinite(draws)], level)
    return Estimate(value, low, high, n, tasks)


def _draws(top: Floats, bottom: Floats, rng: np.random.Generator, resamples: int) -> Floats:
    """(resamples,) values of sum(top) / sum(bottom); infinite where a draw's bottom is zero."""
    tasks, at = len(top), 0
    above, below = np.empty(resamples), np.empty(resamples)
    rows = max(1, CHUNK // tasks)
    while at < resamples:
        picked = rng.integers(0, tasks, size=(min(rows, resamples - at), tasks))
        above[at : at + len(picked)] = top[picked].sum(axis=1)
        below[at : at + len(picked)] = bottom[picked].sum(axis=1)
        at += len(picked)
    drawn: Floats = np.divide(above, below, out=np.full(resamples, np.inf), where=below != 0)
    return drawn


def by_task(values: Values, tasks: Sequence[Hashable]) -> tuple[Floats, Floats]:
    """Sum and count of the values (n,) of each task, (t,) each; tasks in order of their names.

    Values are added in ascending order, so that the order of the rows changes nothing, not even in the last digit.
    Raises ValueError when lengths differ or a value is not finite.
    """
    if len(values) != len(tasks):
        raise ValueError(f"{len(values)} values for {len(tasks)} tasks")
    numbers = finite(values)
    index = {name: i for i, name in enumerate(sorted(set(tasks), key=repr))}
    where = np.array([index[task] for task in tasks], dtype=np.intp)
    counts = np.bincount(where, minlength=len(index)).astype(np.float64)
    if not len(numbers):
        return np.zeros(0), counts
    starts = np.concatenate(([0], np.cumsum(counts)[:-1])).astype(np.intp)
    sums: Floats = np.add.reduceat(numbers[np.lexsort((numbers, where))], starts)
    return sums, counts


def finite(values: Values) -> Floats:
    """Values (n,) as an array. Raises ValueError when one of them is NaN or infinite."""
    numbers = np.asarray(values, dtype=np.float64)
    if not np.isfinite(numbers).all():
        raise ValueError("a value is not finite")
    return numbers
