"""Scores of judges: pure functions over answers, each with its definition; arrays are one-dimensional."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

Value = dict[str, Any]  # value, n, low, high
Z = 1.959963984540054


def share(hits: Sequence[bool], clusters: Sequence[Any] | None = None) -> Value:
    """A share with n and a 95% interval; by tasks (cluster bootstrap) when clusters are given, else Wilson's."""
    n = len(hits)
    if n == 0:
        return {"value": None, "n": 0, "low": None, "high": None}
    value = sum(hits) / n
    if n == 1:
        return {"value": value, "n": n, "low": None, "high": None}
    several = clusters is not None and len(set(clusters)) > 1
    low, high = bootstrap([float(hit) for hit in hits], clusters or ()) if several else wilson(sum(hits), n)
    return {"value": value, "n": n, "low": low, "high": high}


def wilson(hits: int, n: int) -> tuple[float, float]:
    """Wilson's 95% interval of a share."""
    p, z2 = hits / n, Z * Z
    middle = (p + z2 / (2 * n)) / (1 + z2 / n)
    half = Z * math.sqrt(p * (1 - p) / n + z2 / (4 * n * n)) / (1 + z2 / n)
    return min(p, middle - half), max(p, middle + half)  # rounding may leave the value itself just outside


def bootstrap(values: Sequence[float], clusters: Sequence[Any], draws: int = 1000) -> tuple[float, float]:
    """95% percentile interval of a mean over whole clusters drawn with replacement (fixed seed)."""
    import numpy as np

    names = {name: i for i, name in enumerate(dict.fromkeys(clusters))}
    sums, counts = np.zeros(len(names)), np.zeros(len(names))
    for value, name in zip(values, clusters, strict=True):
        sums[names[name]] += value
        counts[names[name]] += 1
    picks = np.random.default_rng(0).integers(0, len(names), size=(draws, len(names)))
    means = sums[picks].sum(axis=1) / counts[picks].sum(axis=1)
    low, high = np.percentile(means, [2.5, 97.5])
    return float(low), float(high)


def resampled(
    statistic: Callable[[Sequence[int]], float | None], clusters: Sequence[Any], draws: int = 300
) -> tuple[float | None, float | None]:
    """95% percentile interval of any statistic over whole clusters drawn with replacement (fixed seed).

    Args:
        statistic: value of the items with these indices (with repeats), None where it has none.
        clusters: one name an item; with a single cluster there is no interval.
        draws: bootstrap samples.
    """
    import numpy as np

    held: dict[Any, list[int]] = {}
    for index, name in enumerate(clusters):
        held.setdefault(name, []).append(index)
    if len(held) < 2:
        return None, None
    groups = list(held.values())
    picks = np.random.default_rng(0).integers(0, len(groups), size=(draws, len(groups)))
    found = (statistic([index for pick in row for index in groups[pick]]) for row in picks)
    values = [value for value in found if value is not None]
    if not values:
        return None, None
    low, high = np.percentile(values, [2.5, 97.5])
    return float(low), float(high)


def calibration_error(confidence: Sequence[float], hits: Sequence[bool], bins: int = 10) -> float | None:
    """Expected calibration error: mean over equal-width bins of |accuracy - confidence|, weighted by size."""
    if not confidence:
        return None
    held: dict[int, list[tuple[float, bool]]] = {}
    for p, hit in zip(confidence, hits, strict=True):
        held.setdefault(min(int(p * bins), bins - 1), []).append((p, hit))
    gaps = (abs(sum(h for _, h in part) - sum(p for p, _ in part)) for part in held.values())
    return sum(gaps) / len(confidence)


def spearman(one: Sequence[float], other: Sequence[float]) -> float | None:
    """Rank correlation with mean ranks for ties; None when a side is constant or has fewer than two values."""
    import numpy as np

    if len(one) < 2:
        return None
    left, right = _ranks(one), _ranks(other)
    if left.std() == 0 or right.std() == 0:
        return None
    return float(np.corrcoef(left, right)[0, 1])


def _ranks(values: Sequence[float]) -> Any:
    import numpy as np

    _, inverse, counts = np.unique(np.asarray(values), return_inverse=True, return_counts=True)
    ends = counts.cumsum()
    return ((ends - counts + ends - 1) / 2.0)[inverse]


def cross_entropy(scores: Sequence[float], targets: Sequence[float], floor: float = 1e-7) -> float | None:
    """Mean soft binary cross-entropy of scores in [0, 1] against targets in [0, 1]."""
    if not scores:
        return None
    clipped = [min(max(score, floor), 1 - floor) for score in scores]
    terms = (-t * math.log(p) - (1 - t) * math.log(1 - p) for p, t in zip(clipped, targets, strict=True))
    return sum(terms) / len(scores)


def by_environment(items: Sequence[Any], score: Callable[[Sequence[Any]], Mapping[str, Any]]) -> dict[str, Any]:
    """`score` of each environment's items, and of all as `all` when there are several."""
    parts: dict[str, list[Any]] = {}
    for item in items:
        parts.setdefault(item.environment, []).append(item)
    found = {name: dict(score(part)) for name, part in sorted(parts.items())}
    return found if len(parts) == 1 else {**found, "all": dict(score(items))}
