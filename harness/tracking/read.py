"""Reading a study back from MLflow: plan, rows and full episodes, without the results folder.

Each cell's run carries its plan (`cell.json`) and its episodes (`episodes.parquet`), so a colleague who has only the
tracking server gets the same tables, and is told the same missing cells, as the one who has the ledger.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.codec import parse
from harness.errors import UsageError, nearest
from harness.records import Episode
from harness.rows import Row
from harness.tracking import layout, views
from harness.tracking.client import connect, redacted, tracker_errors
from harness.tracking.plan import PlannedCell
from harness.tracking.runs import DIGEST, find_runs
from harness.tracking.table import read_parquet, read_records
from harness.tracking.tracked import Tracked, tracked

if TYPE_CHECKING:
    from mlflow import MlflowClient

DOWNLOADS = 4


class _Folder:
    """A temporary folder that lives as long as the study that was read into it."""

    def __init__(self) -> None:
        self.held = tempfile.TemporaryDirectory(prefix="cota-bench-")
        self.path = Path(self.held.name)

    def records(self, cells: list[PlannedCell]) -> Iterator[Episode]:
        for cell in cells:
            path = self.path / cell.key / layout.EPISODES
            if path.exists():
                yield from read_records(path)


def studies(tracking_uri: str) -> list[str]:
    """Names of the studies in a store, sorted. Raises `TrackerDown`."""
    with tracker_errors(tracking_uri):
        client = connect(tracking_uri, create=False)
        found = client.search_experiments(filter_string="tags.`cota.study` != ''")
        return sorted({experiment.tags["cota.study"] for experiment in found})


def from_mlflow(tracking_uri: str, study: str) -> Tracked:
    """A study from a tracking store.

    Raises:
        TrackerDown: the store does not answer.
        UsageError: no such study there, or its runs hold two rows of one episode.
    """
    with tracker_errors(tracking_uri):
        client = connect(tracking_uri, create=False)
        experiment = client.get_experiment_by_name(layout.experiment_names(study)[0])
        if experiment is None or experiment.lifecycle_stage != "active":
            raise UsageError(
                f"{redacted(tracking_uri)} holds no study {study!r}.{nearest(study, studies(tracking_uri))} "
                "Write it there from the ledger with `cota-bench sync`."
            )
        runs = find_runs(client, experiment.experiment_id, layout.CELL_TAG)
        kept = {key: run for key, run in runs.items() if run.data.tags.get("cota.status") != layout.OUTSIDE}
        folder = _Folder()
        with ThreadPoolExecutor(DOWNLOADS) as pool:
            parts = list(pool.map(lambda item: _fetch(client, item[1], folder.path / item[0]), kept.items()))
    cells = sorted((cell for _, cell, _ in parts), key=lambda cell: _position(kept[cell.key]))
    rows = [row for _, _, some in parts for row in some]
    base = tracking_uri if tracking_uri.startswith("http") else ""
    links = {
        cell.key: views.run_link(redacted(base), experiment.experiment_id, kept[cell.key].info.run_id) for cell in cells
    }
    return tracked(f"MLflow {redacted(tracking_uri)}", cells, rows, lambda: folder.records(cells), links)


def _fetch(client: MlflowClient, run: Any, folder: Path) -> tuple[str, PlannedCell, list[Row]]:
    folder.mkdir()
    run_id = run.info.run_id
    if not run.data.tags.get(DIGEST):
        raise UsageError(f"Run {run_id} was not written to its end. Repair the store with `cota-bench sync`.")
    client.download_artifacts(run_id, layout.CELL_FILE, str(folder))
    cell = PlannedCell.from_json(parse((folder / layout.CELL_FILE).read_bytes()))
    if run.data.tags.get("cota.recorded", "0") == "0":
        return run_id, cell, []
    path = Path(client.download_artifacts(run_id, layout.EPISODES, str(folder)))
    rows: list[Row] = read_parquet(path).to_pylist()
    return run_id, cell, rows


def _position(run: Any) -> int:
    return int(run.data.tags.get("cota.position", "0"))
