"""Scores and targets against values worked out by hand or by scipy."""

from __future__ import annotations

import math

import numpy as np
import pytest

from methods.training.data import group_targets
from methods.training.diagnostics import Answered, Ranked, comparator_scores, critic_scores
from methods.training.scores import bootstrap, calibration_error, cross_entropy, share, spearman, wilson


def answers(*rows: tuple[str, str, str | None]) -> list[Answered]:
    return [Answered("e", f"task-{pair}", pair, label, answer, 0.9) for pair, label, answer in rows]


def test_comparator_scores() -> None:
    found = comparator_scores(
        answers(
            ("p", "A", "A"), ("p", "B", "B"),  # right in both orders
            ("q", "A", "A"), ("q", "B", "A"),  # says A to both
            ("r", "T", "T"), ("r", "T", "T"),
            ("s", "A", None), ("s", "B", "B"),  # one invalid answer
        )
    )  # fmt: skip
    assert found["accuracy"]["value"] == 6 / 8
    assert (found["decisive_accuracy"]["value"], found["decisive_accuracy"]["n"]) == (4 / 6, 6)
    assert found["decisive_accuracy_when_decided"]["value"] == 4 / 5
    assert found["bidirectional_accuracy"]["value"] == pytest.approx(1 / 3)
    assert found["order_consistency"]["value"] == 2 / 4
    assert found["valid_outputs"]["value"] == 7 / 8
    assert found["pairs"] == 4
    assert comparator_scores([])["accuracy"] == {"value": None, "n": 0, "low": None, "high": None}


def test_critic_scores() -> None:
    items = [
        Ranked("e", "t", 0, 0.9, 0.8),
        Ranked("e", "t", 0, 0.4, 0.3),
        Ranked("e", "t", 0, 0.4, 0.1),  # tied with the one above: half a point
        Ranked("e", "u", 1, 0.2, 0.7),
        Ranked("e", "u", 1, 0.6, 0.7),  # equal targets: not counted
    ]
    found = critic_scores(items)
    assert found["ranking_accuracy"]["value"] == pytest.approx((1 + 1 + 0.5) / 3)
    assert found["ranking_accuracy"]["n"] == 3
    expected = -np.mean([i.target * math.log(i.score) + (1 - i.target) * math.log(1 - i.score) for i in items])
    assert found["bce"] == pytest.approx(expected)
    assert critic_scores([])["bce"] is None


def test_targets_follow_the_paper() -> None:
    base = {"environment": "e", "task_id": "t", "view": "v"}
    rows = [
        base | {"action": "a", "outcome": 1.0, "remaining": 0},
        base | {"action": "a", "outcome": 0.0, "remaining": 2},
        base | {"action": "b", "outcome": 0.5, "remaining": 7},
    ]
    (group,) = group_targets(rows)
    assert [t.action for t in group.items] == ["a", "b"]
    assert group.items[0].value == pytest.approx(((1.0 - 0.95**2) / 2 + 1) / 2)
    assert group.items[1].value == 0.5


def test_intervals() -> None:
    low, high = wilson(8, 10)
    assert (round(low, 3), round(high, 3)) == (0.490, 0.943)
    assert share([True])["low"] is None
    clustered = share([True] * 50 + [False] * 50, ["a"] * 50 + ["b"] * 50)
    apart = share([True] * 50 + [False] * 50, list(range(100)))
    assert clustered["high"] - clustered["low"] > 2 * (apart["high"] - apart["low"])
    assert bootstrap([1.0, 0.0, 1.0], "abc") == bootstrap([1.0, 0.0, 1.0], "abc")


def test_calibration_and_correlation() -> None:
    assert calibration_error([0.95] * 20, [True] * 19 + [False]) == pytest.approx(0.0)
    assert calibration_error([0.95] * 20, [False] * 20) == pytest.approx(0.95)
    assert calibration_error([1.0], [True]) == 0.0
    assert spearman([1, 2, 3, 4], [10, 20, 30, 5]) == pytest.approx(-0.2)
    stats = pytest.importorskip("scipy.stats")
    draw = np.random.default_rng(0)
    one, other = draw.integers(0, 5, 50).tolist(), draw.integers(0, 5, 50).tolist()
    assert spearman(one, other) == pytest.approx(stats.spearmanr(one, other).statistic)
    assert spearman([1, 1], [1, 2]) is None
    assert spearman([1], [1]) is None
    assert cross_entropy([0.0, 1.0], [0.0, 1.0]) == pytest.approx(0.0, abs=1e-6)
