"""A real PostgreSQL server as the store, started for these tests as a user that is not root."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.ledger import FILE
from harness.tracking.client import TrackerDown
from harness.tracking.read import from_mlflow
from harness.tracking.sync import sync
from harness.tracking.tracked import from_ledger
from harness.tracking.ui import free_port, start_ui
from reports.summary import summarise
from reports.write import report_files, write_report
from tests.synthetic import episodes_of, planned_cells, write_ledger, write_plan

BINARIES = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb")) or sorted(
    Path(found) for found in [shutil.which("initdb")] if found
)
SECRET = "hunter2"


class Server:
    """One cluster in a folder of its own; `kill` is kill -9 of all of it."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.port, self.bin = folder, free_port(), BINARIES[-1].parent
        self.more = {"user": "postgres", "group": "postgres"} if os.geteuid() == 0 else {}
        (folder / "password").write_text(SECRET)
        if self.more:
            for path in (folder, folder / "password"):
                shutil.chown(path, "postgres", "postgres")
        options = ["--auth=scram-sha-256", f"--pwfile={folder / 'password'}", "--username=bench", "--no-sync"]
        self._run("initdb", "-D", str(folder / "data"), "--encoding=UTF8", "--locale=C", *options)
        self.start()
        self.uri = f"postgresql+psycopg://bench:{SECRET}@127.0.0.1:{self.port}/postgres"

    def _run(self, name: str, *arguments: str) -> None:
        command = [self.bin / name, *arguments]
        done = subprocess.run(command, capture_output=True, text=True, cwd=self.folder, timeout=60, **self.more)
        assert done.returncode == 0, done.stdout + done.stderr

    def start(self) -> None:
        settings = f"-p {self.port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={self.folder}"
        log = str(self.folder / "log")
        self._run("pg_ctl", "-D", str(self.folder / "data"), "-l", log, "-w", "-o", settings, "start")

    def kill(self) -> None:
        pid = int((self.folder / "data" / "postmaster.pid").read_text().split()[0])
        os.kill(pid, signal.SIGKILL)
        deadline = time.monotonic() + 10
        while Path(f"/proc/{pid}").exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        time.sleep(0.5)  # its children see that it is gone

    def stop(self) -> None:
        if (self.folder / "data" / "postmaster.pid").exists():
            self._run("pg_ctl", "-D", str(self.folder / "data"), "-m", "immediate", "stop")


@pytest.fixture(scope="module")
def postgres() -> Iterator[Server]:
    pytest.importorskip("psycopg")
    if not BINARIES:
        pytest.skip("PostgreSQL's server (initdb, pg_ctl) is not installed")
    folder = Path(tempfile.mkdtemp(prefix="cota-bench-pg-"))
    try:
        server = Server(folder)
        yield server
        server.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def study(results: Path, name: str) -> Path:
    cells = planned_cells(name, methods=("origin", "cota"), actors=("weak",), seeds=(0, 1), tasks=3)
    return write_ledger(write_plan(results / name, cells), episodes_of(cells))


def test_a_database_as_the_store(postgres: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Written, read, written again, shown by the page; killed, said so, and caught up with when it is back."""
    monkeypatch.chdir(tmp_path)
    results = tmp_path / "results"
    folder = study(results, "demo")
    first = sync(folder, postgres.uri, summarise=summarise)
    assert (first.written, first.incomplete) == (12, 0)
    assert SECRET not in repr(first)
    assert sync(folder, postgres.uri, summarise=summarise).written == 0
    assert report_files(from_mlflow(postgres.uri, "demo")) == report_files(from_ledger(folder))
    assert not (tmp_path / "mlruns").exists()
    assert list((results / "mlflow-artifacts").rglob("episodes.parquet"))

    ui = start_ui(folder, tracking_uri=postgres.uri, port=0, say=lambda _text: None)
    try:
        assert ui.process is not None
        assert SECRET not in Path(f"/proc/{ui.process.pid}/cmdline").read_text()
        ours = {path.name: path.read_bytes() for path in write_report(folder, tmp_path / "a")[:-1]}
        theirs = {path.name: path.read_bytes() for path in write_report(ui.base, tmp_path / "b", study="demo")[:-1]}
        assert ours == theirs
    finally:
        ui.stop()

    other = study(results, "second")
    before = (other / FILE).read_bytes()
    postgres.kill()
    began = time.monotonic()
    with pytest.raises(TrackerDown) as caught:
        sync(other, postgres.uri, summarise=summarise)
    assert time.monotonic() - began < 10
    assert SECRET not in str(caught.value)
    assert (other / FILE).read_bytes() == before
    postgres.start()
    assert sync(other, postgres.uri, summarise=summarise).written == 12
    assert report_files(from_mlflow(postgres.uri, "second")) == report_files(from_ledger(other))
    assert sync(folder, postgres.uri, summarise=summarise).written == 0
