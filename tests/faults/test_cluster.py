"""A dask scheduler and workers as processes of their own, on loopback; what happens to them must not be seen in rows."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from harness.cli.run import adjusted
from harness.cluster import Cluster, ClusterError
from harness.errors import UsageError
from harness.ledger import read_heads
from harness.run import run_study
from tests.grid.samples import BASE, rows, study
from tests.grid.test_faults import FAULT, wait_for, write

pytest.importorskip("distributed")

WATCHED = BASE.replace("{plugin: t-plain}", "{plugin: t-plain, params: {pause: 0.03}}")


class Yard:
    """A scheduler and its workers, on 127.0.0.1, ended with the block."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.processes: list[subprocess.Popen[str]] = []
        self.stranger = folder / "stranger"  # packages of our name with nothing in them: the scheduler needs none
        (self.stranger / "harness").mkdir(parents=True)
        for name in ("__init__", "slot", "cluster", "worker", "records", "errors"):
            (self.stranger / "harness" / f"{name}.py").write_text("")
        words = ("--host", "127.0.0.1", "--port", "0", "--no-dashboard")
        scheduler = self._start("scheduler", *words, path=str(self.stranger))
        self.address = self._wait_for(scheduler, r"Scheduler at:\s+(tcp://127\.0\.0\.1:\d+)")

    def _start(self, *arguments: str, path: str | None = None) -> subprocess.Popen[str]:
        code = "import sys; from dask.__main__ import main; sys.argv[0] = 'dask'; main()"
        out = (self.folder / f"dask-{len(self.processes)}.log").open("w")
        process = subprocess.Popen(
            [sys.executable, "-c", code, *arguments],
            stdout=out,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=self.folder,
            env={**os.environ, "PYTHONPATH": path or os.environ["PYTHONPATH"]},
        )
        self.processes.append(process)
        return process

    def _wait_for(self, process: subprocess.Popen[str], pattern: str) -> str:
        log = self.folder / f"dask-{self.processes.index(process)}.log"
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and process.poll() is None:
            found = re.search(pattern, log.read_text())
            if found:
                return found[1]
            time.sleep(0.05)
        raise AssertionError(log.read_text())

    def worker(self, nanny: bool = False, path: str | None = None) -> subprocess.Popen[str]:
        more = ["--nanny" if nanny else "--no-nanny", "--nthreads", "1", "--no-dashboard"]
        process = self._start("worker", self.address, *more, "--host", "127.0.0.1", "--death-timeout", "30", path=path)
        self._wait_for(process, r"(Registered to)")
        return process

    def close(self) -> None:
        for process in reversed(self.processes):
            process.terminate()
        for process in self.processes:
            try:
                process.wait(5)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(5)


@contextmanager
def yard(folder: Path, workers: int = 0, nanny: bool = False) -> Iterator[Yard]:
    made = Yard(folder)
    try:
        for _ in range(workers):
            made.worker(nanny)
        yield made
    finally:
        made.close()


def over(address: str, text: str = WATCHED, *changes: tuple[str, str]):
    return study(text, ("backend: sequential", f"backend: dask, address: '{address}', worker_wait_s: 3"), *changes)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory) -> dict:
    root = tmp_path_factory.mktemp("undisturbed")
    assert run_study(study(), root, live=False).exit_status == 0
    return rows(root / "small")


def when(folder: Path, count: int, act) -> threading.Thread:
    """Do something once so many rows are stored."""

    def watch() -> None:
        deadline = time.monotonic() + 60
        while len(read_heads(folder)) < count and time.monotonic() < deadline:
            time.sleep(0.01)
        act()

    thread = threading.Thread(target=watch)
    thread.start()
    return thread


