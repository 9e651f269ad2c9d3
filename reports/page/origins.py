"""Origins: where the numbers come from, as the page tells it: code, packages, machine, study file, task panels, times.

What was not recorded is called unknown.  A study file may hold what no page should: values under names that sound like
a secret are left out, and addresses lose user and password.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from harness import provenance
from harness.results import kept_panels, stored_study
from harness.tracking.client import redacted
from harness.tracking.plan import COUNTS, SECRET
from reports.frames import Tracked, folder_of

UNKNOWN = "unknown"
Pairs = list[tuple[str, str]]


def origins(source: Tracked) -> dict[str, Any]:
    """`facts` (name, value), `runs` (entries of provenance), `panels` (label, tasks, digest), `study` (text)."""
    folder = folder_of(source)
    starts = [float(row["started_at"] or 0.0) for row in source.rows if row["started_at"]]
    ends = [float(row["started_at"] or 0.0) + float(row["wall_s"] or 0.0) for row in source.rows if row["started_at"]]
    facts: Pairs = [
        ("read from", redacted(source.origin)),
        ("first episode began", moment(min(starts)) if starts else UNKNOWN),
        ("last episode ended", moment(max(ends)) if ends else UNKNOWN),
    ]
    entries = [_entry(item) for item in provenance.read(folder)] if folder else []
    stored = stored_study(folder) if folder else None
    study = json.dumps(harmless(stored["resolved"]), indent=2, ensure_ascii=False) if stored else ""
    return {"facts": facts, "runs": entries, "panels": _panels(source), "study": study}


def moment(seconds: float) -> str:
    """A time for people, in UTC."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def harmless(value: Any) -> Any:
    """A study without what may be secret."""
    if isinstance(value, Mapping):
        return {
            str(name): "(left out)" if SECRET.search(str(name)) and name not in COUNTS and inner else harmless(inner)
            for name, inner in value.items()
        }
    if isinstance(value, (list, tuple)):
        return [harmless(inner) for inner in value]
    return redacted(value) if isinstance(value, str) else value


def _entry(item: Mapping[str, Any]) -> Pairs:
    commit = str(item.get("commit") or UNKNOWN)
    if item.get("changed"):
        commit += " with uncommitted changes"
    gpus = item.get("gpus")
    packages: Mapping[str, str] = item.get("packages") or {}
    memory = item.get("memory_gib")
    return [
        ("commit", commit),
        ("from", f"{moment(float(item['first']))} to {moment(float(item['last']))}" if item.get("first") else UNKNOWN),
        ("python", f"{item.get('python')} on {item.get('system')} ({item.get('machine')})"),
        ("processor", f"{item.get('processor') or UNKNOWN}, {item.get('cores') or UNKNOWN} cores"),
        ("memory", f"{memory} GiB" if memory else UNKNOWN),
        ("GPU", UNKNOWN if gpus is None else "; ".join(gpus) or "none"),
        ("packages", ", ".join(f"{name} {version}" for name, version in packages.items()) or UNKNOWN),
    ]


def _panels(source: Tracked) -> Sequence[tuple[str, int, str]]:
    folder = folder_of(source)
    if folder is not None:
        return [(label, len(panel.ids), panel.digest) for label, panel in kept_panels(folder).items()]
    found = {}
    for cell in source.cells:
        found[cell.environment] = (len(cell.tasks), str(cell.params.get("environment.panel", UNKNOWN)))
    return [(label, count, digest) for label, (count, digest) in found.items()]
