"""Splits: stable, of the right size, and leaks fail loudly."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from methods.branching.splits import FRACTIONS, LeakError, Panel, check_leaks, refuse_panel_tasks, split_of

rows_of = st.lists(st.tuples(st.sampled_from(["webshop", "retail"]), st.text(min_size=1, max_size=8)), max_size=30)


@given(rows_of)
def test_a_split_depends_on_the_name_alone_so_no_task_is_on_two_sides(tasks: list[tuple[str, str]]) -> None:
    rows = [(env, task, f"{env}:{task}", split_of(env, task)) for env, task in [*tasks, *reversed(tasks)]]
    check_leaks(rows, {})


def test_fractions() -> None:
    counts = Counter(split_of("webshop", str(i)) for i in range(10_000))
    for split, share in FRACTIONS.items():
        assert counts[split] / 10_000 == pytest.approx(share, abs=0.012)


def test_splits_are_pinned() -> None:
    """Changing the hash would move tasks of published data."""
    assert [split_of("alfworld", f"t{i}") for i in range(12)] == PINNED


def test_a_task_on_two_sides_is_a_leak() -> None:
    with pytest.raises(LeakError, match="both 'train' and 'test'"):
        check_leaks([("w", "1", "f1", "train"), ("w", "1", "f1", "test")], {})


def test_the_same_content_under_two_names_is_a_leak() -> None:
    with pytest.raises(LeakError, match="content of task"):
        check_leaks([("w", "1", "same", "train"), ("w", "2", "same", "validation")], {})


def test_the_same_name_in_two_environments_is_none() -> None:
    check_leaks([("w", "1", "f", "train"), ("r", "1", "f", "test")], {})


@pytest.mark.parametrize("panel", [Panel(frozenset({"9"})), Panel(frozenset(), frozenset({"f9"}))])
def test_evaluation_tasks_are_leaks_by_name_and_by_content(panel: Panel) -> None:
    with pytest.raises(LeakError, match="evaluation panel"):
        check_leaks([("w", "9", "f9", "train")], {"w": panel})
    check_leaks([("r", "9", "f9", "train")], {"w": panel})


def test_collecting_evaluation_tasks_is_refused_before_any_work() -> None:
    with pytest.raises(LeakError, match="2 of the 3 w tasks"):
        refuse_panel_tasks("w", ["a", "b", "c"], Panel(frozenset({"a", "c", "z"})))


PINNED = [
    "train",
    "train",
    "test",
    "train",
    "train",
    "train",
    "train",
    "train",
    "train",
    "train",
    "train",
    "train",
]
