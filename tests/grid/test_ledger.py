"""The ledger under crashes, damage, rivals and full disks."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness import frames
from harness.codec import to_json
from harness.errors import UsageError
from harness.ledger import FILE, Ledger, LedgerError, LedgerWarning, head_of, read, read_episodes, read_heads
from tests.grid.samples import episode

TASKS = [f"test-{i}" for i in range(3)]


def fill(folder: Path, tasks=TASKS) -> Path:
    with Ledger(folder) as ledger:
        for task in tasks:
            ledger.append(episode(task))
    return folder / FILE


def ids(folder: Path) -> list[str]:
    return [item.task_id for item in read_episodes(folder)]


def test_rows_come_back_in_order_and_exactly(tmp_path):
    fill(tmp_path)
    assert list(read_episodes(tmp_path)) == [episode(task) for task in TASKS]
    with Ledger(tmp_path) as ledger:
        assert ledger.statuses() == {("c" * 16, task): "done" for task in TASKS}


def test_the_file_is_gzip_that_any_tool_reads(tmp_path):
    path = fill(tmp_path)
    lines = gzip.decompress(path.read_bytes()).decode().split("\n")
    assert [json.loads(line)["task_id"] for line in lines[:-1:2]] == TASKS
    assert json.loads(lines[1]) == to_json(episode(TASKS[0]))
    if shutil.which("zcat"):
        assert subprocess.run(["zcat", path], capture_output=True, check=True).stdout.decode() == "\n".join(lines)


def test_a_tail_torn_at_any_byte_costs_one_record(tmp_path):
    whole = fill(tmp_path / "whole").read_bytes()
    last = read(tmp_path / "whole").frames[-1]
    for cut in range(last.offset + 1, len(whole)):
        folder = tmp_path / "torn"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        (folder / FILE).write_bytes(whole[:cut])
        assert ids(folder) == TASKS[:-1]
        if cut % 50 == 0 or cut in (last.offset + 1, len(whole) - 1):
            with Ledger(folder) as ledger:
                assert ledger.torn is not None
                assert ledger.torn.read_bytes() == whole[last.offset : cut]
                ledger.append(episode(TASKS[-1]))
            assert (folder / FILE).read_bytes() == whole


@given(data=st.data())
@settings(max_examples=120, deadline=None)
def test_damage_anywhere_costs_only_the_records_it_touches(tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("damage")
    whole = bytearray(fill(folder).read_bytes())
    parts = read(folder).frames
    start = data.draw(st.integers(0, len(whole) - 1))
    size = data.draw(st.integers(1, min(600, len(whole) - start)))
    noise = data.draw(st.binary(min_size=size, max_size=size))
    hit = [i for i in range(start, start + size) if whole[i] != noise[i - start]]
    touched = {f.head["task_id"] for f in parts if any(f.offset <= i < f.offset + f.size for i in hit)}
    whole[start : start + size] = noise
    (folder / FILE).write_bytes(bytes(whole))
    if not frames.plausible(bytes(whole[:16])) and len(touched) == len(TASKS):
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LedgerWarning)
        assert ids(folder) == [task for task in TASKS if task not in touched]


def test_a_corrupt_middle_is_reported_and_run_again(tmp_path):
    path = fill(tmp_path)
    middle = read(tmp_path).frames[1]
    raw = bytearray(path.read_bytes())
    raw[middle.offset + middle.size // 2] ^= 0xFF
    path.write_bytes(bytes(raw))
    with pytest.warns(LedgerWarning, match="1 damaged"):
        assert ids(tmp_path) == [TASKS[0], TASKS[2]]
    with Ledger(tmp_path) as ledger:
        assert [d.offset for d in ledger.damage] == [middle.offset]
        ledger.append(episode(TASKS[1]))
    with pytest.warns(LedgerWarning):
        assert sorted(ids(tmp_path)) == TASKS


def test_a_duplicate_is_refused_at_append_and_at_read(tmp_path):
    path = fill(tmp_path)
    with Ledger(tmp_path) as ledger, pytest.raises(LedgerError, match="Duplicate"):
        ledger.append(episode(TASKS[0], "failed"))
    assert len(ids(tmp_path)) == 3
    first = read(tmp_path).frames[0]
    raw = path.read_bytes()
    path.write_bytes(raw + raw[: first.size])
    with pytest.raises(LedgerError, match="Duplicate rows"):
        list(read_episodes(tmp_path))
    with pytest.raises(LedgerError, match="Duplicate rows"):
        Ledger(tmp_path)


@pytest.mark.parametrize("status", ["failed", "timeout"])
def test_a_failure_may_be_tried_again_and_the_last_attempt_counts(tmp_path, status):
    with Ledger(tmp_path) as ledger:
        ledger.append(episode(status=status))
        ledger.append(episode(status="failed", attempt=2))
        ledger.append(episode(attempt=3))
    assert [(e.status, e.attempt) for e in read_episodes(tmp_path)] == [("done", 3)]
    assert [head["attempt"] for head in read_heads(tmp_path).values()] == [3]


@pytest.mark.parametrize("status", ["truncated", "unparsed", "skipped"])
def test_what_is_finished_stays(tmp_path, status):
    with Ledger(tmp_path) as ledger:
        ledger.append(episode(status=status))
        with pytest.raises(LedgerError):
            ledger.append(episode())


def test_a_second_writer_is_refused_with_the_pid_of_the_first(tmp_path):
    code = "import sys,pathlib; from harness.ledger import Ledger; Ledger(pathlib.Path(sys.argv[1]))"
    with Ledger(tmp_path) as ledger:
        ledger.append(episode())
        done = subprocess.run([sys.executable, "-c", code, tmp_path], capture_output=True, text=True)
        assert done.returncode != 0
        assert f"pid {os.getpid()} " in done.stderr
        assert ids(tmp_path) == ["test-0"]  # readers need no lock
    assert subprocess.run([sys.executable, "-c", code, tmp_path]).returncode == 0


def test_a_lock_dies_with_its_process(tmp_path):
    code = (
        "import sys,pathlib,os,signal; from harness.ledger import Ledger; l=Ledger(pathlib.Path(sys.argv[1]));"
        "os.kill(os.getpid(), signal.SIGKILL)"
    )
    assert subprocess.run([sys.executable, "-c", code, tmp_path]).returncode == -9
    fill(tmp_path)


def test_a_full_disk_is_one_message_and_nothing_is_lost(tmp_path):
    code = """
