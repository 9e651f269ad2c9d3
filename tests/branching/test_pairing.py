"""Pairing rules as properties: labels, orders, ties."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from methods.branching.pairing import Branch, keep_pairs, label_of, pairs_of, swapped_first, ties_to_keep

values = st.floats(0, 1, allow_nan=False)
groups = st.lists(values, min_size=1, max_size=6).map(
    lambda qs: [Branch(f"a{i}", f"a{i}", q, i == 0) for i, q in enumerate(qs)]
)


@given(groups, st.sampled_from([0.0, 0.1, 0.3]))
def test_all_unordered_pairs_labelled_by_the_margin(branches: list[Branch], margin: float) -> None:
    pairs = pairs_of("g", branches, margin)
    assert len(pairs) == len(branches) * (len(branches) - 1) // 2
    assert len({pair.pair_id for pair in pairs}) == len(pairs)
    for pair in pairs:
        gap = pair.first.q - pair.second.q
        if pair.label == "T":
            assert abs(gap) <= margin + 1e-8
        else:
            assert abs(gap) > margin
            assert (gap > 0) == (pair.label == "A")
        assert pair.kind == ("base-branch" if "a0" in (pair.first.action, pair.second.action) else "branch-branch")


@given(groups, st.sampled_from([0.0, 0.1]))
def test_swapping_mirrors_the_label_and_comes_back(branches: list[Branch], margin: float) -> None:
    for pair in pairs_of("g", branches, margin):
        other = pair.swapped()
        assert (other.first, other.second, other.pair_id) == (pair.second, pair.first, pair.pair_id)
        assert other.label == label_of(other.first.q, other.second.q, margin)
        assert other.swapped() == pair


@given(groups, st.randoms(use_true_random=False))
def test_order_of_reading_is_nothing(branches: list[Branch], chance: random.Random) -> None:
    mixed = list(branches)
    chance.shuffle(mixed)
    assert pairs_of("g", mixed, 0.1) == pairs_of("g", branches, 0.1)


def test_a_difference_equal_to_the_margin_is_a_tie_whatever_the_rounding() -> None:
    assert label_of(0.3, 0.2, 0.1) == "T"  # 0.3 - 0.2 is 0.09999999999999998
    assert label_of(0.8, 0.7, 0.1) == "T"  # 0.8 - 0.7 is 0.10000000000000009
    assert label_of(0.25, 0.1, 0.1) == "A"
    assert label_of(0.0, 1.0, 0.0) == "B"
    assert label_of(1.0, 1.0, 0.0) == "T"


def test_twice_the_same_action_is_refused() -> None:
    with pytest.raises(ValueError, match="branched twice"):
        pairs_of("g", [Branch("x", "x", 0.0), Branch("X", "x", 1.0)], 0.0)
    with pytest.raises(ValueError, match="more than one base"):
        pairs_of("g", [Branch("x", "x", 0.0, True), Branch("y", "y", 1.0, True)], 0.0)


@given(st.integers(0, 500), st.integers(0, 3000), st.sampled_from([0.0, 0.1, 0.2, 0.5]), st.integers(0, 5))
def test_ties_come_down_to_the_share_and_nothing_else_goes(decisive: int, ties: int, share: float, seed: int) -> None:
    pairs = [(f"d{i}", "A" if i % 2 else "B") for i in range(decisive)] + [(f"t{i}", "T") for i in range(ties)]
    kept = keep_pairs(pairs, share, seed)  # type: ignore[arg-type]
    left = sum(name.startswith("t") for name in kept)
    assert {name for name, label in pairs if label != "T"} <= kept
    assert left == ties_to_keep(decisive, ties, share) <= ties
    if left < ties and decisive >= 50:
        assert left / len(kept) == pytest.approx(share, abs=0.01)
    assert kept == keep_pairs(list(reversed(pairs)), share, seed)  # type: ignore[arg-type]


def test_both_orders_come_first_about_equally_often() -> None:
    first = sum(swapped_first(f"p{i}", 0) for i in range(2000))
    assert 900 < first < 1100
