"""A real MLflow server: writing and reading over HTTP, the page in a real browser, and the server's end."""

from __future__ import annotations

import re
import shutil
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.tracking.client import TrackerDown, connect
from harness.tracking.read import from_mlflow
from harness.tracking.sync import sync
from harness.tracking.ui import Ui, start_ui
from reports.summary import summarise
from reports.write import write_report
from tests.synthetic import episodes_of, planned_cells, write_ledger, write_plan
from tests.tracking.test_traces import stored

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


def study(results: Path, name: str) -> Path:
    cells = planned_cells(name, methods=("origin", "cota"), actors=("weak",), seeds=(0, 1), tasks=3)
    return write_ledger(write_plan(results / name, cells), episodes_of(cells))


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory, migrated: Path) -> Iterator[tuple[Path, Ui]]:
    """A results folder with a study in its store, and the server that shows it."""
    results = tmp_path_factory.mktemp("served")
    shutil.copy(migrated, results / "mlflow.db")
    folder = study(results, "demo")
    sync(folder, f"sqlite:///{results / 'mlflow.db'}", summarise=summarise)
    said: list[str] = []
    ui = start_ui(folder, tracking_uri=f"sqlite:///{results / 'mlflow.db'}", say=said.append)
    assert ui.link in said[0]
    yield folder, ui
    ui.stop()


def test_health_and_nothing_twice(served: tuple[Path, Ui]) -> None:
    """The runs written through the file are found over HTTP by their tags."""
    folder, ui = served
    with urllib.request.urlopen(ui.base + "/health") as answer:
        assert answer.status == 200
    again = sync(folder, ui.base, summarise=summarise)
    assert (again.written, again.unchanged) == (0, 12)
    assert again.link == ui.link


def test_written_and_read_over_http(served: tuple[Path, Ui], tmp_path: Path) -> None:
    folder, ui = served
    other = study(folder.parent, "second")
    assert sync(other, ui.base, summarise=summarise).written == 12
    assert sync(other, ui.base, summarise=summarise).written == 0
    traced = stored(ui.base, "second").values()
    assert len(traced) == 2 * 12
    assert all(trace.data.spans[0].span_type == "AGENT" for trace in traced)
    ours = {path.name: path.read_bytes() for path in write_report(other, tmp_path / "a")[:-1]}
    theirs = {path.name: path.read_bytes() for path in write_report(ui.base, tmp_path / "b", study="second")[:-1]}
    assert ours == theirs
    read = from_mlflow(ui.base, "second")
    assert set(read.links) == {cell.key for cell in read.cells}
    assert all(link.startswith(ui.base) for link in read.links.values())


def test_artefacts_through_the_server(served: tuple[Path, Ui], tmp_path: Path) -> None:
    """A server that keeps the artefacts itself, as one on another machine does: no shared disk is needed."""
    folder, ui = served
    client = connect(ui.base)
    for name in ("third", "third-summary"):
        client.create_experiment(name, artifact_location=f"mlflow-artifacts:/{name}")
    other = study(folder.parent, "third")
    assert sync(other, ui.base, summarise=summarise).written == 12
    ours = {path.name: path.read_bytes() for path in write_report(other, tmp_path / "a")[:-1]}
    theirs = {path.name: path.read_bytes() for path in write_report(ui.base, tmp_path / "b", study="third")[:-1]}
    assert ours == theirs
    for name in ("demo-summary", "third-summary"):
        experiment = client.get_experiment_by_name(name)
        run = client.search_runs([experiment.experiment_id])[0]
        address = f"{ui.base}/get-artifact?path=report.md&run_uuid={run.info.run_id}"
        with urllib.request.urlopen(address) as answer:
            assert answer.read().decode().startswith(f"# {name.removesuffix('-summary')}")


@pytest.mark.skipif(BROWSER is None, reason="no chromium here")
def test_the_link_opens_on_the_saved_comparison(served: tuple[Path, Ui], tmp_path: Path) -> None:
    """Guards the page's own format of saved views: our sections, metrics and runs must be on it."""
    _, ui = served
    command = [str(BROWSER), "--headless=new", "--no-sandbox", "--disable-gpu", "--window-size=1600,1200"]
    command += [f"--user-data-dir={tmp_path / 'profile'}", "--timeout=45000"]
    wanted = ("shared view", "Performance", "Time against Origin", "webshop_performance", "cota | weak")
    missing: list[str] = []
    # The page's clock is virtual and may run ahead of a busy machine: a longer budget before it counts as a failure.
    for budget in (20_000, 60_000, 180_000):
        dump = [*command, f"--virtual-time-budget={budget}", "--dump-dom", ui.link]
        page = subprocess.run(dump, capture_output=True, text=True, timeout=90).stdout
        shown = " ".join(re.sub(r"<[^>]*>", " ", page).split())
        missing = [text for text in wanted if text not in shown]
        if not missing:
            break
    assert missing == []


def test_a_stopped_server_is_found_out_quickly(served: tuple[Path, Ui]) -> None:
    """Last in this file: it ends the server."""
    folder, ui = served
    ui.stop()
    began = time.monotonic()
    with pytest.raises(TrackerDown, match="cota-bench sync"):
        sync(folder, ui.base, summarise=summarise)
    assert time.monotonic() - began < 6