import sys, pathlib, resource
from harness.ledger import Ledger, LedgerError
from tests.grid.samples import episode
folder = pathlib.Path(sys.argv[1])
ledger = Ledger(folder)
ledger.append(episode("test-0"))
size = (folder / "ledger.jsonl.gz").stat().st_size
resource.setrlimit(resource.RLIMIT_FSIZE, (size + 300, resource.RLIM_INFINITY))
try:
    ledger.append(episode("test-1"))
except LedgerError as error:
    print(error)
assert (folder / "ledger.jsonl.gz").stat().st_size == size
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
ledger.append(episode("test-1"))
"""
    done = subprocess.run([sys.executable, "-c", code, tmp_path], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "Cannot write to" in done.stdout
    assert "All earlier episodes are stored" in done.stdout
    assert ids(tmp_path) == ["test-0", "test-1"]


def test_a_folder_that_cannot_be_written_is_one_message(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(LedgerError, match="Cannot write to the results folder"):
        Ledger(tmp_path / "file" / "study")


def test_a_read_only_folder_is_one_message():
    code = """
import os, sys, pathlib
from harness.ledger import Ledger, LedgerError
if os.geteuid() == 0:
    os.setuid(65534)  # root may write anywhere
try:
    Ledger(pathlib.Path(sys.argv[1]))
except LedgerError as error:
    print(error)
"""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o555)
        done = subprocess.run([sys.executable, "-c", code, name], capture_output=True, text=True)
        Path(name).chmod(0o755)
    assert "Permission denied. Choose a writable one with --results" in done.stdout, done.stderr


def test_a_ledger_deleted_under_the_run_is_noticed(tmp_path):
    with Ledger(tmp_path) as ledger:
        ledger.append(episode("test-0"))
        (tmp_path / FILE).unlink()
        with pytest.raises(LedgerError, match="deleted"):
            ledger.append(episode("test-1"))


def test_a_foreign_file_is_left_alone(tmp_path):
    (tmp_path / FILE).write_bytes(gzip.compress(b"something else\n" * 100))
    before = (tmp_path / FILE).read_bytes()
    with pytest.raises(LedgerError, match="no ledger"):
        Ledger(tmp_path)
    assert (tmp_path / FILE).read_bytes() == before


def test_another_schema_is_refused(tmp_path):
    record = frames.pack({"schema": 99, "cell": "x", "task_id": "y", "status": "done"}, {"schema": 99})
    (tmp_path / FILE).write_bytes(record)
    with pytest.raises(UsageError, match="schema 99"):
        read_heads(tmp_path)


def test_what_json_cannot_hold_is_refused_before_it_is_written(tmp_path):
    with Ledger(tmp_path) as ledger:
        with pytest.raises(LedgerError, match="finite"):
            ledger.append(episode(reward=float("nan")))
        assert ledger.statuses() == {}
    assert ids(tmp_path) == []


def test_a_thousand_statuses_are_read_in_no_time(tmp_path):
    steps = episode().steps * 10
    record = frames.pack  # without the fsync of each, which is measured elsewhere
    with (tmp_path / FILE).open("wb") as file:
        for i in range(1000):
            item = episode(f"test-{i}", steps=steps)
            file.write(record(head_of(item), to_json(item)))
    began = time.perf_counter()
    assert len(read_heads(tmp_path)) == 1000
    assert time.perf_counter() - began < 0.6
