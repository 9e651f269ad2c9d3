"""`cota-bench run` and `cota-bench plan`."""

from __future__ import annotations

import json
import logging
import os
import sys
from collections.abc import Callable, Mapping
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, get_args

from harness import results as results_
from harness.cluster import addressed
from harness.errors import UsageError, nearest
from harness.estimate import render
from harness.grid import Plan, explain
from harness.guard import left_behind
from harness.interrupt import last_word, stoppable
from harness.ledger import FILE
from harness.measures import FOLDER as MEASURES
from harness.records import Episode
from harness.run import run_study, status
from harness.scheduler import resolve_workers
from harness.seeds import digest
from harness.study import MAX_WORKERS, LocalBackend, Study, load_study
from harness.tracking.client import resolve_uri

MADE = ".made.json"  # from which plan and ledger the tables and the store were last made


def hook(group: str, name: str) -> Callable[..., Any] | None:
    """What another package offers under an entry point, or None; the harness imports none of them by name."""
    for point in entry_points(group=f"cota_bench.{group}", name=name):
        found: Callable[..., Any] = point.load()
        return found
    return None


def _say(text: str) -> None:
    print(text, file=sys.stderr)


def adjusted(
    study: Study,
    workers: int | None = None,
    backend: str | None = None,
    address: str | None = None,
    processes: int | None = None,
) -> Study:
    """The study with throughput settings from the command line. Raises `UsageError`."""
    change: dict[str, Any] = {}
    for name, number in (("workers", workers), ("processes", processes)):
        if number is not None:
            if not 1 <= number <= MAX_WORKERS:
                raise UsageError(f"--{name} must be at least 1 and at most {MAX_WORKERS}, not {number}.")
            change[name] = number
    if backend is not None:
        valid = (*get_args(LocalBackend), "dask")
        if backend not in valid:
            raise UsageError(f"Unknown backend {backend!r}.{nearest(backend, valid)}")
        change["backend"] = backend
    if address is not None:
        change["address"] = address
        if change.setdefault("backend", "dask") != "dask":
            raise UsageError(f"--address is for --backend dask, not for {backend}.")
    used = study.throughput.model_copy(update=change)
    if (processes or 1) > 1 and used.backend != "threading":
        raise UsageError(
            f"--processes spreads threads over processes: it goes with --backend threading, not {used.backend}."
        )
    if used.backend == "dask":
        addressed(used.address)
    return study.model_copy(update={"throughput": used})


def prepared(study: Study, dry: bool = False, tracking_uri: str | None = None) -> Study:
    """The study with what it has to train first in place (or, dry, said what is missing)."""
    prepare = hook("prepare", "judges")
    if prepare is None:
        return study
    with stoppable(_say, "preparation"):
        found: Study = prepare(study, dry=dry, say=_say, tracking_uri=tracking_uri)
    return found


def run_command(
    name: str,
    results: Path,
    tracking_uri: str | None,
    workers: int | None,
    backend: str | None,
    tracking: bool,
    report: bool,
    address: str | None = None,
    processes: int | None = None,
) -> int:
    """Run, track, report; returns the exit status."""
    asked = adjusted(load_study(name), workers, backend, address, processes)
    study = prepared(asked, tracking_uri=resolve_uri(tracking_uri, results) if tracking else None)
    folder = results / study.study
    tracker = _Tracker(folder, tracking_uri)
    with last_word():
        summary = run_study(study, results, observers=[tracker] if tracking else [])
        print(summary.text(), flush=True)
    code = summary.exit_status
    if summary.stopped_by is not None:
        _leave(code)
        return code
    code = max(code, _measure(asked, study, folder))
    now = _source(folder)
    made = _made(folder)
    fresh = made.get("report") == now and (folder / "report" / "report.md").exists()
    store = digest([now, tracking_uri, study.throughput.traces])
    # The store first: the page links to its runs.
    stored = 0
    if tracking and made.get("store") != store:
        stored = _sync(folder, tracking_uri, study.study, store)
    if report and not fresh:
        code = max(code, _report(folder, now, _links(folder, tracking_uri) if tracking and stored == 0 else {}))
    return max(code, stored)


