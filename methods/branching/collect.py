"""Collect: branch all planned units in parallel, durably, and resume with the same call.

Workers return one record at a time and hold one environment each; the parent alone writes, so memory is bounded by the
workers and not by the collection.  What is to do is planned minus finished; a failed unit is tried again by the next
call.  A folder holds `units.jsonl.gz` (the truth), `collect.json` (identity, actor, panel) and the exported tables.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.cache import read_json
from harness.errors import UsageError
from harness.interrupt import shield_worker
from harness.loop import Limits
from harness.protocols import Environment
from methods.branching.export import export
from methods.branching.parallel import forget, kept, run_all
from methods.branching.recordfile import RecordFile
from methods.branching.spec import CollectSpec, Throughput, differing, identity_hash
from methods.branching.splits import Panel, refuse_panel_tasks
from methods.branching.unit import Bench, collect_unit, unit_key

UNITS, IDENTITY = "units.jsonl.gz", "collect.json"
DEFAULT_SPLITS = ("validation", "test")
Progress = Callable[[int, int, dict[str, Any]], None]


@dataclass(frozen=True)
class Collected:
    """What is in a branch folder: planned = done + failed + skipped, and the data card's numbers."""

    folder: Path
    planned: int
    statuses: dict[str, int]
    reasons: dict[str, int]
    card: dict[str, Any] = field(default_factory=dict)

    @property
    def complete(self) -> bool:
        """Nothing failed."""
        return not self.statuses.get("failed")


def collect(
    spec: CollectSpec, out: Path, throughput: Throughput | None = None, progress: Progress | None = None
) -> Collected:
    """Collect branches into `out`, or go on where an earlier call stopped.

    Args:
        spec: what to collect.
        out: branch folder, one an environment and actor.
        throughput: workers, backend and time limits.
        progress: called in the parent with (done, to do, record) after each unit is on disk.

    Raises:
        UsageError: another identity is in the folder (the differing keys are listed), evaluation tasks are asked for
            (`LeakError`), another process is writing, or a plugin refuses its parameters.
    """
    throughput = throughput or Throughput()
    environment = spec.make_environment()
    try:
        units = spec.units(environment)
        panel = evaluation_panel(environment, spec.evaluation_splits)
        refuse_panel_tasks(environment.name, {task_id for task_id, _ in units}, panel)
        about = _about(spec, environment, panel)
        _keep_identity(out, about)
    finally:
        environment.close()
    with RecordFile(out / UNITS) as file:
        todo = [(spec, throughput, *unit, attempt) for unit in units if (attempt := _attempt(file, unit_key(*unit)))]
        for done, record in enumerate(run_all(work, todo, throughput), start=1):
            file.append(record)
            if progress is not None:
                progress(done, len(todo), record)
        return _finish(out, file, units, about)


def evaluation_panel(environment: Environment, splits: Sequence[str] | None) -> Panel:
    """Ids and content hashes of the tasks of `splits`; None: of validation and test, where the data holds them.

    Raises:
        UsageError: a named split does not exist, or by default neither does.
    """
    ids: set[str] = set()
    missing = []
    for split in splits or DEFAULT_SPLITS:
        try:
            ids.update(environment.tasks(split))
        except UsageError as error:
            missing.append(error)
    if missing and (splits or not ids):
        raise missing[0]
    return Panel(frozenset(ids), frozenset(environment.fingerprint(task_id) for task_id in ids))


def read_about(folder: Path) -> dict[str, Any]:
    """`collect.json` of a branch folder. Raises `UsageError` when the folder is none."""
    path = folder / IDENTITY
    if not path.exists():
        raise UsageError(f"{folder} holds no branches ({IDENTITY} is missing). Make them with `cota-bench collect`.")
    return read_json(path)


def _about(spec: CollectSpec, environment: Environment, panel: Panel) -> dict[str, Any]:
    actor = spec.make_actor()
    identity = spec.identity(environment)
    return {
        "identity": identity,
        "hash": identity_hash(identity),
        "environment": environment.name,
        "metric": environment.metric,
        "simulated": [*(["actor"] if actor.simulated else []), *environment.simulated],
        "panel": {"ids": sorted(panel.ids), "fingerprints": sorted(panel.fingerprints)},
    }


def _keep_identity(out: Path, about: dict[str, Any]) -> None:
    path = out / IDENTITY
    if path.exists():
        differences = differing(read_about(out)["identity"], about["identity"])
        if differences:
            raise UsageError(
                f"{out} holds branches of another collection: {'; '.join(differences)}. "
                "Choose another folder, or put these settings back."
            )
    out.mkdir(parents=True, exist_ok=True)
    write_json(path, about)


def write_json(path: Path, value: Any) -> None:
    """Write JSON atomically."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    draft.write_text(json.dumps(value, indent=1, sort_keys=True, allow_nan=False) + "\n", encoding="utf-8")
    os.replace(draft, path)


def _attempt(file: RecordFile, key: str) -> int:
    """Number of the next attempt at a unit; 0: it is finished."""
    if key not in file:
        return 1
    record = file.head(key)
    return int(record["attempt"]) + 1 if record["status"] == "failed" else 0


def work(spec: CollectSpec, throughput: Throughput, task_id: str, trajectory: int, attempt: int) -> dict[str, Any]:
    """One unit in this worker; whatever happens, a record."""
    shield_worker()  # Ctrl-C is the parent's business
    try:
        bench = kept((spec, throughput), lambda: _bench(spec, throughput))
        record = collect_unit(bench, task_id, trajectory, attempt)
        if bench.broken:
            forget(close=False)
    except Exception as error:  # noqa: BLE001  becomes the unit's record
        forget(close=False)
        record = {
            "key": unit_key(task_id, trajectory),
            "task_id": task_id,
            "trajectory": trajectory,
            "attempt": attempt,
            "status": "failed",
            "reason": f"{type(error).__name__}: {error}",
            "boundary": "harness",
        }
    return record


def _bench(spec: CollectSpec, throughput: Throughput) -> Bench:
    environment = spec.make_environment()
    limits = Limits(
        spec.budget(environment),
        replans=0,
        call_s=throughput.call_s,
        step_s=throughput.step_s,
        episode_s=throughput.episode_s,
    )
    return Bench(spec, environment, spec.make_actor(), spec.make_source(), limits)


def _finish(out: Path, file: RecordFile, units: Sequence[tuple[str, int]], about: dict[str, Any]) -> Collected:
    statuses: Counter[str] = Counter()
    reasons: Counter[str] = Counter()
    for unit in units:
        record = file.head(unit_key(*unit))
        statuses[record["status"]] += 1
        if record["status"] != "done":
            reasons[f"{record['boundary'] or record['status']}: {record['reason']}"] += 1
    if sum(statuses.values()) != len(units):
        raise RuntimeError(f"planned {len(units)} units, found {dict(statuses)}")
    card = export(out, file, about)
    return Collected(out, len(units), dict(statuses), dict(reasons), card)
