"""Paired statistics against scipy, published worked examples and enumeration."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats as scipy_stats

from reports.paired import (
    NOTHING,
    compare,
    holm,
    mcnemar_exact,
    minimum_detectable,
    sign_flip,
    standard_error,
    tasks_needed,
    win_tie_loss,
)


def rng(seed: int = 7) -> np.random.Generator:
    return np.random.default_rng(seed)


@pytest.mark.parametrize(("wins", "losses"), [(0, 0), (1, 0), (5, 5), (3, 11), (21, 9), (40, 61)])
def test_mcnemar_is_scipys_binomial(wins: int, losses: int) -> None:
    expected = scipy_stats.binomtest(wins, wins + losses).pvalue if wins + losses else 1.0
    assert mcnemar_exact(wins, losses) == pytest.approx(expected, abs=1e-12)
    assert mcnemar_exact(losses, wins) == mcnemar_exact(wins, losses)


def test_mcnemar_worked_example() -> None:
    # Fay 2015 (R package exact2x2, vignette on McNemar): 21 against 9 discordant pairs, exact two-sided p 0.04277.
    assert mcnemar_exact(21, 9) == pytest.approx(0.04277, abs=5e-6)


def test_sign_flip_is_scipys_permutation_test() -> None:
    change = np.random.default_rng(3).normal(0.2, 0.5, 10)
    expected = scipy_stats.permutation_test((change,), np.mean, permutation_type="samples", n_resamples=np.inf).pvalue
    assert sign_flip(change, list(range(10)), rng()) == pytest.approx(expected, abs=1e-12)


def test_sign_flip_worked_example() -> None:
    # Fisher 1935, The Design of Experiments, section 21: Darwin's maize, 15 pairs in eighths of an inch. 863 of 2**15
    # sign patterns reach 314 or more in one direction (838 exceed, 25 equal): two-sided p 0.0527.
    maize = [49, -67, 8, 16, 6, 23, 28, 41, 14, 29, 56, 24, 75, 60, -48]
    assert sum(maize) == 314
    assert sign_flip(maize, list(range(15)), rng(), flips=2**15) == pytest.approx(2 * 863 / 2**15)


def test_sampled_flips_agree_with_listed_ones() -> None:
    change = list(np.random.default_rng(5).normal(0.25, 0.5, 14))
    exact = sign_flip(change, list(range(14)), rng(), flips=2**14)
    sampled = sign_flip(change, list(range(14)), rng(), flips=9999)
    assert exact is not None
    assert sampled == pytest.approx(exact, abs=4 * math.sqrt(exact * (1 - exact) / 9999))
    many = list(np.random.default_rng(5).normal(0.5, 0.5, 60))
    assert sign_flip(many, list(range(60)), rng()) == 1 / 10000


def test_flips_keep_the_seeds_of_a_task_together() -> None:
    """Eight seeds that say the same are one piece of evidence."""
    change = [0.3, -0.1, 0.4, 0.2, 0.25]
    single = sign_flip(change, list(range(5)), rng())
    repeated = sign_flip([c for c in change for _ in range(8)], [t for t in range(5) for _ in range(8)], rng())
    assert repeated == single
    by_hand = [
        abs(sum(s * c for s, c in zip(signs, change, strict=True))) for signs in itertools.product((1, -1), repeat=5)
    ]
    assert single == sum(value >= 1.05 - 1e-12 for value in by_hand) / 32


def test_false_alarms_stay_at_the_level() -> None:
    """Under no difference, 5% of p-values are at most 0.05, with seeds that share their task's luck."""
    source = np.random.default_rng(11)
    tasks = [task for task in range(30) for _ in range(3)]
    found = []
    for _ in range(300):
        luck = np.repeat(source.normal(0, 1, 30), 3)
        found.append(sign_flip(luck + source.normal(0, 0.3, 90), tasks, source, flips=399))
    share = np.mean([p is not None and p <= 0.05 for p in found])
    assert 0.02 <= share <= 0.09


def test_holm_worked_examples() -> None:
    # Holm 1979 as in R's p.adjust(c(0.01, 0.02, 0.03, 0.04, 0.05), "holm").
    assert holm([0.01, 0.02, 0.03, 0.04, 0.05]) == pytest.approx([0.05, 0.08, 0.09, 0.09, 0.09])
    assert holm([0.04, None, 0.01]) == [0.04, None, 0.02]
    assert holm([0.9, 0.8]) == [1.0, 1.0]
    assert holm([]) == []


