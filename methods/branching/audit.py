"""Audit: was the advice truly better, did the replan help, and did the gate fire where it should have?

A finished study's ledger says what was compared and what was advised; this branches a sample of it and reports what
the interventions did to the value of the step.  The audit itself is durable and resumable like a collection: one record
an audited episode in `audit.jsonl.gz`, the report made from the records.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness import registry
from harness.errors import EpisodeError, UsageError
from harness.grid import Cell, Plan, limits
from harness.interrupt import shield_worker
from harness.ledger import read_episodes
from harness.loop import Limits
from harness.records import Episode
from harness.seeds import digest
from harness.study import Study
from methods.branching.audit_stats import Item, markdown, statistics
from methods.branching.audit_unit import AuditBench, Ref, audit_unit, refs, sample
from methods.branching.pairing import MARGINS
from methods.branching.parallel import forget, kept, run_all
from methods.branching.recordfile import RecordFile
from methods.branching.spec import Throughput

Progress = Callable[[int, int, dict[str, Any]], None]


@dataclass(frozen=True)
class AuditSpec:
    """How much is audited.

    Attributes:
        fired: reviews with an intervention, a method, actor and environment.
        quiet: reviews without one; with these the gate's recall can be told.
        continuations: M, rollouts an action.
        margin: by environment label; the default follows the environment's metric (`pairing.MARGINS`).
        seed: chooses the sample.
    """

    fired: int = 40
    quiet: int = 40
    continuations: int = 4
    margin: Mapping[str, float] | None = None
    seed: int = 0


@dataclass(frozen=True)
class AuditReport:
    """Statistics by (method, actor, environment), and what could not be audited."""

    found: dict[str, dict[str, Any]]
    dropped: dict[str, int]
    failed: int
    text: str


@dataclass(frozen=True)
class _Job:
    episode: Episode
    wanted: tuple[Ref, ...]
    cell: Cell
    limits: Limits
    continuations: int


def audit(
    study: Study,
    plan: Plan,
    folder: Path,
    out: Path,
    spec: AuditSpec | None = None,
    throughput: Throughput | None = None,
    progress: Progress | None = None,
) -> AuditReport:
    """Audit the interventions of a study.

    Args:
        study: the study, whose time limits hold here too.
        plan: its cells (`plan_cells(study)`); actors and environments are built from them.
        folder: results folder with the ledger.
        out: gets `audit.jsonl.gz`, `audit.json` and `audit.md`.
        spec: how much.
        throughput: workers and backend.
        progress: called with (done, to do, record) after each audited episode.

    Raises:
        UsageError: no review with candidates is in the ledger, or `out` holds another audit.
    """
    spec, throughput = spec or AuditSpec(), throughput or Throughput()
    cells = {cell.key: cell for cell in plan.cells}
    chosen, weights, simulated = _choose(folder, cells, spec)
    identity = digest([spec.continuations, sorted(cells)])[:16]
    with RecordFile(out / "audit.jsonl.gz") as file:
        todo = [(job,) for job in _jobs(study, folder, cells, chosen, spec) if not _finished(file, job, identity)]
        for done, record in enumerate(run_all(work, todo, throughput), start=1):
            file.append(record | {"audit": identity})
            if progress is not None:
                progress(done, len(todo), record)
        report = _report(file, cells, chosen, weights, spec, simulated)
    for name, text in (("audit.json", json.dumps(report.found, indent=1, allow_nan=False)), ("audit.md", report.text)):
        draft = out / f".{name}.{os.getpid()}"
        draft.write_text(text + "\n", encoding="utf-8")
        os.replace(draft, out / name)
    return report


Weights = dict[str, dict[bool, float]]
Simulated = dict[str, set[str]]


def label_of(cell: Cell) -> str:
    """What a row of the report is about; seeds are pooled."""
    return f"{cell.method} / {cell.actor} / {cell.environment}"


def _choose(
    folder: Path, cells: Mapping[str, Cell], spec: AuditSpec
) -> tuple[dict[str, list[Ref]], Weights, Simulated]:
    """Sampled reviews, their weights, and what was simulated, by label."""
    every: dict[str, list[Ref]] = {}
    simulated: Simulated = {}
    for episode in read_episodes(folder):
        if episode.cell in cells:
            label = label_of(cells[episode.cell])
            every.setdefault(label, []).extend(refs(episode))
            simulated.setdefault(label, set()).update(episode.simulated)
    every = {label: found for label, found in every.items() if found}
    if not every:
        raise UsageError(
            f"{folder} has no review with candidates to audit. Run the study first; Origin, Self-Reflection and "
            "Asym-AC compare no candidates and cannot be audited."
        )
    drawn = {label: sample(found, spec.fired, spec.quiet, spec.seed) for label, found in sorted(every.items())}
    weights = {label: weight for label, (_, weight) in drawn.items()}
    return {label: chosen for label, (chosen, _) in drawn.items()}, weights, simulated


def _jobs(
    study: Study, folder: Path, cells: Mapping[str, Cell], chosen: Mapping[str, Sequence[Ref]], spec: AuditSpec
) -> Iterator[_Job]:
    wanted: dict[tuple[str, str], list[Ref]] = {}
    for ref in (ref for some in chosen.values() for ref in some):
        wanted.setdefault((ref.cell, ref.task_id), []).append(ref)
    for episode in read_episodes(folder):
        mine = wanted.get((episode.cell, episode.task_id))
        if mine:
            cell = cells[episode.cell]
            ordered = tuple(sorted(mine, key=lambda ref: (ref.step, ref.review)))
            yield _Job(episode, ordered, cell, limits(study, cell), spec.continuations)


def _finished(file: RecordFile, job: _Job, identity: str) -> bool:
    """Whether this very sample of the episode is in the file already."""
    key = _key(job)
    if key not in file or file.head(key)["status"] == "failed":
        return False
    record = file.read(key)
    return bool(record["audit"] == identity and record["wanted"] == _names(job.wanted))


def _key(job: _Job) -> str:
    return f"{job.episode.cell}/{job.episode.task_id}"


def _names(wanted: Sequence[Ref]) -> list[list[int]]:
    return [[ref.step, ref.review] for ref in wanted]


def work(job: _Job) -> dict[str, Any]:
    """One episode's audit in this worker; whatever happens, a record."""
    shield_worker()
    spec = job.cell.spec
    try:
        name = (digest([spec["environment"], spec["actor"]]), job.limits, job.continuations)
        bench = kept(name, lambda: _bench(job))
        record = audit_unit(bench, job.episode, job.wanted)
        if bench.broken:
            forget(close=False)
    except Exception as error:  # noqa: BLE001  becomes the unit's record
        forget(close=False)
        boundary = error.boundary if isinstance(error, EpisodeError) else "harness"
        record = {"status": "failed", "reason": f"{type(error).__name__}: {error}", "boundary": boundary, "items": []}
    return record | {"key": _key(job), "wanted": _names(job.wanted)}


