"""Statistics against scipy, closed forms and edge cases."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats as scipy_stats

from reports.stats import effective_n, mean_by_task, mean_of_means, paired_ratio, success_rate, wilson


def rng() -> np.random.Generator:
    return np.random.default_rng(7)


@pytest.mark.parametrize(("k", "n"), [(0, 10), (3, 10), (10, 10), (61, 134), (1, 2)])
def test_wilson_is_scipys(k: int, n: int) -> None:
    expected = scipy_stats.binomtest(k, n).proportion_ci(method="wilson")
    assert wilson(k, n) == pytest.approx((expected.low, expected.high), abs=1e-9)


def test_wilson_worked_example() -> None:
    # Newcombe 1998, Statistics in Medicine 17, table I: 81 of 263 gives 0.2553 to 0.3662.
    assert wilson(81, 263) == pytest.approx((0.2553, 0.3662), abs=5e-5)


def test_one_has_no_interval_and_none_has_no_mean() -> None:
    one = mean_by_task([0.4], ["a"], rng())
    assert (one.value, one.interval, one.n) == (0.4, None, 1)
    none = mean_by_task([], [], rng())
    assert (none.value, none.interval, none.n) == (None, None, 0)
    assert success_rate([], []).value is None
    assert success_rate([1.0], ["a"]).interval is None
    assert wilson(1, 1) is None
    assert paired_ratio([], [], [], rng()).value is None


def test_many_seeds_of_one_task_have_no_interval() -> None:
    assert mean_by_task([0.1, 0.9, 0.5], ["a"] * 3, rng()).interval is None
    assert success_rate([1.0, 0.0, 1.0], ["a"] * 3).interval is None


def test_bootstrap_agrees_with_scipy() -> None:
    values = np.random.default_rng(1).normal(0.5, 0.2, 60)
    ours = mean_by_task(list(values), list(range(60)), rng(), resamples=8000)
    theirs = scipy_stats.bootstrap(
        (values,), np.mean, n_resamples=8000, method="percentile", rng=np.random.default_rng(3)
    ).confidence_interval
    assert ours.value == pytest.approx(values.mean())
    assert ours.interval == pytest.approx((theirs.low, theirs.high), abs=0.006)


def test_the_generator_is_used() -> None:
    values, tasks = [(i * 0.6180339887) % 1 for i in range(30)], list(range(30))
    assert mean_by_task(values, tasks, rng()) == mean_by_task(values, tasks, rng())
    assert mean_by_task(values, tasks, rng()) != mean_by_task(values, tasks, np.random.default_rng(8))


def test_order_of_rows_changes_nothing() -> None:
    values, tasks = [0.1, 0.5, 0.9, 0.3, 0.7], ["b", "a", "b", "c", "a"]
    order = [3, 1, 4, 0, 2]
    shuffled = mean_by_task([values[i] for i in order], [tasks[i] for i in order], rng())
    assert shuffled == mean_by_task(values, tasks, rng())


def test_tasks_are_resampled_with_their_seeds() -> None:
    """Seeds that agree within a task carry no more than the tasks do: the interval must not shrink."""
    values = [0.0, 1.0] * 10
    tasks = [f"t{i}" for i in range(20)]
    single = mean_by_task(values, tasks, rng())
    repeated = mean_by_task([v for v in values for _ in range(8)], [t for t in tasks for _ in range(8)], rng())
    assert single.interval is not None
    assert repeated.interval == single.interval
    assert (repeated.n, repeated.clusters) == (160, 20)


def test_effective_n_between_tasks_and_episodes() -> None:
    same = [1.0, 1.0, 0.0, 0.0] * 5
    tasks = [f"t{i // 2}" for i in range(20)]
    assert effective_n(same, tasks) == pytest.approx(10, rel=0.06)
    assert effective_n([1.0, 0.0] * 10, tasks) == pytest.approx(20)
    assert effective_n([1.0] * 20, tasks) == 10


def test_success_without_spread_keeps_a_width() -> None:
    sure = success_rate([1.0] * 20, [f"t{i}" for i in range(20)])
    assert sure.value == 1.0
    assert sure.low == pytest.approx(0.8389, abs=1e-3)


def test_paired_ratio_is_a_ratio_of_sums() -> None:
    found = paired_ratio([2.0, 4.0], [1.0, 3.0], ["a", "b"], rng())
    assert found.value == 1.5
    assert found.low == pytest.approx(4 / 3)
    assert found.high == pytest.approx(2.0)
    assert paired_ratio([1.0], [0.0], ["a"], rng()).value is None


def test_mean_of_means_weighs_samples_alike() -> None:
    parts = [([1.0] * 50 + [0.0] * 50, list(range(100))), ([0.0, 0.2], [0, 1])]
    found = mean_of_means(parts, rng())
    assert found.value == pytest.approx(0.3)
    assert found.low is not None
    assert found.low < 0.3 < (found.high or 0)
    assert mean_of_means([([], []), ([1.0], [0])], rng()).value is None
    assert mean_of_means([([0.5], [0]), ([1.0, 0.0], [0, 1])], rng()).interval is None


@pytest.mark.parametrize("bad", [[float("nan")], [float("inf")]])
def test_what_is_not_finite_is_refused(bad: list[float]) -> None:
    with pytest.raises(ValueError, match="finite"):
        mean_by_task(bad, ["a"], rng())


def test_lengths_and_values_are_checked() -> None:
    with pytest.raises(ValueError, match="tasks"):
        mean_by_task([1.0, 2.0], ["a"], rng())
    with pytest.raises(ValueError, match="pairs"):
        paired_ratio([1.0], [1.0, 2.0], ["a"], rng())
    with pytest.raises(ValueError, match="0 or 1"):
        success_rate([0.5, 1.0], ["a", "b"])
    with pytest.raises(ValueError, match="no share"):
        wilson(3, 2)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.floats(0, 1), st.integers(0, 5)), min_size=1, max_size=40))
def test_intervals_hold_the_mean(pairs: list[tuple[float, int]]) -> None:
    values, tasks = [v for v, _ in pairs], [t for _, t in pairs]
    found = mean_by_task(values, tasks, rng(), resamples=200)
    assert found.value == pytest.approx(np.mean(values))
    if found.interval is not None:
        assert -1e-9 <= found.interval[0] <= found.interval[1] <= 1 + 1e-9
    means = [np.mean([v for v, t in pairs if t == task]) for task in set(tasks)]
    if len(means) < 2:
        assert found.interval is None
    elif np.ptp(means) > 1e-6:
        assert found.interval is not None, "only tasks that are all alike leave nothing to resample"
