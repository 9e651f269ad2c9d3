"""Robust aggregates: pass^k, interquartile mean and performance profiles, as pure functions with tasks as the unit.

Sources: pass^k, Yao et al. 2024 (tau-bench, section 3); IQM and profiles, Agarwal et al. 2021 (NeurIPS).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from math import comb
from typing import Final

import numpy as np

from reports.stats import CHUNK, EMPTY, RESAMPLES, Estimate, Floats, finite, mean_by_task

TRIM: Final = 0.25


def pass_hat_k(
    successes: Sequence[float],
    tasks: Sequence[Hashable],
    k: int,
    rng: np.random.Generator,
    *,
    resamples: int = RESAMPLES,
) -> Estimate:
    """pass^k: the chance that k fresh attempts at a task *all* succeed, averaged over tasks.

    A task with c successes in n attempts gives comb(c, k) / comb(n, k), which is unbiased. It is not pass@k (at least
    one of k succeeds). Tasks with fewer than k attempts say nothing and are left out.

    Args:
        successes: 0 or 1 an episode, (n,).
        tasks: The task of each, (n,).
        k: Attempts, at least 1.
        rng: The generator of the interval.
        resamples: Bootstrap draws over tasks.

    Returns:
        The estimate; `n` and `clusters` both count the tasks that took part.

    Raises:
        ValueError: k below 1, a value that is not 0 or 1, or lengths that differ.
    """
    if k < 1:
        raise ValueError(f"k is at least 1, not {k}")
    values = finite(successes)
    if len(values) != len(tasks):
        raise ValueError(f"{len(values)} values for {len(tasks)} tasks")
    if not np.isin(values, (0.0, 1.0)).all():
        raise ValueError("a success is 0 or 1")
    tried = Counter(tasks)
    won = Counter(task for task, value in zip(tasks, values, strict=True) if value)
    shares = {task: comb(won[task], k) / comb(n, k) for task, n in tried.items() if n >= k}
    return mean_by_task(list(shares.values()), list(shares), rng, resamples=resamples)


def iqm(
    values: Sequence[float],
    tasks: Sequence[Hashable],
    rng: np.random.Generator,
    *,
    resamples: int = RESAMPLES,
    level: float = 0.95,
) -> Estimate:
    """Interquartile mean of values (n,): the mean without the lowest and the highest quarter, int(n / 4) values each.

    Equal to ``scipy.stats.trim_mean(values, 0.25)``. The interval resamples tasks with all their seeds.
    """
    if not len(values):
        return EMPTY
    ordered, index, groups = _sorted(values, tasks)
    value = float(_trimmed(np.ones((1, len(ordered))), ordered)[0])
    if groups < 2:
        return Estimate(value, None, None, len(ordered), groups)
    draws = np.concatenate(
        [_trimmed(counts[:, index], ordered) for counts in resampled(groups, rng, resamples, len(ordered))]
    )
    low, high = np.quantile(draws, ((1 - level) / 2, (1 + level) / 2))
    return Estimate(value, float(low), float(high), len(ordered), groups)


@dataclass(frozen=True, slots=True)
class Profile:
    """A performance profile: at each of `taus` (t,) the share of episodes with a score above it.

    `low` and `high` (t,) are a pointwise 95% band over tasks, or None for fewer than two tasks.
    """

    taus: Floats
    share: Floats
    low: Floats | None
    high: Floats | None
    n: int
    clusters: int


def performance_profile(
    values: Sequence[float],
    tasks: Sequence[Hashable],
    taus: Sequence[float] | Floats,
    rng: np.random.Generator,
    *,
    resamples: int = RESAMPLES,
    level: float = 0.95,
) -> Profile:
    """Share of values (n,) strictly above each of taus (t,): the whole distribution of scores in one curve.

    Raises:
        ValueError: no value, a value that is not finite, or lengths that differ.
    """
    if not len(values):
        raise ValueError("a profile needs a value")
    ordered, index, groups = _sorted(values, tasks)
    grid = np.asarray(taus, dtype=np.float64)
    above = (ordered[:, None] > grid[None, :]).astype(np.float64)
    share = above.mean(axis=0)
    if groups < 2:
        return Profile(grid, share, None, None, len(ordered), groups)
    by_group = np.zeros((groups, len(grid)))
    np.add.at(by_group, index, above)
    sizes = np.bincount(index, minlength=groups).astype(np.float64)
    draws = [(counts @ by_group) / (counts @ sizes)[:, None] for counts in resampled(groups, rng, resamples, groups)]
    low, high = np.quantile(np.concatenate(draws), ((1 - level) / 2, (1 + level) / 2), axis=0)
    return Profile(grid, share, low, high, len(ordered), groups)


def resampled(groups: int, rng: np.random.Generator, resamples: int, width: int) -> Iterator[Floats]:
    """How often each of `groups` tasks is drawn, (rows, groups) a piece, `resamples` rows in all.

    `width` is the number of columns that the caller makes of a row: pieces are kept small accordingly.
    """
    rows = max(1, CHUNK // max(groups, width))
    for start in range(0, resamples, rows):
        size = min(rows, resamples - start)
        picked = rng.integers(0, groups, size=(size, groups))
        picked += np.arange(size)[:, None] * groups
        yield np.bincount(picked.ravel(), minlength=size * groups).reshape(size, groups).astype(np.float64)


def _sorted(values: Sequence[float], tasks: Sequence[Hashable]) -> tuple[Floats, np.ndarray, int]:
    """Values in ascending order, the number of each one's task (tasks in order of their names), and how many tasks."""
    if len(values) != len(tasks):
        raise ValueError(f"{len(values)} values for {len(tasks)} tasks")
    numbers = finite(values)
    place = {name: i for i, name in enumerate(sorted(set(tasks), key=repr))}
    where = np.array([place[task] for task in tasks], dtype=np.intp)
    # By task within equal values, so that the order of the rows changes nothing.
    order = np.lexsort((where, numbers))
    return numbers[order], where[order], len(place)


def _trimmed(weights: Floats, ordered: Floats) -> Floats:
    """Trimmed means (r,) of sorted values (n,) that each occur `weights` (r, n) times."""
    ends = np.cumsum(weights, axis=1)
    total = ends[:, -1:]
    cut = np.floor(TRIM * total)
    kept = np.clip(ends, cut, total - cut)
    kept = np.diff(kept, axis=1, prepend=cut)
    means: Floats = (kept @ ordered) / (total - 2 * cut)[:, 0]
    return means
