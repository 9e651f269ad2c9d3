"""Real faults on real processes: each ends with the rows of an undisturbed run, or with a recorded failure."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from harness.ledger import FILE, read_heads
from harness.run import run_study
from tests.grid.samples import BASE, rows, study

SPREAD = "threading, processes: 2"  # as it stands in a study file
SLOW = BASE.replace("{plugin: t-plain}", "{plugin: t-plain, params: {pause: 0.02}}")
FAULT = """
study: small
environments: {mock: {params: {length: 3}, tasks: 8}}
actors: {bad: {plugin: t-fault, params: {folder: FOLDER, fault: KIND, times: TIMES}}}
methods: {plain: {plugin: t-plain}}
seeds: [0]
policy: {worker_deaths: 3, episode_timeout_s: LIMIT, kill_after_s: 1}
throughput: {backend: BACKEND, workers: 2}
"""


def write(folder: Path, text: str, **words: object) -> Path:
    for word, value in words.items():
        text = text.replace(word, str(value))
    path = folder / "study.yaml"
    path.write_text(text)
    return path


def start(path: Path, root: Path, **more) -> subprocess.Popen:
    command = [sys.executable, "-m", "tests.grid.go", str(path), str(root)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **more)


def wait_for(folder: Path, count: int, process: subprocess.Popen) -> None:
    deadline = time.monotonic() + 30
    while process.poll() is None and time.monotonic() < deadline:
        if (folder / FILE).exists() and len(read_heads(folder)) >= count:
            return
        time.sleep(0.02)
    raise AssertionError(f"never saw {count} rows: {process.communicate(timeout=5)}")


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory) -> dict:
    """The rows of the same study when nothing happens (the pause is no part of the identity)."""
    root = tmp_path_factory.mktemp("undisturbed")
    assert run_study(study(), root, live=False).exit_status == 0
    return rows(root / "small")


def children(pid: int) -> list[int]:
    psutil = pytest.importorskip("psutil")
    # the resource trackers are children as well
    words = ("popen_loky_posix", "spawn_main")
    return [p.pid for p in psutil.Process(pid).children() if any(word in " ".join(p.cmdline()) for word in words)]


def at_work(pid: int) -> bool:
    """Whether the process lives; a dead one may wait long for an adoptive parent to take note of it."""
    psutil = pytest.importorskip("psutil")
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


@pytest.mark.parametrize(("backend", "after"), [("sequential", 7), ("threading", 13), ("loky", 9), (SPREAD, 9)])
def test_kill_9_in_the_middle_and_run_again(tmp_path, undisturbed, backend, after):
    path = write(tmp_path, SLOW.replace("backend: sequential", f"backend: {backend}, workers: 2"))
    process = start(path, tmp_path)
    wait_for(tmp_path / "small", after, process)
    workers = children(process.pid) if backend in ("loky", SPREAD) else []
    process.kill()
    process.communicate(timeout=10)
    partial = rows(tmp_path / "small")
    assert after <= len(partial) < 40
    again = start(path, tmp_path)
    out, err = again.communicate(timeout=60)
    assert again.returncode == 0, err
    assert f"ran {40 - len(partial)} episode(s)" in out
    assert rows(tmp_path / "small") == undisturbed
    assert not any(at_work(pid) for pid in workers), "orphans are still at work"


@pytest.mark.parametrize(("backend", "workers"), [("loky", 2), (SPREAD, 2), (SPREAD, 5)])
def test_kill_9_of_a_worker(tmp_path, undisturbed, backend, workers):
    path = write(tmp_path, SLOW.replace("backend: sequential", f"backend: {backend}, workers: {workers}"))
    process = start(path, tmp_path)
    wait_for(tmp_path / "small", 6, process)
    os.kill(children(process.pid)[0], signal.SIGKILL)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert "A worker process died" in err
    assert "ran 40 episode(s)" in out
    assert rows(tmp_path / "small") == undisturbed


@pytest.mark.parametrize("backend", ["loky", "threading, processes: 3"])
def test_ctrl_c_while_workers_start_leaves_no_traceback(tmp_path, backend):
    path = write(tmp_path, SLOW.replace("backend: sequential", f"backend: {backend}, workers: 3"))
    process = start(path, tmp_path, start_new_session=True)
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    deadline = time.monotonic() + 30
    while len(children.read_text().split()) < 3 and time.monotonic() < deadline:  # the tracker and two workers
        time.sleep(0.002)
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 130, err
    assert "Traceback" not in err
    assert "A worker process died" not in err
    assert "Run the same command again" in out


@pytest.mark.parametrize(
    ("backend", "number"),
    [
        ("sequential", signal.SIGINT),
        ("threading", signal.SIGINT),
        ("loky", signal.SIGINT),
        (SPREAD, signal.SIGINT),
        ("threading", signal.SIGTERM),
    ],
)
def test_a_signal_stops_cleanly_and_the_same_command_goes_on(tmp_path, undisturbed, backend, number):
    path = write(tmp_path, SLOW.replace("backend: sequential", f"backend: {backend}, workers: 2"))
    process = start(path, tmp_path, start_new_session=True)
    wait_for(tmp_path / "small", 5, process)
    os.killpg(process.pid, number) if number == signal.SIGINT else process.send_signal(number)
    out, err = process.communicate(timeout=20)
    assert process.returncode == 128 + number, err
    assert "Run the same command again" in out
    assert "Traceback" not in err
    partial = rows(tmp_path / "small")
    assert 5 <= len(partial) < 40
    assert all(row["status"] in ("done", "truncated") for row in partial.values())
    again = start(path, tmp_path)
    out, err = again.communicate(timeout=60)
    assert f"ran {40 - len(partial)} episode(s)" in out, err
    assert rows(tmp_path / "small") == undisturbed


@pytest.mark.parametrize("backend", ["sequential", "threading", "loky", SPREAD])
def test_a_second_ctrl_c_stops_at_once(tmp_path, backend):
    path = write(tmp_path, FAULT, FOLDER=tmp_path, KIND="sleep", TIMES=1, LIMIT=100, BACKEND=backend)
    process = start(path, tmp_path, start_new_session=True)
    deadline = time.monotonic() + 20
    while not list(tmp_path.glob("test-1.*")) and time.monotonic() < deadline:
        time.sleep(0.02)
    time.sleep(0.3)
    os.killpg(process.pid, signal.SIGINT)
    time.sleep(0.5)
    assert process.poll() is None  # waits for the episode that sleeps
    os.killpg(process.pid, signal.SIGINT)
    began = time.monotonic()
    out, err = process.communicate(timeout=20)
    assert time.monotonic() - began < 10
    assert process.returncode == 130, err
    assert "Stopping: no more episodes are started" in err
    assert "Stopped at once" in err
    stored = rows(tmp_path / "small")
    assert all(task != "test-1" for _, task in stored)
    again = start(path, tmp_path)
    out, err = again.communicate(timeout=60)
    assert again.returncode == 0, err
    assert f"ran {8 - len(stored)} episode(s)" in out


def test_a_command_that_left_calls_behind_ends_without_waiting_for_them(tmp_path):
    text = FAULT.replace("worker_deaths: 3", "worker_deaths: 3, stop_grace_s: 1")
    path = write(tmp_path, text, FOLDER=tmp_path, KIND="sleep", TIMES=1, LIMIT=100, BACKEND="threading")
    # Functions that a process calls at its end see an interpreter that native threads may come back to: not even they.
    code = "import atexit, harness.cli; atexit.register(print, 'farewell', flush=True); harness.cli.main()"
    command = [sys.executable, "-c", code, "run", str(path), "--results", str(tmp_path), "--no-tracking", "--no-report"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    wait_for(tmp_path / "small", 1, process)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 130, err
    assert "Run the same command again" in out
    assert "farewell" not in out


def test_the_grace_time_ends_by_itself(tmp_path):
    text = FAULT.replace("worker_deaths: 3", "worker_deaths: 3, stop_grace_s: 1")
    path = write(tmp_path, text, FOLDER=tmp_path, KIND="sleep", TIMES=1, LIMIT=100, BACKEND="threading")
    process = start(path, tmp_path)
    wait_for(tmp_path / "small", 1, process)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=15)
    assert process.returncode == 130


@pytest.mark.parametrize(
    ("kind", "times", "backend", "status", "boundary", "reason"),
    [
        ("kill", 99, "loky", "failed", "harness", "its worker process died 3 times (TerminatedWorkerError: exit codes"),
        ("kill", 1, "loky", None, None, ""),
        ("kill", 99, SPREAD, "failed", "harness", "its worker process died 3 times (WorkerLost: exit code -9"),
        ("kill", 1, SPREAD, None, None, ""),
        ("hold", 1, SPREAD, "timeout", "harness", "its worker process was killed"),
        ("hold", 1, "loky", "timeout", "harness", "its worker process was killed"),
        ("sleep", 1, "loky", "timeout", "actor", "episode limit of 2 s reached"),
        ("sleep", 1, "threading", "timeout", "actor", "episode limit of 2 s reached"),
        ("exit", 1, "threading", "failed", "actor", "SystemExit: 3"),
        ("exit", 1, "sequential", "failed", "actor", "SystemExit: 3"),
        ("raise", 1, "loky", "failed", "actor", "RuntimeError: as asked"),
        ("interrupt", 1, "loky", "failed", "actor", "it raised KeyboardInterrupt"),
        ("interrupt", 1, "threading", "failed", "actor", "it raised KeyboardInterrupt"),
        ("interrupt", 1, "sequential", "failed", "actor", "it raised KeyboardInterrupt"),
    ],
)
def test_an_episode_that_does_terrible_things_is_one_row(tmp_path, kind, times, backend, status, boundary, reason):
    limit = 2 if kind in ("hold", "sleep") else 60
    path = write(tmp_path, FAULT, FOLDER=tmp_path, KIND=kind, TIMES=times, LIMIT=limit, BACKEND=backend)
    process = start(path, tmp_path)
    _, err = process.communicate(timeout=60)
    assert process.returncode == (0 if status is None else 1), err
    found = {task: row for (_, task), row in rows(tmp_path / "small").items()}
    assert len(found) == 8
    bad = {task: row for task, row in found.items() if row["status"] != "done"}
    assert set(bad) == ({"test-1"} if status else set())
    if status:
        assert (bad["test-1"]["status"], bad["test-1"]["boundary"]) == (status, boundary)
        assert reason in bad["test-1"]["reason"]
    strikes = 3 if kind == "kill" and times == 99 else 1
    assert len(list(tmp_path.glob("test-1.*"))) == strikes


@pytest.mark.parametrize("kind", ["hold", "kill"])
def test_who_shares_a_process_with_a_terrible_episode_does_not_pay_for_it(tmp_path, kind):
    text = FAULT.replace("workers: 2", "workers: 8").replace("worker_deaths: 3", "worker_deaths: 2")
    path = write(tmp_path, text, FOLDER=tmp_path, KIND=kind, TIMES=99, LIMIT=2, BACKEND=SPREAD)
    process = start(path, tmp_path)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 1, err
    found = {task: row["status"] for (_, task), row in rows(tmp_path / "small").items()}
    assert len(found) == 8
    assert {task for task, status in found.items() if status != "done"} == {"test-1"}
    told = re.search(r"the (\d+) episode\(s\) that were running with it", err)
    assert told is None or int(told[1]) <= 4, "the other process was not touched"


def test_two_runs_on_one_folder(tmp_path):
    path = write(tmp_path, SLOW)
    first = start(path, tmp_path)
    wait_for(tmp_path / "small", 2, first)
    second = start(path, tmp_path)
    _, err = second.communicate(timeout=20)
    assert second.returncode == 2
    assert f"pid {first.pid} " in err
    assert "Traceback" not in err
    first.communicate(timeout=60)
    assert first.returncode == 0


def test_a_results_folder_that_cannot_be_made(tmp_path):
    (tmp_path / "file").write_text("")
    process = start(write(tmp_path, BASE), tmp_path / "file")
    _, err = process.communicate(timeout=20)
    assert process.returncode == 2
    assert "Cannot write to the results folder" in err
    assert "Traceback" not in err
