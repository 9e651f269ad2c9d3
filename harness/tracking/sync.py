"""Sync: make the tracking store say what the ledger says.

One way only: the ledger is the truth, the store can be deleted and made again.  Cells are written one at a time by the
calling process alone, so memory holds one cell's episodes and no worker ever talks to the store.  A second sync finds
nothing to do: digests are taken over the ledger's header lines, without inflating a record.
"""

from __future__ import annotations

import fcntl
import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from harness import ledger
from harness.codec import dump, from_json, parse
from harness.errors import UsageError
from harness.frames import Frame
from harness.measures import read_all
from harness.rows import ROW_VERSION, Row, record_row
from harness.seeds import digest
from harness.tracking import layout, traces, views
from harness.tracking.client import artifact_root, connect, redacted, resolve_uri, sqlite_path, tracker_errors
from harness.tracking.metrics import CURVES, curves, final_metrics
from harness.tracking.plan import PlannedCell, cells_from_rows, read_plan
from harness.tracking.runs import LAYOUT, TAG_CHARS, RunContent, clip, ensure_experiment, find_runs, write_run
from harness.tracking.summary import Summarise, default_summarise, measure_texts, write_measures, write_summary
from harness.tracking.table import write_csv, write_parquet
from harness.tracking.tracked import from_ledger, tracked

if TYPE_CHECKING:
    from mlflow import MlflowClient

CELL_COLUMNS: Final = [
    "tags.cota.status",
    "params.method",
    "params.actor",
    "params.environment",
    "params.seed",
    "metrics.reward_mean_scored",
    "metrics.success_rate_scored",
    "metrics.episodes_scored",
    "metrics.episodes_errors",
    "metrics.seconds_per_episode",
]


@dataclass(frozen=True)
class SyncResult:
    """What a sync did; `link` opens the comparison when the store is a server, `path` is for any server's address."""

    uri: str
    experiments: tuple[str, str]
    experiment_ids: tuple[str, str]
    written: int
    unchanged: int
    incomplete: int
    link: str | None
    path: str
    view_saved: bool


def sync(
    folder: Path,
    tracking_uri: str | None = None,
    *,
    summarise: Summarise | None = None,
    cells: Sequence[PlannedCell] | None = None,
    only: frozenset[str] | None = None,
) -> SyncResult:
    """Bring the store up to date with one study's results folder.

    Args:
        folder: `results/<study>` with its ledger and plan.
        tracking_uri: The store; else `MLFLOW_TRACKING_URI`, else SQLite in the folder above.
        summarise: Makes the summary runs; the installed reports by default.
        cells: The plan; read from the folder by default.
        only: Just the cells of these keys, without the summary: for use while a study runs.

    Raises:
        TrackerDown: the store cannot be used; the ledger is untouched.
        UsageError: the folder holds no study, or its ledger cannot be believed.
    """
    uri = resolve_uri(tracking_uri, folder.parent)
    heads = ledger.read_heads(folder)
    plan = list(cells if cells is not None else read_plan(folder))
    if not plan:
        plan = cells_from_rows(from_ledger(folder).rows) if heads else []
    if not plan:
        raise UsageError(f"{folder} holds neither a plan nor an episode. Run the study first: cota-bench run STUDY")
    with tracker_errors(uri), _alone(uri):
        work = _Sync(connect(uri), uri, folder, plan, heads)
        work.write_cells(only)
        if only is None:
            work.write_summary(summarise or default_summarise())
        return work.result()


