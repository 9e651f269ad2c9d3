"""Task panels: frozen by content, believed when nothing is run, checked before anything is."""

from __future__ import annotations

import json

import pytest

from harness import panels as module
from harness.errors import UsageError
from harness.grid import plan_cells
from harness.panels import from_json, make, panels
from harness.run import run_study, status
from tests.grid.samples import BASE, rows, study

FILE_STUDY = BASE.replace(
    "{mock: {params: {length: 3}, tasks: 5,", "{place: {plugin: t-file, params: {path: PATH}, tasks: 4,"
)


@pytest.fixture
def data(tmp_path):
    path = tmp_path / "tasks.txt"
    path.write_text("a\nb\nc\nd\ne\n")
    return path


def file_study(data, *changes):
    return study(FILE_STUDY.replace("PATH", str(data)), *changes)


def test_tasks_are_selected_by_number_first_and_id():
    def ids(new):
        return make("mock", study(BASE, ("tasks: 5", new)).environments["mock"]).ids

    assert ids("tasks: 3, first: 2") == ("test-2", "test-3", "test-4")
    assert ids("tasks: [test-7, test-1]") == ("test-7", "test-1")
    assert len(ids("tasks: all")) == 100
    assert ids("tasks: all, first: 98") == ("test-98", "test-99")


@pytest.mark.parametrize(
    ("new", "said"),
    [
        ("tasks: 101", "has 100 tasks"),
        ("tasks: 5, first: 96", "ask for more"),
        ("tasks: [test-0, nope]", "no task 'nope'"),
        ("tasks: 5, split: tset", "no split 'tset'"),
    ],
)
def test_a_selection_that_does_not_exist_is_refused(new, said):
    with pytest.raises(UsageError, match=said):
        panels(study(BASE, ("tasks: 5", new)))


def test_a_pin_is_checked():
    digest = panels(study())["mock"].digest
    assert panels(study(BASE, ("tasks: 5", f"tasks: 5, panel: {digest}")))["mock"].digest == digest
    assert panels(study(BASE, ("tasks: 5", f"tasks: 5, panel: {digest[:8]}")))
    with pytest.raises(UsageError, match=rf"pins 0123456789abcdef, but the data gives {digest}"):
        panels(study(BASE, ("tasks: 5", "tasks: 5, panel: 0123456789abcdef")))


def test_changed_data_is_refused_when_there_is_work_and_the_tasks_are_named(tmp_path, data):
    assert run_study(file_study(data), tmp_path, live=False).exit_status == 0
    before = rows(tmp_path / "small")
    data.write_text("a\nB\nc\nd\ne\n")
    # Nothing to run: the stored panel is believed, and nothing is written.
    assert run_study(file_study(data), tmp_path, live=False).ran == 0
    more = file_study(data, ("seeds: [0, 1]", "seeds: [0, 1, 2]"))
    with pytest.raises(UsageError, match=r"1 changed: test-1\)"):
        run_study(more, tmp_path, live=False)
    with pytest.raises(UsageError, match=r"1 changed: test-1\)"):
        status(file_study(data), tmp_path, verify=True)
    assert rows(tmp_path / "small") == before
    data.write_text("a\nb\nc\nd\ne\nf\n")  # outside the panel
    assert run_study(more, tmp_path, live=False).ran == 16


def test_a_worker_that_finds_other_data_refuses_its_episode(tmp_path, data):
    first = []

    def spoil(episode):
        if not first:
            data.write_text("a\nb\nc\nD\n")
            first.append(episode)

    summary = run_study(file_study(data), tmp_path, observers=[spoil], live=False)
    assert summary.failures == {"environment failed": 8}
    assert summary.exit_status == 1


def test_kept_panels_save_the_environment_until_their_spec_changes(monkeypatch):
    kept = panels(study())
    monkeypatch.setattr(module, "make", lambda *_: pytest.fail("made again"))
    assert panels(study(), kept) == kept
    with pytest.raises(pytest.fail.Exception):
        panels(study(BASE, ("tasks: 5", "tasks: 6")), kept)


def test_a_damaged_panel_file_is_refused():
    data = panels(study())["mock"].to_json()
    assert from_json("mock", json.loads(json.dumps(data))) == panels(study())["mock"]
    data["tasks"][0][1] = "f" * 64
    with pytest.raises(UsageError, match="does not have the digest"):
        from_json("mock", data)
    with pytest.raises(UsageError, match="damaged"):
        from_json("mock", {"tasks": 3})


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("def __init__(self): raise OSError('no disk')", "its constructor raised OSError: no disk"),
        ("def tasks(self, split): raise RuntimeError('no index')", r"tasks\('test'\) raised RuntimeError: no index"),
        ("def tasks(self, split): return None", "gives None where a list of ids belongs"),
        ("def tasks(self, split): return [0, 1]", "task ids must be text.* has 0, 1"),
        ("def tasks(self, split): return ['test-1', 'test-0', 'test-0', 'test-1']", "repeats test-1, test-0"),
        ("def tasks(self, split): return ['test-\\udcff']", "task ids must be text"),
        ("def fingerprint(self, task): raise KeyError(task)", r"fingerprint\('test-0'\) raised KeyError"),
        ("def fingerprint(self, task): return None", r"fingerprint\('test-0'\) gives None"),
        ("def close(self): raise RuntimeError('stuck')", r"close\(\) raised RuntimeError: stuck"),
        ("max_steps = None", "has max_steps None"),
    ],
)
def test_a_broken_environment_is_one_message_at_plan(tmp_path, body, said):
    file = tmp_path / "place.py"
    file.write_text(
        f"from harness.environments.mock import MockEnvironment\nclass Place(MockEnvironment):\n    {body}\n"
    )
    place = f"{{place: {{plugin: '{file}:Place', tasks: all}}}}"
    found = study(BASE, ("{mock: {params: {length: 3}, tasks: 5, max_steps: 8}}", place))
    with pytest.raises(UsageError, match=said) as caught:
        plan_cells(found)
    assert "place.py:Place" in str(caught.value)


def test_a_method_that_does_not_state_its_needs_is_refused(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text("class Mine:\n    def review(self, state, proposal, desk): ...\n")
    with pytest.raises(UsageError, match=r"Mine' does not state what it needs"):
        study(BASE, ("{plugin: t-plain}", f"{{plugin: '{file}:Mine'}}"))