def _leave(code: int) -> None:
    """End here when a stop left calls behind: native code that comes back to an interpreter in ruins aborts it."""
    if left_behind():
        logging.shutdown()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _measure(asked: Study, ready: Study, folder: Path) -> int:
    """What is measured beside the episodes; returns the exit status."""
    measure = hook("prepare", "measures")
    if measure is None:
        return 0
    try:
        with stoppable(_say, "measuring"):
            measure(asked, ready, folder, f"cota-bench run {asked.study}", _say)
    except UsageError as error:
        _say(f"error: {error}")
        return 1
    return 0


def _source(folder: Path) -> str:
    """Digest of what tables and store are made from: planned cells with their labels, the ledger, the measures."""
    stored = results_.stored_study(folder) or {}
    files = [folder / FILE, *sorted((folder / MEASURES).glob("*.json"))]
    state = [[path.name, path.stat().st_size, path.stat().st_mtime_ns] for path in files if path.exists()]
    return digest([stored.get("cells"), stored.get("skipped"), state])


def _made(folder: Path) -> dict[str, Any]:
    """What the last invocation left; a file that is not there or not ours counts as nothing made."""
    try:
        found = json.loads((folder / MADE).read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _mark(folder: Path, name: str, source: str) -> None:
    """Remember that `name` was made from `source`. The file is put in place whole."""
    part = folder / f"{MADE}.part"
    part.write_text(json.dumps(_made(folder) | {name: source}), encoding="utf-8")
    part.replace(folder / MADE)


class _Tracker:
    """Opens the tracking store at the first stored episode, so that a run with nothing to do never does."""

    def __init__(self, folder: Path, tracking_uri: str | None) -> None:
        self._given = (folder, tracking_uri)
        self._live: Callable[[Episode], None] | None = None

    def __call__(self, episode: Episode) -> None:
        if self._live is None:
            from harness.tracking.live import LiveTracker

            tracker = LiveTracker(*self._given, say=_say)
            tracker.check()
            self._live = tracker
        self._live(episode)


def _links(folder: Path, tracking_uri: str | None) -> Mapping[str, str]:
    from harness.tracking.links import cell_links

    return cell_links(folder, tracking_uri)


def _report(folder: Path, source: str, links: Mapping[str, str]) -> int:
    write = hook("reports", "write")
    if write is None:
        _say("No reports package is installed, so no table is written.")
        return 0
    try:
        paths = write(folder, folder / "report", links=links)
    except (UsageError, ModuleNotFoundError) as error:
        _say(f"error: the tables could not be written: {error}")
        return 1
    _mark(folder, "report", source)
    table = folder / "report" / "table1.md"
    if table.exists():
        print(f"\n{table.read_text(encoding='utf-8')}")
    print(f"tables: {paths[0].parent}\nread: {paths[-1]}")
    return 0


def _sync(folder: Path, tracking_uri: str | None, study: str, source: str) -> int:
    from harness.tracking.sync import sync

    try:
        result = sync(folder, tracking_uri)
    except (UsageError, ModuleNotFoundError) as error:
        _say(f"error: {error}\nNothing is lost: the ledger is complete. Later: cota-bench sync {study}")
        return 1
    _mark(folder, "store", source)
    print(f"MLflow: {result.written} run(s) written, {result.unchanged} unchanged. Look: cota-bench ui {study}")
    return 0


def plan_command(name: str, results: Path, wanted: str | None) -> int:
    """Print where a study stands and what the rest will take."""
    study = prepared(load_study(name), dry=True)
    plan, view = status(study, results, verify=True)
    if wanted is not None:
        print(explain(_cell(plan, wanted)))
        return 0
    print(f"{study.study}: {study.title}" if study.title else study.study)
    print(render(view, resolve_workers(study.throughput, view.total("left"))))
    for label, panel in plan.panels.items():
        print(f"panel {label}: {len(panel.ids)} tasks, {panel.digest}")
    return 0


def _cell(plan: Plan, prefix: str) -> Any:
    cells = [*plan.cells, *(cell for cell, _ in plan.skipped)]
    found = [cell for cell in cells if cell.key.startswith(prefix)]
    if len(found) != 1:
        listed = "\n".join(f"  {cell.key}  {cell}" for cell in found or cells)
        raise UsageError(f"{len(found)} cells begin with {prefix!r}. Cells:\n{listed}")
    return found[0]
