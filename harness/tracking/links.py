"""Links: the address of each cell's run in the MLflow page, for who reads the ledger and wants to look there.

A store in a file has no address of its own: its links are those of the server that `cota-bench ui` starts by default.
They are decoration, so a store that is not there, or does not answer, gives none.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from harness.tracking import layout, views
from harness.tracking.client import TrackerDown, connect, redacted, resolve_uri, sqlite_path, tracker_errors
from harness.tracking.runs import find_runs

SERVER: Final = "http://127.0.0.1:5000"


def cell_links(folder: Path, tracking_uri: str | None = None) -> dict[str, str]:
    """Address of the run of each cell (by key) of a results folder; empty when the store does not hold the study."""
    uri = resolve_uri(tracking_uri, folder.parent)
    path = sqlite_path(uri)
    if path is not None and not path.exists():
        return {}
    base = redacted(uri) if uri.startswith("http") else SERVER
    try:
        with tracker_errors(uri):
            client = connect(uri, create=False)
            experiment = client.get_experiment_by_name(layout.experiment_names(folder.name)[0])
            if experiment is None or experiment.lifecycle_stage != "active":
                return {}
            runs = find_runs(client, experiment.experiment_id, layout.CELL_TAG)
    except TrackerDown:
        return {}
    return {key: views.run_link(base, experiment.experiment_id, run.info.run_id) for key, run in runs.items()}