def command(made: Yard, root: Path) -> subprocess.Popen[str]:
    """`cota-bench run` on the cluster, in a process of its own."""
    root.mkdir(exist_ok=True)
    path = write(root, WATCHED)
    words = ["run", str(path), "--results", str(root), "--backend", "dask", "--address", made.address]
    return subprocess.Popen(
        [sys.executable, "-m", "harness.cli", *words, "--no-tracking", "--no-report"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def test_rows_are_the_same_whatever_is_killed(tmp_path, undisturbed):
    with yard(tmp_path, workers=2) as made:
        third = tmp_path / "third"
        process = command(made, third)
        wait_for(third / "small", 6, process)
        process.kill()
        process.communicate(timeout=10)
        assert 6 <= len(rows(third / "small")) < 40
        process = command(made, third)
        wait_for(third / "small", len(rows(third / "small")) + 4, process)
        for _ in range(3):
            os.killpg(process.pid, signal.SIGINT)
            time.sleep(0.02)
        out, err = process.communicate(timeout=30)
        assert (process.returncode, "Traceback" in err) == (130, False), err
        assert "Run the same command again" in out, err
        stored = len(rows(third / "small"))
        process = command(made, third)
        out, err = process.communicate(timeout=60)
        assert (process.returncode, f"ran {40 - stored} episode(s)" in out) == (0, True), err
        assert rows(third / "small") == undisturbed

        killer = when(tmp_path / "small", 8, made.processes[1].kill)
        summary = run_study(over(made.address), tmp_path, live=False)
        killer.join()
        assert (summary.exit_status, summary.ran) == (0, 40)
        assert rows(tmp_path / "small") == undisturbed
        assert made.processes[1].wait(5) == -signal.SIGKILL

        second = tmp_path / "second"
        killer = when(second / "small", 8, made.processes[0].kill)
        began = time.monotonic()
        with pytest.raises(ClusterError, match="Every episode that ended is stored"):
            run_study(over(made.address), second, live=False)
        killer.join()
        assert time.monotonic() - began < 30
        left = 40 - len(rows(second / "small"))
        assert 0 < left <= 32
    assert run_study(study(), second, live=False).ran == left
    assert rows(second / "small") == undisturbed


def test_a_task_that_kills_every_worker_is_given_up_and_one_that_hangs_is_a_timeout(tmp_path):
    with yard(tmp_path, workers=2, nanny=True) as made:
        killing = FAULT.replace("backend: BACKEND, workers: 2", "backend: sequential")
        for folder, kind, times, limit in (("kill", "kill", 99, 60), ("hold", "hold", 1, 1)):
            place = tmp_path / folder
            place.mkdir()
            text = write(place, killing, FOLDER=place, KIND=kind, TIMES=times, LIMIT=limit).read_text()
            began = time.monotonic()
            summary = run_study(over(made.address, text, ("worker_wait_s: 3", "worker_wait_s: 60")), place, live=False)
            found = {task: row for (_, task), row in rows(place / "small").items()}
            print(f"{kind}: {time.monotonic() - began:.1f} s, {len(list(place.glob('test-1.*')))} strikes")
            assert summary.counts == {"done": 7, "failed": 1}
            bad = found["test-1"]
            assert (bad["status"], bad["boundary"]) == ("failed" if kind == "kill" else "timeout", "harness")
            reason = (
                "its worker process died 8 times (KilledWorker" if kind == "kill" else "its worker process was killed"
            )
            assert reason in bad["reason"]
            assert len(list(place.glob("test-1.*"))) == (8 if kind == "kill" else 1)


def test_without_workers_or_scheduler_or_package_the_run_says_so(tmp_path):
    with yard(tmp_path) as made:
        began = time.monotonic()
        with pytest.raises(ClusterError, match="no worker for 3 s"):
            run_study(over(made.address), tmp_path, live=False)
        assert time.monotonic() - began < 20
        made.worker(path=str(made.stranger))
        with pytest.raises(ClusterError, match=r"cannot load what it is sent \(.*RemoteSlot"):
            run_study(over(made.address), tmp_path, live=False)
        address = made.address
    began = time.monotonic()
    with pytest.raises(ClusterError, match="No dask scheduler answers at tcp://127"):
        Cluster(address)
    assert time.monotonic() - began < 15
    with pytest.raises(ClusterError, match="--address tcp://HOST:8786"):
        Cluster(None)
    with pytest.raises(ClusterError, match="--address tcp://HOST:8786"):
        adjusted(study(), None, "dask")
    with pytest.raises(UsageError, match="--address is for --backend dask, not for loky"):
        adjusted(study(), None, "loky", "tcp://127.0.0.1:1")
    assert adjusted(study(), 3, None, "tcp://127.0.0.1:1").throughput.backend == "dask"


def test_a_worker_keeps_what_it_built_and_other_code_is_refused(tmp_path, monkeypatch):
    file = tmp_path / "mine.py"
    file.write_text(
        "import os, pathlib\n"
        "from tests.grid.plugins.gridtest import Plain\n\n"
        "class Mine(Plain):\n"
        "    def __init__(self):\n"
        "        super().__init__()\n"
        "        with pathlib.Path(__file__).with_name('built').open('a') as file:\n"
        "            print(os.getpid(), file=file)\n"
    )
    mine = ("plain: {plugin: t-plain, params: {pause: 0.03}}", f"plain: {{plugin: '{file}:Mine'}}")
    with yard(tmp_path, workers=1) as made:
        assert run_study(over(made.address, WATCHED, mine), tmp_path, live=False).exit_status == 0
        assert (tmp_path / "built").read_text().split() == [str(made.processes[1].pid)]  # once, and not here
        monkeypatch.setattr("harness.cluster.source", lambda kind, name: "another")
        with pytest.raises(UsageError, match="is not that of the machine that runs the study"):
            run_study(over(made.address, WATCHED, mine), tmp_path / "again", live=False)
