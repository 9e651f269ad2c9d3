"""Links from the page to runs: there when the store has them, silently absent when not."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from harness.tracking.client import default_uri
from harness.tracking.links import SERVER, cell_links
from harness.tracking.plan import PlannedCell
from harness.tracking.sync import sync
from reports.frames import open_source
from reports.summary import summarise
from reports.write import write_report


def test_every_cell_has_its_run(folder: Path, cells: list[PlannedCell], tmp_path: Path) -> None:
    sync(folder, summarise=summarise)
    links = cell_links(folder)
    assert set(links) == {cell.key for cell in cells}
    assert len(set(links.values())) == len(cells)
    assert all(link.startswith(f"{SERVER}/#/experiments/") for link in links.values())
    page = write_report(folder, tmp_path / "out", links=links)[-1].read_text(encoding="utf-8")
    assert all(link.replace("&", "&amp;") in page for link in links.values())


def test_the_page_is_an_artefact_of_each_summary_run(folder: Path) -> None:
    from mlflow import MlflowClient

    found = sync(folder, summarise=summarise)
    client = MlflowClient(tracking_uri=default_uri(folder.parent))
    runs = client.search_runs([found.experiment_ids[1]])
    assert len(runs) == 2
    for run in runs:
        names = {file.path for file in client.list_artifacts(run.info.run_id)}
        assert {"report.html", "report.md", "performance.png"} <= names
        assert "`report.html` is the page to read" in run.data.tags["mlflow.note.content"]
        page = Path(client.download_artifacts(run.info.run_id, "report.html")).read_text(encoding="utf-8")
        assert "demo: report" in page
        assert "panel webshop" in page
    assert sync(folder, summarise=summarise).written == 0


def test_the_same_page_from_the_store(folder: Path, tmp_path: Path) -> None:
    """Read from MLflow it shows the same cells, charts and episodes."""
    uri = sync(folder, summarise=summarise).uri
    ours, theirs = (
        write_report(source, tmp_path / name)[-1].read_text(encoding="utf-8").split('id="origins"')[0]
        for name, source in (("a", open_source(folder)), ("b", open_source(uri, "demo")))
    )
    assert ours == theirs


def test_no_store_no_links_no_mlflow(tmp_path: Path) -> None:
    code = """
import sys
from pathlib import Path
from harness.tracking.links import cell_links
print(cell_links(Path(sys.argv[1])), "mlflow" in sys.modules)
"""
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "demo")], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "{} False"


def test_a_dead_or_damaged_store_gives_none(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert cell_links(folder) == {}  # the store is there, the study is not in it
    assert cell_links(folder, "http://127.0.0.1:9") == {}
    (folder.parent / "mlflow.db").write_bytes(b"not a database at all")
    assert cell_links(folder) == {}
