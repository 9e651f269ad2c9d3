"""Decision points: count as the paper says, one in each stratum."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from methods.branching.points import choose_points, count_points


@given(st.integers(1, 200), st.integers(0, 2**63 - 1))
def test_one_point_in_each_equal_stratum(actions: int, seed: int) -> None:
    points = choose_points(actions, seed)
    number = min(math.ceil(actions / 2), 10)
    assert len(points) == number
    assert list(points) == sorted(set(points))
    for index, step in enumerate(points):
        assert index * actions // number <= step < (index + 1) * actions // number
    assert choose_points(actions, seed) == points


@given(st.integers(1, 300), st.integers(1, 100), st.integers(1, 20))
def test_count_is_the_exact_ceiling(actions: int, percent: int, most: int) -> None:
    assert count_points(actions, percent / 100, most) == min(-(-actions * percent // 100), most, actions)


def test_every_step_can_be_chosen() -> None:
    assert {step for seed in range(60) for step in choose_points(6, seed)} == set(range(6))


def test_no_actions_no_points() -> None:
    assert choose_points(0, 1) == ()
