"""Offline candidates on real branch data of the mock corridor, and on a shelf put up by hand."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from harness.conformance import check
from harness.errors import UsageError
from methods.branching.collect import collect
from methods.branching.spec import Throughput
from methods.candidates.conditions.alfworld import AlfWorldCondition
from methods.candidates.mixture import MixtureCandidates
from methods.candidates.offline import OfflineCandidates, Shelf
from tests.branching.helpers import corridor
from tests.candidates.helpers import Desk, state_of

POOL = ["left", "right", "wait"]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("branches")
    collect(corridor(tasks=6), folder, Throughput(backend="sequential"))
    return str(folder)


def test_actions_of_the_data_come_back_distinct_and_not_the_proposal(data: str) -> None:
    state = state_of("mock", "Reach the right end.", "You stand at 0 of 5.")
    drawn = OfflineCandidates(data).draw(Desk(state, POOL, "left"), 4)
    assert {(c.action.text, c.source) for c in drawn} == {("right", "offline"), ("wait", "offline")}
    assert drawn.rejected == {"proposal": 1}
    some = [OfflineCandidates(data).draw(Desk(state, POOL, "-", seed), 2) for seed in range(60)]
    assert {len(one) for one in some} == {2}
    assert len(Counter(one[0].action.text for one in some)) == 3
    assert some[3] == OfflineCandidates(data).draw(Desk(state, POOL, "-", 3), 2)


def test_what_is_not_legal_here_is_rejected_and_counted(data: str) -> None:
    state = state_of("mock", "Reach the right end.", "You stand at 0 of 5.")
    drawn = OfflineCandidates(data).draw(Desk(state, ["wait"], "left"), 4)
    assert [c.action.text for c in drawn] == ["wait"]
    assert drawn.rejected == {"illegal": 1, "proposal": 1}


def test_no_data_for_the_environment_is_said(data: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no branches of webshop"):
        OfflineCandidates(data).draw(Desk(state_of("webshop", "t", "o"), POOL), 2)
    with pytest.raises(UsageError, match="does not exist"):
        OfflineCandidates(str(tmp_path)).draw(Desk(state_of("mock", "t", "o"), POOL), 2)


def test_conformance_and_identity(data: str, tmp_path: Path) -> None:
    mixture = {"sources": [{"plugin": "offline", "params": {"data": data}, "weight": 2}, {"plugin": "environment"}]}
    for name, params in (("offline", {"data": data}), ("mixture", mixture)):
        assert [f.message for f in check("candidates", name, params) if f.verdict == "failed"] == []
    moved = tmp_path / "elsewhere"
    shutil.copytree(data, moved)
    assert OfflineCandidates(str(moved)).identity() == OfflineCandidates(data).identity()
    collect(corridor(tasks=7), moved, Throughput(backend="sequential"))
    assert OfflineCandidates(str(moved)).identity() != OfflineCandidates(data).identity()
    one, two = MixtureCandidates(**mixture).identity()
    assert (one["weight"], one["params"], one["more"]) == (2.0, {}, OfflineCandidates(data).identity())
    assert two == {"plugin": "environment", "weight": 1.0, "params": {}, "version": "1"}


def put_up(shelf: Shelf, task_id: str, actions: list[str], **state: Any) -> None:
    made = state_of("alfworld", "Your task is to: put some pen on desk.", "room", ("go to shelf 1", "You see."))
    shelf.add(AlfWorldCondition(), type(made)(made.environment, task_id, made.task, made.opening, made.turns), actions)


def test_the_finest_condition_with_data_comes_first_and_own_data_never() -> None:
    shelf = Shelf()
    put_up(shelf, "task-1", ["inventory"])
    put_up(shelf, "task-2", ["examine shelf 1", "examine shelf 1"])
    keys = ("pick/nothing/shelf", "pick/nothing", "nothing")
    assert list(shelf.levels(keys, "task-1")) == [{"examine {here}": 2}]
    assert list(shelf.levels(keys, "task-3")) == [{"examine {here}": 2, "inventory": 1}]
    assert list(shelf.levels(("heat/nothing/fridge", "nothing"), "task-3")) == [{"examine {here}": 2, "inventory": 1}]
    assert list(shelf.levels(("heat/nothing/fridge",), "task-3")) == []
