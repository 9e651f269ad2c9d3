"""Export: branch records as Parquet tables with a data card, made from the record file as often as wanted.

Rows come in the order of the unit keys and hold no times, so the same branches give the same files byte for byte
whatever the order in which workers finished.  One record is in memory at a time.  `datasets.load_dataset(folder, name)`
and `load_dataset("parquet", data_files=...)` both read them.

* `branches`: one row for each action at each verified point, with its returns and their mean.
* `points`: one row for each verified point, with the state as JSON (for retrieval and for restoring).
* `steps`: one row for each executed action of the base trajectories (for critics).
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from statistics import fmean
from typing import Any

from harness.records import Action, DecisionState, Observation, Turn
from harness.seeds import digest
from methods.branching.recordfile import RecordFile
from methods.branching.tables import Writer, write_card

TEXT, INT, REAL, FLAG = "string", "int32", "float64", "bool"
TABLES: Mapping[str, Mapping[str, str]] = {
    "branches": {
        "environment": TEXT,
        "task_id": TEXT,
        "fingerprint": TEXT,
        "trajectory": INT,
        "group": TEXT,
        "step": INT,
        "view": TEXT,
        "action": TEXT,
        "canonical": TEXT,
        "source": TEXT,
        "base": FLAG,
        "q": REAL,
        "returns": "list<float64>",
        "lengths": "list<int32>",
        "statuses": "list<string>",
    },
    "points": {"environment": TEXT, "task_id": TEXT, "group": TEXT, "step": INT, "view": TEXT, "state": TEXT},
    "steps": {
        "environment": TEXT,
        "task_id": TEXT,
        "fingerprint": TEXT,
        "trajectory": INT,
        "step": INT,
        "view": TEXT,
        "action": TEXT,
        "canonical": TEXT,
        "outcome": REAL,
        "remaining": INT,
        "status": TEXT,
    },
}


def group_name(about: Mapping[str, Any], key: str, step: int) -> str:
    """Name of one prefix group; the collection is part of it, so that folders of several actors can be joined."""
    return f"{about['environment']}/{about['hash'][:8]}/{key}@{step}"


def export(out: Path, file: RecordFile, about: Mapping[str, Any]) -> dict[str, Any]:
    """Write the tables and the data card of a branch folder; returns the card's numbers."""
    counts: Counter[str] = Counter()
    dropped: Counter[str] = Counter()
    rejected: Counter[str] = Counter()
    seconds: dict[str, float] = {}
    panel: dict[str, str] = {}
    writers = {name: Writer(out / f"{name}.parquet", columns) for name, columns in TABLES.items()}
    try:
        for record in file.records():
            counts[f"units {record['status']}"] += 1
            for phase, value in record.get("seconds", {}).items():
                seconds[phase] = seconds.get(phase, 0.0) + value
            dropped.update(record.get("dropped", {}))
            rejected.update(record.get("rejected", {}))
            if record["status"] != "done":
                continue
            panel[record["task_id"]] = record["fingerprint"]
            counts["points chosen"] += record["chosen"]
            for name, row in _rows(about, record):
                writers[name].add(row)
                counts[name] += 1
        for writer in writers.values():
            writer.close()
    finally:
        for writer in writers.values():
            writer.discard()
    card = {
        "kind": "branches",
        "hash": about["hash"],
        "identity": about["identity"],
        "environment": about["environment"],
        "simulated": about["simulated"],
        "panel": digest(sorted(panel.items())),
        "tasks": len(panel),
        "counts": dict(sorted(counts.items())),
        "verified_share": counts["points"] / counts["points chosen"] if counts["points chosen"] else None,
        "dropped": {reason: number for reason, number in sorted(dropped.items()) if number},
        "rejected_candidates": dict(sorted(rejected.items())),
        "seconds": {phase: round(value, 3) for phase, value in sorted(seconds.items())},
        "versions": _versions(),
    }
    write_card(out, f"Branches of {about['environment']}", card, {name: f"{name}.parquet" for name in TABLES})
    return card


def _versions() -> dict[str, str]:
    try:
        return {"cota-bench": version("cota-bench")}
    except PackageNotFoundError:
        return {}


def _rows(about: Mapping[str, Any], record: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    common = {
        "environment": about["environment"],
        "task_id": record["task_id"],
        "fingerprint": record["fingerprint"],
        "trajectory": record["trajectory"],
    }
    for step, (view, turn) in enumerate(zip(record["views"], record["turns"], strict=False)):
        base = record["base"]
        row = {"step": step, "view": view, "action": turn[0], "canonical": turn[1], "outcome": base["reward"]}
        yield "steps", common | row | {"remaining": base["steps"] - 1 - step, "status": base["status"]}
    for point in record["points"]:
        step = point["step"]
        here = {"group": group_name(about, record["key"], step), "step": step, "view": record["views"][step]}
        state = json.dumps(state_json(record, step), ensure_ascii=False)
        yield "points", common | here | {"state": state}
        for branch in point["branches"]:
            if branch["returns"]:
                yield "branches", common | here | branch | {"q": fmean(branch["returns"])}


def state_json(record: Mapping[str, Any], step: int) -> dict[str, Any]:
    """The decision state at `step` of a unit's base trajectory, as JSON."""
    return {"task": record["task"], "opening": record["opening"], "turns": record["turns"][:step]}


def state_of(environment: str, task_id: str, state: Mapping[str, Any]) -> DecisionState:
    """The inverse of `state_json`."""
    turns = tuple(Turn(Action(text, canonical), _observation(seen)) for text, canonical, seen in state["turns"])
    return DecisionState(environment, task_id, state["task"], _observation(state["opening"]), turns)


def _observation(parts: Any) -> Observation:
    text, actions, schemas = parts
    return Observation(text, tuple(actions), tuple(schemas))