def _bench(job: _Job) -> AuditBench:
    place, who = job.cell.spec["environment"], job.cell.spec["actor"]
    environment = registry.create("environments", place["plugin"], place["params"])
    actor = registry.create("actors", who["plugin"], who["params"])
    return AuditBench(environment, actor, job.limits, job.continuations)


def _report(
    file: RecordFile,
    cells: Mapping[str, Cell],
    chosen: Mapping[str, Sequence[Ref]],
    weights: Weights,
    spec: AuditSpec,
    simulated: Simulated,
) -> AuditReport:
    found: dict[str, dict[str, Any]] = {}
    dropped: dict[str, int] = {}
    failed = 0
    for label, some in chosen.items():
        items = []
        for key in sorted({f"{ref.cell}/{ref.task_id}" for ref in some}):
            record = file.read(key)
            failed += record["status"] == "failed"
            for reason, number in record.get("dropped", {}).items():
                dropped[reason] = dropped.get(reason, 0) + number
            items += [_item(one, cells[one["cell"]], weights[label]) for one in record["items"]]
        cell = cells[some[0].cell]
        found[label] = statistics(items, _margin(cell, spec), spec.seed) | {"simulated": sorted(simulated[label])}
    parts = sorted({part for label in found for part in simulated[label]})
    said = f"SIMULATED: {', '.join(parts)}. These numbers are not comparable with published ones."
    notes = [said] if parts else []
    notes += [f"Left out: {number} reviews, {reason}." for reason, number in sorted(dropped.items())]
    notes += [f"{failed} episodes could not be audited; run the same command again."] if failed else []
    return AuditReport(found, dropped, failed, "\n".join([markdown(found), *notes]))


def _margin(cell: Cell, spec: AuditSpec) -> float:
    metric = registry.load("environments", cell.spec["environment"]["plugin"]).metric
    return (spec.margin or {}).get(cell.environment, MARGINS.get(metric, 0.0))


def _item(one: Mapping[str, Any], cell: Cell, weights: Mapping[bool, float]) -> Item:
    return Item(
        task=one["task_id"],
        fired=one["fired"],
        r=int(cell.identity["method"]["params"].get("r", 1)),
        proposal=tuple(one["proposal"]),
        candidates=tuple(tuple(returns) for returns in one["candidates"]),
        advice=tuple(one["advice"]),
        after=tuple(one["after"]),
        response=one["response"],
        weight=weights[one["fired"]],
    )
