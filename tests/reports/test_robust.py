"""pass^k, IQM and profiles against scipy, enumeration and worked examples."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats as scipy_stats

from reports.robust import iqm, pass_hat_k, performance_profile, resampled
from reports.stats import EMPTY


def rng(seed: int = 7) -> np.random.Generator:
    return np.random.default_rng(seed)


def test_pass_hat_k_is_all_of_k_by_enumeration() -> None:
    runs = {"a": [1.0, 1.0, 0.0, 1.0], "b": [0.0, 1.0, 0.0, 0.0], "c": [1.0] * 4}
    values, tasks = [v for run in runs.values() for v in run], [t for t, run in runs.items() for _ in run]
    for k in (1, 2, 3, 4):
        by_hand = np.mean([np.mean([all(pick) for pick in combinations(run, k)]) for run in runs.values()])
        found = pass_hat_k(values, tasks, k, rng())
        assert found.value == pytest.approx(by_hand)
        assert (found.n, found.clusters) == (3, 3)
    # pass@k is another number: one success of two is enough there.
    at_least_one = np.mean([np.mean([any(pick) for pick in combinations(run, 2)]) for run in runs.values()])
    assert pass_hat_k(values, tasks, 2, rng()).value != pytest.approx(at_least_one)


def test_pass_hat_1_is_the_success_rate_and_few_seeds_are_left_out() -> None:
    assert pass_hat_k([1.0, 0.0, 1.0, 1.0], ["a", "a", "b", "b"], 1, rng()).value == 0.75
    uneven = pass_hat_k([1.0, 1.0, 1.0, 0.0, 1.0], ["a", "a", "b", "c", "c"], 2, rng())
    assert (uneven.value, uneven.n) == (0.5, 2)
    assert pass_hat_k([1.0], ["a"], 2, rng()) == EMPTY
    assert pass_hat_k([1.0, 1.0], ["a", "a"], 2, rng()).interval is None


def test_pass_hat_k_refuses() -> None:
    with pytest.raises(ValueError, match="0 or 1"):
        pass_hat_k([0.5], ["a"], 1, rng())
    with pytest.raises(ValueError, match="at least 1"):
        pass_hat_k([1.0], ["a"], 0, rng())
    with pytest.raises(ValueError, match="tasks"):
        pass_hat_k([1.0], [], 1, rng())


@settings(max_examples=60, deadline=None)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=60))
def test_iqm_is_scipys_trimmed_mean(values: list[float]) -> None:
    found = iqm(values, list(range(len(values))), rng(), resamples=50)
    assert found.value == pytest.approx(scipy_stats.trim_mean(values, 0.25), abs=1e-12)


def test_iqm_interval_is_that_of_resampled_tasks() -> None:
    """Against a plain loop over the same draws, with seeds inside tasks and unequal numbers of them."""
    source = np.random.default_rng(2)
    tasks = [f"t{i:02d}" for i in range(12) for _ in range(1 + i % 3)]
    values = list(source.random(len(tasks)))
    found = iqm(values, tasks, rng(), resamples=300)
    drawn = []
    for counts in resampled(12, rng(), 300, len(values)):
        for row in counts:
            sample = [v for v, t in zip(values, tasks, strict=True) for _ in range(int(row[int(t[1:])]))]
            drawn.append(scipy_stats.trim_mean(sample, 0.25))
    assert found.interval == pytest.approx(tuple(np.quantile(drawn, (0.025, 0.975))), abs=1e-12)
    assert iqm([0.2, 0.4], ["a", "a"], rng()).interval is None
    assert iqm([], [], rng()) == EMPTY


def test_iqm_ignores_outliers() -> None:
    values = [0.5] * 10 + [0.0, 1.0]
    assert iqm(values, list(range(12)), rng()).value == 0.5


def test_profile_is_the_share_above() -> None:
    values, taus = [0.0, 0.25, 0.5, 1.0], [0.0, 0.25, 0.5, 0.99, 1.0]
    found = performance_profile(values, list("abcd"), taus, rng())
    assert list(found.share) == [0.75, 0.5, 0.25, 0.25, 0.0]
    assert found.low is not None
    assert found.high is not None
    assert (found.low <= found.share).all()
    assert (found.share <= found.high).all()
    # The area under the profile is the mean.
    grid = np.linspace(0, 1, 2001)
    area = np.trapezoid(performance_profile(values, list("abcd"), grid, rng()).share, grid)
    assert area == pytest.approx(np.mean(values), abs=1e-3)


def test_profile_edges() -> None:
    single = performance_profile([0.3, 0.6], ["a", "a"], [0.5], rng())
    assert (single.low, single.high, single.n, single.clusters) == (None, None, 2, 1)
    with pytest.raises(ValueError, match="needs a value"):
        performance_profile([], [], [0.5], rng())


def test_profile_band_is_the_bootstrap_of_a_share() -> None:
    values = [1.0] * 30 + [0.0] * 20
    found = performance_profile(values, list(range(50)), [0.5], rng(), resamples=6000)
    expected = scipy_stats.bootstrap((np.array(values),), np.mean, method="percentile", n_resamples=6000, rng=rng(3))
    interval = expected.confidence_interval
    assert found.low is not None
    assert found.high is not None
    assert (found.low[0], found.high[0]) == pytest.approx((interval.low, interval.high), abs=0.021)
