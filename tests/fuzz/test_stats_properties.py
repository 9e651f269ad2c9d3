"""What must hold for the statistics of any sample: bounds, order, scale, and intervals around their estimates."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("numpy")
from reports.stats import Estimate, effective_n, mean_by_task, mean_of_means, paired_ratio, success_rate, wilson

VALUE = st.floats(0.0, 1.0, allow_subnormal=False).map(lambda x: round(x, 6))
TASK = st.sampled_from("abcdefgh")
SAMPLE = st.lists(st.tuples(VALUE, TASK), min_size=1, max_size=24)
FEW = 200
LITTLE = 1e-9


def rng() -> np.random.Generator:
    return np.random.default_rng(7)


def sensible(found: Estimate, low: float, high: float) -> None:
    """Inside the range of the sample, interval around the estimate."""
    assert found.value is not None
    assert low - LITTLE <= found.value <= high + LITTLE
    assert (found.low is None) == (found.high is None)
    assert found.low is None or found.clusters > 1  # none either where all tasks agree
    if found.low is not None and found.high is not None:
        assert low - LITTLE <= found.low <= found.value  # exactly: an error bar of negative length cannot be drawn
        assert found.value <= found.high <= high + LITTLE


@given(SAMPLE, st.randoms(use_true_random=False))
def test_a_mean_with_its_interval(sample: list[tuple[float, str]], chance: random.Random) -> None:
    values, tasks = map(list, zip(*sample, strict=True))
    found = mean_by_task(values, tasks, rng(), resamples=FEW)
    sensible(found, min(values), max(values))
    assert (found.n, found.clusters) == (len(values), len(set(tasks)))
    order = list(range(len(values)))
    chance.shuffle(order)
    again = mean_by_task([values[i] for i in order], [tasks[i] for i in order], rng(), resamples=FEW)
    assert again == found
    shifted = mean_by_task([2 * value + 1 for value in values], tasks, rng(), resamples=FEW)
    assert shifted.value == pytest.approx(2 * (found.value or 0) + 1)
    if found.low is not None:
        assert shifted.low == pytest.approx(2 * found.low + 1)
    wide = mean_by_task(values, tasks, rng(), resamples=FEW, level=0.99)
    if found.interval and wide.interval:
        assert wide.interval[0] <= found.interval[0] + LITTLE
        assert wide.interval[1] >= found.interval[1] - LITTLE
    alone = mean_of_means([(values, tasks)], rng(), resamples=FEW)
    assert alone.value == pytest.approx(found.value)
    assert (alone.interval is None) == (found.interval is None)


@given(st.lists(st.tuples(st.booleans(), TASK), min_size=1, max_size=30))
def test_a_success_rate(sample: list[tuple[bool, str]]) -> None:
    values, tasks = [float(won) for won, _ in sample], [task for _, task in sample]
    found = success_rate(values, tasks)
    sensible(found, 0.0, 1.0)
    assert len(set(tasks)) - LITTLE <= effective_n(values, tasks) <= len(values) + LITTLE
    other = success_rate([1.0 - value for value in values], tasks)
    assert other.value == pytest.approx(1 - (found.value or 0))
    if found.interval and other.interval:
        assert other.interval == pytest.approx((1 - found.interval[1], 1 - found.interval[0]))


@given(st.integers(2, 10_000), st.floats(0, 1))
def test_wilson(n: int, share: float) -> None:
    interval = wilson(share * n, n)
    assert interval is not None
    assert 0 <= interval[0] <= min(1.0, share * n / n)
    assert share * n / n <= interval[1] <= 1
    wider = wilson(share * n / 2, n / 2)
    assert wider is None or wider[1] - wider[0] >= interval[1] - interval[0] - LITTLE


PAIRS = st.lists(st.tuples(st.floats(0.01, 100), st.floats(0.01, 100), TASK), min_size=1, max_size=24)


@given(PAIRS)
def test_a_paired_ratio(pairs: list[tuple[float, float, str]]) -> None:
    ours, base, tasks = map(list, zip(*pairs, strict=True))
    ratios = [a / b for a, b in zip(ours, base, strict=True)]
    found = paired_ratio(ours, base, tasks, rng(), resamples=FEW)
    sensible(found, min(ratios) * (1 - 1e-9), max(ratios) * (1 + 1e-9))
    same = paired_ratio(base, base, tasks, rng(), resamples=FEW)
    assert same.value == 1.0
    assert same.interval in (None, pytest.approx((1.0, 1.0)))
    twice = paired_ratio([2 * a for a in ours], base, tasks, rng(), resamples=FEW)
    assert twice.value == pytest.approx(2 * (found.value or 0))


@settings(max_examples=30)
@given(SAMPLE, st.sampled_from([float("nan"), float("inf"), float("-inf")]), st.integers(0, 30))
def test_what_is_not_finite_is_refused(sample: list[tuple[float, str]], bad: float, at: int) -> None:
    values, tasks = map(list, zip(*sample, strict=True))
    values[at % len(values)] = bad
    for work in (lambda: mean_by_task(values, tasks, rng()), lambda: paired_ratio(values, values, tasks, rng())):
        with pytest.raises(ValueError, match="finite"):
            work()
