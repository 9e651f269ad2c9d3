"""Summary experiment: one run a method and actor, made by the reports, written by the tracker.

Intervals and charts belong to `reports`, which the harness does not import: the maker is found through the entry point
group `cota_bench.reports` (name `summary`) or passed in.  Without it the cells are tracked all the same.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Final

from harness.measures import FOLDER, names
from harness.rows import Scalar
from harness.seeds import digest
from harness.tracking import layout, views
from harness.tracking.runs import LAYOUT, RunContent, find_runs, write_run
from harness.tracking.tracked import Tracked

if TYPE_CHECKING:
    from mlflow import MlflowClient

GROUP: Final = "cota_bench.reports"


@dataclass(frozen=True)
class SummaryRun:
    """One method with one actor: numbers, a description, and artefacts by file name."""

    method: str
    actor: str
    metrics: Mapping[str, float]
    note: str
    complete: bool
    params: Mapping[str, Scalar] = field(default_factory=dict)
    tags: Mapping[str, str] = field(default_factory=dict)
    artifacts: Mapping[str, bytes] = field(default_factory=dict)


@dataclass(frozen=True)
class Summary:
    """The summary runs of a study, the meaning of their metrics, and the charts of the comparison view."""

    runs: Sequence[SummaryRun]
    glossary: Mapping[str, str]
    bars: Mapping[str, Sequence[tuple[str, str]]]
    columns: Sequence[str]


Summarise = Callable[[Tracked], Summary]


@cache
def default_summarise() -> Summarise | None:
    """The installed maker of summaries, or None when the reports are not installed."""
    for point in entry_points(group=GROUP, name="summary"):
        made: Summarise = point.load()
        return made
    return None


def write_summary(client: MlflowClient, experiment_id: str, known: Tracked, summary: Summary) -> int:
    """Write the runs, drop those of methods and actors that are no more, and save the comparison view.

    Returns:
        The number of runs written.
    """
    present = find_runs(client, experiment_id, layout.GROUP_TAG)
    written = 0
    for position, item in enumerate(summary.runs):
        key = digest([item.method, item.actor])[:16]
        with tempfile.TemporaryDirectory(prefix="cota-bench-") as name:
            folder = Path(name)
            for file, data in item.artifacts.items():
                target = folder / file
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(data)
            content = _content(known, item, key, folder, position)
            written += write_run(client, experiment_id, content, present.pop(key, None))[1]
    for run in present.values():
        client.delete_run(run.info.run_id)
    note = layout.study_note(known.cells, layout.simulated_parts(known.rows), summary.glossary)
    client.set_experiment_tag(experiment_id, "mlflow.note.content", note)
    views.save_view(client, experiment_id, bars=summary.bars, columns=summary.columns)
    return written


def write_measures(client: MlflowClient, experiment_id: str, study: str, folder: Path) -> bool:
    """Copy the study's measures to one run of the summary experiment, or drop that run when there are none.

    Args:
        client: The store.
        experiment_id: The summary experiment.
        study: Name of the study.
        folder: Its results folder.

    Returns:
        Whether anything was written.
    """
    present = find_runs(client, experiment_id, layout.MEASURES_TAG)
    texts = measure_texts(folder)
    if not texts:
        for run in present.values():
            client.delete_run(run.info.run_id)
        return False
    now = int(1000 * time.time())
    with tempfile.TemporaryDirectory(prefix="cota-bench-") as name:
        target = Path(name) / FOLDER
        target.mkdir()
        for measure, text in texts.items():
            (target / f"{measure}.json").write_text(text, encoding="utf-8")
        content = RunContent(
            key_tag=layout.MEASURES_TAG,
            key=study,
            name="Measures beside the episodes",
            status=layout.COMPLETE,
            digest=digest([LAYOUT, sorted(texts.items())])[:32],
            started_ms=now,
            ended_ms=now,
            params={"measures": ", ".join(texts)},
            tags={"cota.study": study, "cota.position": "99999"},
            note=f"Numbers of **{study}** that are no episodes, each with the command that made it: `{FOLDER}/*.json`.",
            folder=Path(name),
        )
        # A new measure changes a parameter, which MLflow refuses: the run is then made anew.
        return write_run(client, experiment_id, content, present.get(study))[1]


def measure_texts(folder: Path) -> dict[str, str]:
    """The measures of a results folder as their files hold them, by name."""
    return {name: (folder / FOLDER / f"{name}.json").read_text(encoding="utf-8") for name in names(folder)}


def _content(known: Tracked, item: SummaryRun, key: str, folder: Path, position: int) -> RunContent:
    rows = [row for row in known.rows if row["method"] == item.method and row["actor"] == item.actor]
    ends = [float(row["started_at"] or 0) + float(row["wall_s"] or 0) for row in rows]
    starts = [float(row["started_at"] or 0) for row in rows]
    now = time.time()
    params: dict[str, Scalar] = {"method": item.method, "actor": item.actor, **item.params}
    parts = layout.simulated_parts(rows)
    tags = {
        "cota.study": known.study,
        "method": item.method,
        "actor": item.actor,
        "simulated": ", ".join(parts) if parts else "nothing",
        "cota.position": f"{position:05d}",
        **item.tags,
    }
    files = {name: digest(data.hex()) for name, data in item.artifacts.items()}
    return RunContent(
        key_tag=layout.GROUP_TAG,
        key=key,
        name=f"{item.method} | {item.actor}",
        status=layout.COMPLETE if item.complete else layout.INCOMPLETE,
        digest=digest([LAYOUT, params, tags, sorted(item.metrics.items()), item.note, files])[:32],
        started_ms=int(1000 * min(starts, default=now)),
        ended_ms=int(1000 * max(ends, default=now)),
        params=params,
        tags=tags,
        metrics=item.metrics,
        step=len(rows),
        note=item.note,
        complete=item.complete,
        folder=folder,
    )
