"""Plugins in files: found beside the study, and the same study wherever its folder lies. Places in panel messages."""

from __future__ import annotations

import json
import shutil

import pytest

from harness import registry
from harness.errors import UsageError
from harness.grid import plan_cells
from harness.ledger import read_heads
from harness.run import run_study
from harness.study import load_study
from harness.tracking.plan import read_plan
from tests.grid.samples import BASE, study

HALL = """
from harness.environments.mock import MockEnvironment

class Hall(MockEnvironment):
    name = "hall"
    metric = "mean_reward"
"""
ACTOR = """
from harness.actors.mock import MockActor

class Mine(MockActor):
    pass
"""
TEXT = """
study: own
environments: {hall: {plugin: "parts/hall.py:Hall", tasks: 2}}
actors: {plain: {plugin: mock, overrides: {hall: {plugin: "parts/mine.py:Mine"}}}}
methods: {origin:}
seeds: [0]
throughput: {backend: sequential}
"""


def checkout(folder):
    (folder / "parts").mkdir(parents=True)
    (folder / "parts" / "hall.py").write_text(HALL)
    (folder / "parts" / "mine.py").write_text(ACTOR)
    (folder / "own.yaml").write_text(TEXT)
    return folder


def test_a_plugin_beside_the_study_is_found_from_anywhere(tmp_path, monkeypatch):
    here = checkout(tmp_path / "here")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    found = load_study(here / "own.yaml")
    (cell,) = plan_cells(found).cells
    assert cell.spec["environment"]["plugin"] == f"{here}/parts/hall.py:Hall"
    assert cell.spec["actor"]["plugin"] == f"{here}/parts/mine.py:Mine"
    assert cell.identity["environment"]["plugin"] == "parts/hall.py:Hall"
    assert cell.identity["actor"]["plugin"] == "parts/mine.py:Mine"
    assert found.model_copy(update={"title": "x"}).written(cell.spec["actor"]["plugin"]) == "parts/mine.py:Mine"
    assert run_study(found, tmp_path / "r", live=False).exit_status == 0
    assert [one.metric for one in read_plan(tmp_path / "r" / "own")] == ["mean_reward"]


def test_a_study_is_equal_wherever_its_file_lies(tmp_path):
    (tmp_path / "a.yaml").write_text(BASE)
    (tmp_path / "b.yaml").write_text("# a comment\n" + BASE)
    assert load_study(tmp_path / "a.yaml") == load_study(tmp_path / "b.yaml") == study()


def test_results_survive_a_moved_checkout(tmp_path, monkeypatch):
    run_study(load_study(checkout(tmp_path / "here") / "own.yaml"), tmp_path / "r", live=False)
    before = set(read_heads(tmp_path / "r" / "own"))
    shutil.move(tmp_path / "here", tmp_path / "there")
    moved = run_study(load_study(tmp_path / "there" / "own.yaml"), tmp_path / "r", live=False)
    assert (moved.ran, moved.exit_status) == (0, 0)
    assert set(read_heads(tmp_path / "r" / "own")) == before


def test_the_studys_folder_comes_before_the_working_directory(tmp_path, monkeypatch):
    here, other = checkout(tmp_path / "here"), checkout(tmp_path / "other")
    monkeypatch.chdir(other)
    assert load_study(here / "own.yaml").environments["hall"].plugin == f"{here}/parts/hall.py:Hall"
    (here / "parts" / "hall.py").unlink()
    assert load_study(here / "own.yaml").environments["hall"].plugin == f"{other}/parts/hall.py:Hall"
    (other / "parts" / "hall.py").unlink()
    with pytest.raises(UsageError, match=r"own\.yaml:3:.*no file .*relative to the file, then to the working"):
        load_study(here / "own.yaml")


@pytest.mark.parametrize("change", [("tasks: 5", "tasks: 5000"), ("tasks: 5", "tasks: [nope]")])
def test_a_panel_that_cannot_be_made_says_where(change):
    with pytest.raises(UsageError, match=r"^study\.yaml:3:16: environments\.mock"):
        plan_cells(study(BASE, change))


@pytest.mark.parametrize(
    ("params", "said"), [({"length": "abc"}, "must be int, not 'abc'"), ({"length": True}, "must be int, not True")]
)
def test_constructor_types_are_checked_outside_studies_too(params, said):
    with pytest.raises(UsageError, match=said):
        registry.create("environments", "mock", params)


def test_unions_and_unknown_annotations():
    def made(a: int | None = None, b: Whatever = 1, c=2, d: float = 1.0, e: str | None = None) -> None: ...  # noqa: F821

    found = registry.inspect.signature(made).parameters
    fits = {"a": [None, 3], "b": ["x", None], "c": [object()], "d": [1, 2.5], "e": ["x", None]}
    assert [registry.misfit(found[key], value) for key, values in fits.items() for value in values] == [None] * 9
    wrong = {"a": ["x", 1.5, True], "d": ["1", False], "e": [3]}
    said = [registry.misfit(found[key], value) for key, values in wrong.items() for value in values]
    assert all(said)
    assert said[0] == "must be int or None, not 'x'"


def test_the_resolved_study_is_stored_as_json(tmp_path):
    run_study(load_study(checkout(tmp_path / "here") / "own.yaml"), tmp_path / "r", live=False)
    stored = json.loads((tmp_path / "r" / "own" / "study.json").read_text())
    assert stored["cells"][0]["identity"]["environment"]["plugin"] == "parts/hall.py:Hall"
