"""Environment candidates and mixtures: distribution, distinctness, refilling, determinism."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import UsageError
from methods.candidates.environment import EnvironmentCandidates
from methods.candidates.mixture import MixtureCandidates
from tests.candidates.helpers import Desk, Listed, state_of

STATE = state_of("mock", "task", "here")
POOL = [f"a{i}" for i in range(8)]


def mixture(*parts: tuple[Any, float]) -> MixtureCandidates:
    made = MixtureCandidates([{"plugin": "environment"}])
    made._made = [(weight, source) for source, weight in parts]
    return made


@given(st.integers(0, 2**63 - 1), st.integers(0, 10), st.lists(st.sampled_from(POOL), max_size=8, unique=True))
def test_environment_candidates_are_a_uniform_subset(seed: int, k: int, pool: list[str]) -> None:
    drawn = EnvironmentCandidates().draw(Desk(STATE, pool, "a0", seed), k)
    texts = [candidate.action.text for candidate in drawn]
    others = set(pool) - {"a0"}
    assert len(set(texts)) == len(texts) == min(k, len(others))
    assert set(texts) <= others
    more = EnvironmentCandidates().draw(Desk(STATE, list(reversed(pool)), "a0", seed), k + 3)
    # A longer draw begins the same, in whatever order the pool is listed.
    assert [candidate.action.text for candidate in more][:k] == texts


def test_each_action_is_drawn_equally_often() -> None:
    counts = Counter(
        candidate.action.text
        for seed in range(1400)
        for candidate in EnvironmentCandidates().draw(Desk(STATE, POOL, "a0", seed), 2)
    )
    assert set(counts) == set(POOL[1:])
    assert all(abs(count - 400) < 75 for count in counts.values())


def test_the_first_candidate_comes_from_each_source_by_its_weight() -> None:
    one, two = Listed(["a1", "a2"], "one"), Listed(["a3", "a4"], "two")
    source = mixture((one, 3.0), (two, 1.0))
    first = Counter(source.draw(Desk(STATE, POOL, seed=seed), 1)[0].source for seed in range(800))
    assert abs(first["one"] / 800 - 0.75) < 0.05


def test_an_empty_source_is_refilled_from_the_others_and_repeats_are_skipped() -> None:
    empty, few, many = Listed([], "empty"), Listed(["a1", "a1", "a2"], "few"), Listed(POOL, "many")
    for seed in range(50):
        drawn = mixture((empty, 5.0), (few, 5.0), (many, 1.0)).draw(Desk(STATE, POOL, "a7", seed), 4)
        texts = [candidate.action.text for candidate in drawn]
        assert len(texts) == len(set(texts)) == 4
        assert "a7" not in texts
    assert mixture((empty, 1.0)).draw(Desk(STATE, POOL), 4).candidates == ()


def test_illegal_candidates_of_a_source_are_counted_by_reason() -> None:
    drawn = mixture((Listed(["zz", "proposal", "a1", "a1"]), 1.0)).draw(Desk(STATE, POOL), 4)
    assert [candidate.action.text for candidate in drawn] == ["a1"]
    assert drawn.rejected == {"illegal": 1, "proposal": 1, "repeat": 1}


def test_a_source_that_could_give_more_is_asked_once_more() -> None:
    one = Listed(["a1", "a2", "a3", "a4", "a5", "a6"], "one")
    first = Listed(["a1", "a2"], "first")
    for seed in range(30):
        assert len(mixture((first, 1.0), (one, 1.0)).draw(Desk(STATE, POOL, seed=seed), 4)) == 4


def test_a_source_draws_the_same_beside_any_other() -> None:
    """Streams are named, so the environment's draws inside a mixture are those that it makes alone."""
    desk = Desk(STATE, POOL, seed=5)
    alone = [candidate.action.text for candidate in EnvironmentCandidates().draw(desk, 4)]
    mixed = mixture((EnvironmentCandidates(), 1.0), (Listed([]), 1.0)).draw(desk, 4)
    assert [candidate.action.text for candidate in mixed] == alone


@pytest.mark.parametrize(
    ("sources", "message"),
    [
        ([], "at least one entry"),
        ([{"plugin": "environment", "weigth": 2}], "keys are plugin, params, weight"),
        ([{"plugin": "environment", "weight": 0}], "not a positive number"),
        ([{"plugin": "enviroment"}], "Did you mean 'environment'"),
        ([{"plugin": "environment", "params": {"x": 1}}], "no parameter 'x'"),
    ],
)
def test_a_bad_mixture_says_what_is_wrong(sources: list[dict[str, Any]], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        MixtureCandidates(sources).draw(Desk(STATE, POOL), 2)