class _Sync:
    """One pass over the cells; holds what `sync` needs between its steps."""

    def __init__(
        self,
        client: MlflowClient,
        uri: str,
        folder: Path,
        plan: Sequence[PlannedCell],
        heads: Mapping[ledger.Key, Mapping[str, Any]],
    ) -> None:
        self.client, self.uri, self.folder, self.plan = client, uri, folder, plan
        self.study = plan[0].study
        self.names = layout.experiment_names(self.study)
        self.heads: dict[str, list[Mapping[str, Any]]] = {}
        for head in heads.values():
            self.heads.setdefault(head["cell"], []).append(head)
        self.digests = {
            cell.key: cell_digest(cell, self.heads.get(cell.key, []), position) for position, cell in enumerate(plan)
        }
        self.left_out = sum(len(some) for key, some in self.heads.items() if key not in self.digests)
        self.root = artifact_root(uri, folder.parent)
        self.ids = (self._experiment(0), self._experiment(1))
        self.written = self.unchanged = 0
        self.rows: dict[str, list[Row]] = {}
        self.traced = traces.wanted(folder)
        self._found: ledger.Found | None = None
        self._frames: dict[str, list[Frame]] = {}

    def _experiment(self, which: int) -> str:
        tags = {"cota.study": self.study, "mlflow.experimentKind": "custom_model_development"}
        return ensure_experiment(self.client, self.names[which], self.root, tags)

    def write_cells(self, only: frozenset[str] | None) -> None:
        runs = find_runs(self.client, self.ids[0], layout.CELL_TAG)
        for position, cell in enumerate(self.plan):
            if only is not None and cell.key not in only:
                continue
            run = runs.get(cell.key)
            if run is not None and run.data.tags.get("cota.digest") == self.digests[cell.key]:
                self.unchanged += 1
                self._trace(cell, run.info.run_id, run.data.tags)
                continue
            run_id, wrote = self._write_cell(cell, run, position)
            self.written += wrote
            self._trace(cell, run_id, {} if run is None else run.data.tags)
        if only is None:
            self._mark_outside(runs)
            self._count_outside()

    def _trace(self, cell: PlannedCell, run_id: str, tags: Mapping[str, str]) -> None:
        """The traces of a cell, unless its run has them; the mark comes last, as a run's digest does."""
        first = set(cell.tasks[: self.traced])
        heads = sorted(
            (head for head in self.heads.get(cell.key, []) if head["task_id"] in first and head["status"] != "skipped"),
            key=lambda head: cell.tasks.index(head["task_id"]),
        )
        mark = traces.mark_of(run_id, heads)
        if tags.get(traces.MARK) == mark or (not heads and traces.MARK not in tags):
            return
        tasks = {head["task_id"] for head in heads}
        episodes = [from_json(parse(text)) for text in self._texts(cell, tasks)]
        ids = traces.write_traces(self.client, self.uri, self.ids[0], run_id, cell.key, episodes)
        self.client.set_tag(run_id, traces.IDS, clip(", ".join(ids), TAG_CHARS))
        self.client.set_tag(run_id, traces.MARK, mark)

    def _write_cell(self, cell: PlannedCell, run: Any | None, position: int) -> tuple[str, bool]:
        texts = self._texts(cell)
        rows = self.rows[cell.key] = [record_row(parse(text)) for text in texts]
        with tempfile.TemporaryDirectory(prefix="cota-bench-") as folder:
            mark, methods = self.digests[cell.key], [planned.method for planned in self.plan]
            content = cell_content(cell, rows, texts, mark, Path(folder), position, methods)
            return write_run(self.client, self.ids[0], content, run)

    def _mark_outside(self, runs: Mapping[str, Any]) -> None:
        """Runs of cells that the plan no longer has stay, marked, so that no report counts them."""
        planned = {cell.key for cell in self.plan}
        for key, run in runs.items():
            if key not in planned and run.data.tags.get("cota.status") != layout.OUTSIDE:
                self.client.set_tag(run.info.run_id, "cota.digest", "")
                self.client.set_tag(run.info.run_id, "cota.status", layout.OUTSIDE)

    def _count_outside(self) -> None:
        """How many episodes the ledger holds outside the plan: a report from the store must say the same number."""
        present = self.client.get_experiment(self.ids[0]).tags.get(layout.LEFT_OUT_TAG, "0")
        if present != str(self.left_out):
            self.client.set_experiment_tag(self.ids[0], layout.LEFT_OUT_TAG, str(self.left_out))

    def write_summary(self, summarise: Summarise | None) -> None:
        """The summary experiment and the descriptions, only when a cell or a measure changed since then."""
        measured = sorted(measure_texts(self.folder).items())
        whole = digest([LAYOUT, ROW_VERSION, sorted(self.digests.items()), self.left_out, *measured])
        present = self.client.get_experiment(self.ids[1]).tags.get("cota.digest")
        if present == whole:
            return
        rows = [row for cell in self.plan for row in self._rows(cell)]
        simulated = layout.simulated_parts(rows)
        note = layout.study_note(self.plan, simulated, layout.cell_glossary())
        self.client.set_experiment_tag(self.ids[0], "mlflow.note.content", note)
        if summarise is not None:
            source, records = f"ledger {self.folder}", lambda: ledger.read_episodes(self.folder)
            measures = read_all(self.folder)
            known = tracked(source, self.plan, rows, records, left_out=self.left_out, measures=measures)
            known.memo["folder"] = self.folder
            write_summary(self.client, self.ids[1], known, summarise(known))
        write_measures(self.client, self.ids[1], self.study, self.folder)
        self.client.set_experiment_tag(self.ids[1], "cota.digest", whole)

    def _rows(self, cell: PlannedCell) -> list[Row]:
        if cell.key not in self.rows:
            self.rows[cell.key] = [record_row(parse(text)) for text in self._texts(cell)]
        return self.rows[cell.key]

    def _texts(self, cell: PlannedCell, only: Collection[str] | None = None) -> list[str]:
        """The records of a cell (`only` these tasks) in its order; the ledger is opened when the first is wanted."""
        if self._found is None:
            self._found = ledger.read(self.folder)
            for frame in self._found.last_attempts():
                self._frames.setdefault(frame.head["cell"], []).append(frame)
        place = {task: i for i, task in enumerate(cell.tasks)}

        def order(frame: Frame) -> tuple[int, str]:
            task = frame.head["task_id"]
            return place.get(task, len(place)), task

        frames = sorted(self._frames.get(cell.key, []), key=order)
        return [self._found.text(frame) for frame in frames if only is None or frame.head["task_id"] in only]

    def result(self) -> SyncResult:
        """Views and links last: they are decoration."""
        metric = {"mean_reward": "reward_mean_scored", "success_rate": "success_rate_scored"}
        kinds = dict.fromkeys(metric[cell.metric] for cell in self.plan)
        charts = [(name, name.replace("_", " ")) for name in (*kinds, "seconds_per_episode", "fired_share")]
        lines = [(name, meaning.split(" over ")[0]) for name, meaning in CURVES.items()]
        saved = views.save_view(self.client, self.ids[0], bars={"Cells": charts}, lines=lines, columns=CELL_COLUMNS)
        short = [c for c in self.plan if not c.skipped and len(self.heads.get(c.key, [])) < len(c.tasks)]
        served = self.uri if self.uri.startswith("http") else None
        path = views.ui_link("", self.ids[1], view=saved)
        return SyncResult(
            uri=redacted(self.uri),
            experiments=self.names,
            experiment_ids=self.ids,
            written=self.written,
            unchanged=self.unchanged,
            incomplete=len(short),
            link=redacted(views.ui_link(served, self.ids[1], view=saved)) if served else None,
            path=path,
            view_saved=saved,
        )


