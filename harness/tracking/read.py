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
from harness.measures import FOLDER, Measure, read_all
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
            parts = list(pool.map(lambda item: _fetch(tracking_uri, item[1], folder.path / item[0]), kept.items()))
        measures = _measures(client, tracking_uri, study, folder.path)
    cells = sorted((cell for cell, _ in parts), key=lambda cell: _position(kept[cell.key]))
    rows = [row for _, some in parts for row in some]
    left_out = int(experiment.tags.get(layout.LEFT_OUT_TAG, "0"))
    base = tracking_uri if tracking_uri.startswith("http") else ""
    links = {
        cell.key: views.run_link(redacted(base), experiment.experiment_id, kept[cell.key].info.run_id) for cell in cells
    }
    origin = f"MLflow {redacted(tracking_uri)}"
    return tracked(origin, cells, rows, lambda: folder.records(cells), links, left_out, measures)


def _measures(client: MlflowClient, uri: str, study: str, folder: Path) -> dict[str, Measure]:
    """What was measured beside the episodes: artefacts of one run of the summary experiment."""
    experiment = client.get_experiment_by_name(layout.experiment_names(study)[1])
    if experiment is None or experiment.lifecycle_stage != "active":
        return {}
    for run in find_runs(client, experiment.experiment_id, layout.MEASURES_TAG).values():
        _download(uri, run, FOLDER, folder)
    return read_all(folder)


def _fetch(uri: str, run: Any, folder: Path) -> tuple[PlannedCell, list[Row]]:
    folder.mkdir()
    if not run.data.tags.get(DIGEST):
        raise UsageError(f"Run {run.info.run_id} was not written to its end. Repair the store with `cota-bench sync`.")
    cell = PlannedCell.from_json(parse(_download(uri, run, layout.CELL_FILE, folder).read_bytes()))
    if run.data.tags.get("cota.recorded", "0") == "0":
        return cell, []
    rows: list[Row] = read_parquet(_download(uri, run, layout.EPISODES, folder)).to_pylist()
    return cell, rows


def _download(uri: str, run: Any, name: str, folder: Path) -> Path:
    """One artefact, by the run's own address: asking by run id would look the run up four times for each file."""
    from mlflow.artifacts import download_artifacts

    address = f"{run.info.artifact_uri.rstrip('/')}/{name}"
    return Path(download_artifacts(artifact_uri=address, dst_path=str(folder), tracking_uri=uri))


def _position(run: Any) -> int:
    return int(run.data.tags.get("cota.position", "0"))
