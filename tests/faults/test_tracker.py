"""The tracking server dies in the middle of a run: the run does not care, and the store catches up later."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from harness.cli.run import run_command
from harness.run import run_study
from harness.tracking.client import connect, default_uri
from harness.tracking.live import LiveTracker
from harness.tracking.read import from_mlflow
from harness.tracking.tracked import from_ledger
from harness.tracking.ui import start_ui
from reports.write import report_files
from tests.grid.samples import rows, study
from tests.grid.test_faults import SLOW, write


def test_a_server_that_dies_in_the_middle(tmp_path: Path, monkeypatch, capsys) -> None:
    psutil = pytest.importorskip("psutil")
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    monkeypatch.setattr("harness.tracking.live.SHARE", 0.0)
    assert run_study(study(), tmp_path / "undisturbed", live=False).exit_status == 0
    path = write(tmp_path, SLOW)
    store = default_uri(tmp_path)
    connect(store)
    ui = start_ui(tmp_path, 0, tracking_uri=store, say=lambda _text: None)
    assert ui.process is not None
    said: list[str] = []
    tracker = LiveTracker(tmp_path / "small", ui.base, every_s=0.05, say=said.append)
    assert tracker.check()
    seen: list[str] = []

    def killer(episode) -> None:
        seen.append(episode.task_id)
        if len(seen) == 4:
            server = psutil.Process(ui.process.pid)
            for process in (*server.children(recursive=True), server):
                process.kill()

    began = time.monotonic()
    try:
        summary = run_study(study(path.read_text()), tmp_path, live=False, observers=[killer, tracker])
    finally:
        ui.stop()
    assert (summary.exit_status, summary.ran) == (0, 40)
    assert time.monotonic() - began < 60
    assert rows(tmp_path / "small") == rows(tmp_path / "undisturbed" / "small")
    assert len(said) == 1
    assert "Episodes are safe in the ledger" in said[0]
    assert "The run goes on without it" in said[0]

    assert run_command(str(path), tmp_path, ui.base, None, None, True, False) == 1
    out = capsys.readouterr()
    assert "ran 0 episode(s)" in out.out
    assert "Nothing is lost: the ledger is complete. Later: cota-bench sync small" in out.err
    assert run_command(str(path), tmp_path, store, None, None, True, False) == 0
    assert report_files(from_mlflow(store, "small")) == report_files(from_ledger(tmp_path / "small"))


@pytest.mark.parametrize("where", ["http://127.0.0.1:9", "sqlite:////proc/nowhere/mlflow.db"])
def test_a_store_that_never_was_costs_no_episode(tmp_path: Path, capsys, where: str) -> None:
    path = write(tmp_path, SLOW.replace("pause: 0.02", "pause: 0"))
    assert run_command(str(path), tmp_path, where, None, None, True, False) == 1
    out = capsys.readouterr()
    assert "40 planned = 40 done" in out.out
    assert "The run goes on without it" in out.err
    assert "Nothing is lost" in out.err