def cell_digest(cell: PlannedCell, heads: Sequence[Mapping[str, Any]], position: int) -> str:
    """Changes when the plan of the cell, any of its episodes, or the layout of runs changes."""
    rows = sorted([dict(head) for head in heads], key=lambda head: str(head["task_id"]))
    return digest([LAYOUT, ROW_VERSION, position, cell.to_json(), rows])[:32]


def cell_content(
    cell: PlannedCell,
    rows: Sequence[Row],
    texts: Sequence[str],
    mark: str,
    folder: Path,
    position: int = 0,
    beside: Sequence[str] = (),
) -> RunContent:
    """All that the run of a cell holds; artefacts are written into `folder`. The cell's tasks give the order.

    `beside` are the methods of the study, among which the run has its colour.
    """
    status = layout.cell_status(cell, rows)
    complete = status != layout.INCOMPLETE
    started = [float(row["started_at"] or 0.0) for row in rows]
    ended = [float(row["started_at"] or 0.0) + float(row["wall_s"] or 0.0) for row in rows]
    (folder / layout.CELL_FILE).write_bytes(dump(cell.to_json()))
    if rows:
        write_parquet(folder / layout.EPISODES, rows, texts)
        write_csv(folder / layout.PREVIEW, rows)
    return RunContent(
        key_tag=layout.CELL_TAG,
        key=cell.key,
        name=cell.name,
        status=status,
        digest=mark,
        started_ms=int(1000 * min(started, default=0.0)),
        ended_ms=int(1000 * max(ended, default=0.0)),
        params=layout.cell_params(cell),
        tags=layout.cell_tags(cell, rows, position, beside),
        metrics=final_metrics(cell, rows),
        points=curves(cell, rows) if complete else {},
        step=len(rows),
        note=layout.cell_note(cell, rows, status),
        complete=complete,
        folder=folder,
    )


@contextmanager
def _alone(uri: str) -> Iterator[None]:
    """One writer at a time on an SQLite store: its first touch by two processes at once crashes MLflow."""
    path = sqlite_path(uri)
    if path is None or not path.parent.is_dir():
        yield
        return
    try:
        lock = (path.parent / ".tracking.lock").open("w")
    except OSError:
        # A folder that may not be written: the probe of the store says so in full.
        yield
        return
    with lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
