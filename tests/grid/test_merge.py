"""Folders of several people made into one, and what is refused."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from harness.cli.tracked import merge_command
from harness.errors import UsageError
from harness.ledger import FILE, Ledger, read, read_episodes
from harness.merge import MergeConflict, merge
from harness.run import run_study
from harness.tracking.plan import read_plan
from harness.worker import run_job
from tests.grid.samples import BASE, rows, study


def ran(root: Path, *changes: tuple[str, str], run=run_job) -> Path:
    run_study(study(BASE, *changes), root, live=False, run=run)
    return root / "small"


def fails(job):
    if job.task_id == "test-2":
        raise OSError("disk")
    return run_job(job)


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> Path:
    return ran(tmp_path_factory.mktemp("whole"))


def test_two_halves_are_the_whole(tmp_path, whole, capsys):
    one = ran(tmp_path / "anna", ("seeds: [0, 1]", "seeds: [0]"))
    two = ran(tmp_path / "ben", ("seeds: [0, 1]", "seeds: [1]"))
    into = tmp_path / "both" / "small"
    assert merge_command([one, two], into) == 0
    assert "40 episode(s)" in capsys.readouterr().out
    assert rows(into) == rows(whole)
    assert {cell.key for cell in read_plan(into)} == {cell.key for cell in read_plan(whole)}
    again = run_study(study(), tmp_path / "both", live=False)
    assert (again.ran, again.exit_status) == (0, 0)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("study.json", lambda data: {"schema": 1}),
        ("study.json", lambda data: data | {"cells": {}}),
        ("study.json", lambda data: data | {"cells": [3]}),
        ("study.json", lambda data: data | {"cells": [data["cells"][0] | {"seed": "0"}]}),
        ("study.json", lambda data: data | {"cells": [data["cells"][0] | {"identity": None}]}),
        ("panels.json", lambda data: data | {"panels": 3}),
        ("panels.json", lambda data: data | {"panels": {"mock": []}}),
    ],
)
def test_a_file_of_the_wrong_shape_is_one_message(tmp_path, whole, name, change):
    folder = shutil.copytree(whole, tmp_path / "small")
    (folder / name).write_text(json.dumps(change(json.loads((folder / name).read_text()))))
    for reader in (read_plan, lambda folder: merge([whole, folder], tmp_path / "into")):
        with pytest.raises(UsageError, match=rf"{name}.*(move it away|delete)|delete {name}"):
            reader(folder)


def test_the_place_may_not_be_a_file_and_the_next_command_is_said_in_full(tmp_path, whole, capsys):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(UsageError, match="a file is there already"):
        merge([whole], tmp_path / "file")
    assert (tmp_path / "file").read_text() == "mine"
    merge_command([whole], tmp_path / "new" / "small")
    assert f"cota-bench report small --results {tmp_path / 'new'}" in capsys.readouterr().out


def test_equal_rows_are_one_and_the_folder_may_be_a_source(tmp_path, whole):
    one = ran(tmp_path / "anna", ("seeds: [0, 1]", "seeds: [1]"))
    into = tmp_path / "mine" / "small"
    shutil.copytree(whole, into)
    made = merge([into, one], into)
    assert (made.rows, made.equal, dict(made.taken)) == (40, 20, {into: 40, one: 0})
    assert (into / FILE).read_bytes() == (whole / FILE).read_bytes()


def test_what_ended_beats_what_failed_and_attempts_are_kept(tmp_path, whole):
    broken = ran(tmp_path / "anna", run=fails)
    for order in ([broken, whole], [whole, broken]):
        into = tmp_path / order[0].parent.name / "merged"
        assert merge(order, into).rows == 40
        assert rows(into) == rows(whole)
        assert len(read(into).frames) == 48
        with Ledger(into) as ledger:
            assert set(ledger.statuses().values()) <= {"done", "truncated"}


def test_rows_that_ended_differently_are_refused_by_name(tmp_path, whole):
    other = tmp_path / "other"
    shutil.copytree(whole, other)
    (other / FILE).unlink()
    with Ledger(other) as ledger:
        for number, episode in enumerate(read_episodes(whole)):
            ledger.append(replace(episode, reward=0.5) if number in (3, 7) else replace(episode, wall_s=9.0))
    wrong = [episode for number, episode in enumerate(read_episodes(whole)) if number in (3, 7)]
    into = tmp_path / "into"
    with pytest.raises(MergeConflict) as caught:
        merge([whole, other], into)
    text = str(caught.value)
    assert "2 episode(s) were run more than once and ended differently; nothing was merged" in text
    assert all(f"cell {episode.cell}, task {episode.task_id!r}" in text for episode in wrong)
    assert "reward 0.5" in text
    assert not into.exists()


def test_labels_of_another_meaning_and_other_studies_are_refused(tmp_path, whole):
    other = ran(tmp_path / "anna", ("length: 3}, tasks: 5", "length: 4}, tasks: 5"))
    with pytest.raises(MergeConflict, match=r"environment\.params\.length: 3 -> 4"):
        merge([whole, other], tmp_path / "into")
    named = ran(tmp_path / "named", ("study: small", "study: large")).parent / "large"
    with pytest.raises(MergeConflict, match="several studies: large, small"):
        merge([whole, named], tmp_path / "into")
    with pytest.raises(UsageError, match="holds no study"):
        merge([whole, tmp_path / "nowhere"], tmp_path / "into")
    with pytest.raises(UsageError, match="is there already"):
        merge([whole], other)
    assert json.loads((other / "study.json").read_text())["study"] == "small"


def test_a_folder_at_work_is_not_merged_into(tmp_path, whole):
    into = tmp_path / "mine"
    shutil.copytree(whole, into)
    with Ledger(into), pytest.raises(UsageError, match="Another run is writing"):
        merge([into, whole], into)
