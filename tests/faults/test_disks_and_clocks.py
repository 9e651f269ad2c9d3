"""Disks that fill up or may not be written, ledgers that were damaged, clocks that jump: whole runs, and run again."""

from __future__ import annotations

import os
import random
import re
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from harness.ledger import FILE, LedgerWarning, read, read_episodes
from harness.run import run_study
from tests.grid.samples import BASE, rows, study
from tests.grid.test_faults import FAULT, SLOW, start, wait_for, write

LOKY = SLOW.replace("backend: sequential", "backend: loky, workers: 2")


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory) -> dict:
    root = tmp_path_factory.mktemp("undisturbed")
    assert run_study(study(), root, live=False).exit_status == 0
    return rows(root / "small")


@contextmanager
def small_disk(folder: Path) -> Iterator[Path]:
    """A file system of 1 MB of its own."""
    if os.geteuid() != 0:
        pytest.skip("a small disk can only be mounted by root; the limit on file sizes is tried instead")
    folder.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", folder], capture_output=True, text=True)
    if done.returncode != 0:
        pytest.skip(f"this machine lets nobody mount a small disk: {done.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)


def test_a_disk_that_fills_up_in_the_middle(tmp_path, undisturbed):
    with small_disk(tmp_path / "disk") as disk:
        path = write(tmp_path, LOKY)
        process = start(path, disk)
        wait_for(disk / "small", 4, process)
        with suppress(OSError), (disk / "filler").open("wb", buffering=0) as file:
            while True:
                file.write(b"x" * 4096)
        _, err = process.communicate(timeout=60)
        assert process.returncode == 2, err
        assert re.search(r"[Nn]o space left.*All earlier episodes are stored", err), err
        assert "Traceback" not in err
        stored = rows(disk / "small")
        assert 4 <= len(stored) < 40
        assert read(disk / "small").damage == []
        (disk / "filler").unlink()
        out, err = start(path, disk).communicate(timeout=60)
        assert f"ran {40 - len(stored)} episode(s)" in out, err
        assert rows(disk / "small") == undisturbed


def test_a_quota_on_file_sizes(tmp_path, undisturbed):
    path = write(tmp_path, BASE)
    limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (18_000, resource.RLIM_INFINITY))  # noqa: E731
    process = start(path, tmp_path, preexec_fn=limit)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 2, err
    assert re.search(r"(no space left|File too large).*All earlier episodes are stored", err), err
    stored = rows(tmp_path / "small")
    assert 4 <= len(stored) < 40
    assert run_study(study(), tmp_path, live=False).ran == 40 - len(stored)
    assert rows(tmp_path / "small") == undisturbed


def test_a_results_folder_that_may_not_be_written(tmp_path, undisturbed):
    """Refused before anything is run; what is there can still be read and stays as it is."""
    assert run_study(study(), tmp_path, live=False).exit_status == 0
    folder = tmp_path / "small"
    before = (folder / FILE).read_bytes()
    path = write(tmp_path, BASE.replace("seeds: [0, 1]", "seeds: [0, 1, 2]"))
    code = """
import os, pathlib, sys
from harness.run import run_study
from harness.study import load_study
study = load_study(sys.argv[1])
if os.geteuid() == 0:
    os.setuid(65534)  # root may write anywhere
run_study(study, pathlib.Path(sys.argv[2]), live=False)
"""
    for place in (tmp_path, *tmp_path.parents[:2]):
        place.chmod(0o755)
    folder.chmod(0o555)
    try:
        done = subprocess.run([sys.executable, "-c", code, path, tmp_path], capture_output=True, text=True, timeout=60)
    finally:
        folder.chmod(0o755)
    assert "Permission denied. Choose a writable one with --results" in done.stderr
    assert (folder / FILE).read_bytes() == before
    assert rows(folder) == undisturbed


def test_torn_and_corrupt_records_are_run_again(tmp_path, undisturbed):
    assert run_study(study(), tmp_path, live=False).exit_status == 0
    folder = tmp_path / "small"
    frames = read(folder).frames
    raw = bytearray((folder / FILE).read_bytes())
    for spoiled in (5, 6, 20):
        raw[frames[spoiled].offset + frames[spoiled].size // 2] ^= 0x41
    (folder / FILE).write_bytes(raw[: frames[-1].offset + 30])
    summary = run_study(study(), tmp_path, live=False)
    assert (summary.ran, summary.exit_status) == (4, 0)
    assert "2 damaged stretch(es)" in summary.text()
    assert "A record cut short by an earlier crash was moved to" in summary.text()
    with pytest.warns(LedgerWarning):
        assert rows(folder) == undisturbed


def test_many_runs_on_one_folder_at_once(tmp_path, undisturbed):
    path = write(tmp_path, SLOW)
    started = [start(path, tmp_path) for _ in range(3)]
    ended = [(*process.communicate(timeout=90), process.returncode) for process in started]
    refused = [err for _, err, code in ended if code == 2]
    assert sorted(code for *_, code in ended) == [0, 2, 2]
    assert all("Another run is writing to" in err and "Traceback" not in err for err in refused)
    assert rows(tmp_path / "small") == undisturbed


@pytest.mark.parametrize("backend", ["sequential", "threading"])
def test_a_clock_that_jumps_changes_nothing_but_dates(tmp_path, undisturbed, monkeypatch, backend):
    """An hour back, ten years on, at every look: limits, durations and rows must not see it."""
    real, jumps = time.time, random.Random(0)
    monkeypatch.setattr(time, "time", lambda: real() + jumps.choice([0.0, -3600.0, 3e8, -2e9]))
    limits = "policy: {episode_timeout_s: 20, step_timeout_s: 10, call_timeout_s: 10}\n"
    text = BASE.replace("throughput: {backend: sequential}", f"{limits}throughput: {{backend: {backend}, workers: 2}}")
    began = time.monotonic()
    summary = run_study(study(text), tmp_path, live=False)
    assert summary.exit_status == 0
    assert 0 <= summary.seconds <= time.monotonic() - began
    assert rows(tmp_path / "small") == undisturbed
    bad = write(tmp_path, FAULT, FOLDER=tmp_path, KIND="raise", TIMES=99, LIMIT=20, BACKEND=backend)
    run_study(study(bad.read_text()), tmp_path / "bad", live=False)
    found = [*read_episodes(tmp_path / "small"), *read_episodes(tmp_path / "bad" / "small")]
    assert any(episode.status == "failed" for episode in found)
    for episode in found:
        assert 0 <= episode.wall_s < 20
        assert all(0 <= seconds < 20 for seconds in episode.seconds.values())


def test_the_long_campaign_is_the_short_one(tmp_path):
    """Four strikes at random moments: parent, worker, group, power cut. `python -m benchmarks.faults` strikes longer."""
    from benchmarks.faults import Campaign

    tally = Campaign(tmp_path, kills=4, seed=3, tasks=6).run()
    assert sum(tally.strikes.values()) == 4
    assert (tally.lost, tally.doubled, tally.different, tally.failures) == (0, 0, 0, [])


@pytest.mark.long
@pytest.mark.parametrize("backend", ["sequential", "threading", "loky"])
def test_fifty_strikes(tmp_path, backend):
    from benchmarks.faults import Campaign

    tally = Campaign(tmp_path, kills=50, seed=4, backend=backend).run()
    assert sum(tally.strikes.values()) == 50
    assert tally.clean, tally.text()
