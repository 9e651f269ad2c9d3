"""Stores that are down, read-only or foreign, a real server, links and the page's saved view."""

from __future__ import annotations

import base64
import json
import os
import socket
import time
import zlib
from pathlib import Path

import pytest

from harness import ledger
from harness.errors import UsageError
from harness.tracking import client as client_
from harness.tracking import views
from harness.tracking.client import TrackerDown, connect, redacted, resolve_uri
from harness.tracking.read import from_mlflow, studies
from harness.tracking.sync import sync
from harness.tracking.ui import free_port, start_ui
from reports.summary import summarise
from tests.tracking.conftest import bare


def test_a_dead_server_is_found_in_seconds(folder: Path) -> None:
    before = (folder / ledger.FILE).read_bytes()
    began = time.monotonic()
    with pytest.raises(TrackerDown) as caught:
        sync(folder, f"http://user:hunter2@127.0.0.1:{free_port()}", summarise=bare)
    assert time.monotonic() - began < 6
    text = str(caught.value)
    assert "cota-bench sync" in text
    assert "safe in the ledger" in text
    assert "hunter2" not in text
    assert (folder / ledger.FILE).read_bytes() == before


def test_a_server_that_accepts_and_never_answers(folder: Path) -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        began = time.monotonic()
        with pytest.raises(TrackerDown, match="no answer within"):
            sync(folder, f"http://127.0.0.1:{silent.getsockname()[1]}", summarise=bare)
        assert time.monotonic() - began < 10


def test_a_dead_database_is_found_in_seconds(folder: Path) -> None:
    began = time.monotonic()
    with pytest.raises(TrackerDown, match="does not accept connections") as caught:
        sync(folder, f"postgresql+psycopg://user:hunter2@127.0.0.1:{free_port()}/mlflow")
    assert time.monotonic() - began < 6
    assert "hunter2" not in str(caught.value)


def test_files_that_are_no_store(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "text.db").write_text("this is a note, not a database at all")
    with pytest.raises(TrackerDown, match="not an SQLite database"):
        sync(folder, f"sqlite:///{tmp_path / 'text.db'}")
    with pytest.raises(UsageError, match="no tracking store"):
        from_mlflow(f"sqlite:///{tmp_path / 'absent.db'}", "demo")
    assert not (tmp_path / "absent.db").exists()


def test_read_only_store(folder: Path, uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests may run as root, for whom every file is writable; so the answer of the system is put in its place."""
    sync(folder, summarise=bare)
    monkeypatch.setattr(client_.os, "access", lambda path, mode: mode != os.W_OK)
    with pytest.raises(TrackerDown, match="may not be written"):
        sync(folder, summarise=bare)


def test_uri_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert resolve_uri(None, tmp_path) == f"sqlite:///{tmp_path / 'mlflow.db'}"
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://env:1")
    assert resolve_uri(None, tmp_path) == "http://env:1"
    assert resolve_uri("http://flag:1", tmp_path) == "http://flag:1"
    assert redacted("postgresql://me:pw@host/db") == "postgresql://***@host/db"


def test_odd_folder_names(tmp_path: Path, folder: Path) -> None:
    moved = tmp_path / "my results #1 ü"
    folder.parent.rename(moved)
    result = sync(moved / "demo", summarise=bare)
    assert result.written == 12
    assert (moved / "mlflow.db").exists()
    assert len(from_mlflow(result.uri, "demo").rows) == 36
    assert list((moved / "mlflow-artifacts" / "demo").iterdir())


def test_unknown_study_names_the_nearest(folder: Path, uri: str) -> None:
    sync(folder, summarise=bare)
    assert studies(uri) == ["demo"]
    with pytest.raises(UsageError, match="Did you mean 'demo'"):
        from_mlflow(uri, "deom")


def test_settings_of_the_user_are_kept(uri: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_TIMEOUT", "77")
    connect(uri)
    assert os.environ["MLFLOW_HTTP_REQUEST_TIMEOUT"] == "77"
    assert os.environ["MLFLOW_HTTP_REQUEST_MAX_RETRIES"] == "1"


def test_the_saved_view_is_state_the_page_can_read(folder: Path, uri: str) -> None:
    result = sync(folder, summarise=summarise)
    assert result.view_saved
    for experiment_id in result.experiment_ids:
        tags = connect(uri).get_experiment(experiment_id).tags
        kind, _, packed = tags[views.PREFIX + views.COMPARISON].partition(";")
        state = json.loads(zlib.decompress(base64.b64decode(packed)))
        assert kind == "deflate"
        sections = {section["uuid"] for section in state["compareRunSections"]}
        assert {chart["metricSectionId"] for chart in state["compareRunCharts"]} == sections
        run = connect(uri).search_runs([experiment_id], max_results=1)[0]
        drawn = {chart["metricKey"] for chart in state["compareRunCharts"] if chart["type"] == "BAR"}
        assert drawn <= set(run.data.metrics) | {"fired_share", "webshop_avg_t", "alfworld_avg_t", "retail_avg_t"}


def test_a_store_that_refuses_the_view_gets_plain_links(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from mlflow import MlflowClient

    keep = MlflowClient.set_experiment_tag

    def refuse(self: MlflowClient, experiment_id: str, key: str, value: str) -> None:
        if key.startswith(views.PREFIX):
            raise RuntimeError("no such tag here")
        keep(self, experiment_id, key, value)

    monkeypatch.setattr(MlflowClient, "set_experiment_tag", refuse)
    result = sync(folder, summarise=bare)
    assert result.written == 12
    assert not result.view_saved
    assert "viewStateShareKey" not in result.path
    assert "workflowType=machine_learning" in result.path


def test_a_port_in_use_is_said(folder: Path) -> None:
    sync(folder, summarise=bare)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(UsageError, match="in use"):
            start_ui(folder, taken.getsockname()[1])