@settings(max_examples=60, deadline=None)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_holm_is_its_definition(values: list[float]) -> None:
    found = holm(values)
    order = sorted(range(len(values)), key=lambda i: values[i])
    for rank, i in enumerate(order):
        steps = [min(1.0, (len(values) - j) * values[order[j]]) for j in range(rank + 1)]
        assert found[i] == pytest.approx(max(steps))
        assert (found[i] or 0) >= values[i]


def test_standard_error_of_single_seeds_is_the_usual_one() -> None:
    values = list(np.random.default_rng(2).normal(size=40))
    assert standard_error(values, list(range(40))) == pytest.approx(scipy_stats.sem(values))
    assert standard_error([1.0, 2.0], ["a", "a"]) is None


def test_detectable_effect_has_the_stated_power() -> None:
    error = 0.031
    effect = minimum_detectable(error)
    assert effect is not None
    limit = scipy_stats.norm.ppf(0.975)
    power = scipy_stats.norm.sf(limit - effect / error) + scipy_stats.norm.cdf(-limit - effect / error)
    assert power == pytest.approx(0.8, abs=1e-4)
    # The textbook factor: 1.96 + 0.84 = 2.80 standard errors.
    assert effect / error == pytest.approx(2.8016, abs=1e-4)
    assert minimum_detectable(0.0) is None
    assert minimum_detectable(None) is None


def test_tasks_needed_worked_example() -> None:
    # Machin et al., Sample Size Tables, paired means: effect size 0.5 at 5% and 80% power needs 32 pairs (normal form).
    assert tasks_needed(1.0 / math.sqrt(100), 100, 0.5) == 32
    assert tasks_needed(0.1, 50, 0.0) is None
    assert tasks_needed(0.0, 50, 0.3) is None


def test_win_tie_loss() -> None:
    assert win_tie_loss([0.3, 0.1 + 0.2, 1.0, 0.0], [0.1, 0.3, 0.0, 1.0]) == (2, 1, 1)


def test_which_test_is_used() -> None:
    ours, base = [1.0, 1.0, 0.0, 1.0], [0.0, 1.0, 0.0, 0.0]
    assert compare(ours, base, list("abcd"), rng()).test == "McNemar"
    assert compare(ours, base, list("aabb"), rng()).test == "sign flip"
    assert compare([0.5, *ours[1:]], base, list("abcd"), rng()).test == "sign flip"


def test_edges() -> None:
    assert compare([], [], [], rng()) == NOTHING
    one = compare([1.0], [0.0], ["a"], rng())
    assert (one.difference.value, one.difference.interval, one.p, one.detectable) == (1.0, None, None, None)
    same = compare([0.4] * 5, [0.4] * 5, list("abcde"), rng())
    assert (same.difference.value, same.p, same.ties, same.detectable, same.needed) == (0.0, 1.0, 5, None, None)
    shifted = compare([0.5] * 6, [0.25] * 6, list("abcdef"), rng())
    assert shifted.difference.interval is None  # all tasks agree, which is no proof of certainty
    assert shifted.p == 2 / 64
    with pytest.raises(ValueError, match="pairs need all three"):
        compare([1.0], [1.0, 0.0], ["a"], rng())
    with pytest.raises(ValueError, match="finite"):
        compare([float("nan"), 1.0], [1.0, 0.0], ["a", "b"], rng())
    with pytest.raises(ValueError, match="negative"):
        mcnemar_exact(-1, 2)


def test_same_generator_same_numbers_and_order_is_nothing() -> None:
    source = np.random.default_rng(1)
    ours, base = list(source.random(30)), list(source.random(30))
    tasks = [i // 2 for i in range(30)]
    first = compare(ours, base, tasks, rng(4))
    assert first == compare(ours, base, tasks, rng(4))
    order = list(source.permutation(30))
    shuffled = compare([ours[i] for i in order], [base[i] for i in order], [tasks[i] for i in order], rng(4))
    assert shuffled == first
    assert compare(ours, base, tasks, rng(5)) != first
