"""Results folder: `results/<study>/` with the ledger, `study.json`, `panels.json` and `report/`.

`study.json` holds the resolved study and, for each cell, the identity behind its key; that is how a later run can say
what exactly changed.  Both files are written new and then put in place, by the one process that holds the ledger.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from harness import panels as panels_
from harness import registry
from harness.codec import CodecError, newer, parse
from harness.errors import UsageError
from harness.grid import Cell, Plan, difference
from harness.ledger import Key, LedgerError
from harness.panels import Panel
from harness.records import SCHEMA_VERSION
from harness.study import Study

ROOT = Path("results")
SHOWN = 8
Heads = Mapping[Key, Mapping[str, Any]]
CELL = (
    *((name, str) for name in ("key", "method", "actor", "environment", "split")),
    ("seed", int),
    ("identity", dict),
)


def folder_of(study: Study, root: Path = ROOT) -> Path:
    """Where a study's results are."""
    return root / study.study


def kept_panels(folder: Path) -> dict[str, Panel]:
    """Panels that an earlier run froze. Raises `UsageError` for a damaged file."""
    path = folder / "panels.json"
    panels = (_read(path) or {"panels": {}}).get("panels")
    if not isinstance(panels, dict):
        raise _damaged(path, "`panels` is no mapping")
    return {label: panels_.from_json(label, data) for label, data in panels.items()}


def stored_study(folder: Path) -> dict[str, Any] | None:
    """`study.json`, or None. Raises `UsageError` for a damaged file or another schema."""
    path = folder / "study.json"
    stored = _read(path)
    if stored is not None:
        for name, kind in (("study", str), ("resolved", dict), ("cells", list)):
            if not isinstance(stored.get(name), kind):
                raise _damaged(path, f"`{name}` is not there, or is no {kind.__name__}")
        for cell in (*stored["cells"], *stored.get("skipped", ())):
            wrong = _wrong_in(cell)
            if wrong:
                raise _damaged(path, wrong)
    return stored


def _wrong_in(cell: Any) -> str:
    """What a cell lacks that every reader asks for; empty when it is whole."""
    if not isinstance(cell, dict):
        return "a cell is no mapping"
    return next(
        (f"`{name}` of a cell is no {kind.__name__}" for name, kind in CELL if type(cell.get(name)) is not kind), ""
    )


def write(folder: Path, study: Study, plan: Plan, heads: Heads) -> None:
    """Store study and panels; cells of earlier versions of the study stay listed while they have rows."""
    known = {cell.key for cell in plan.cells}
    ran = {key for key, _ in heads}
    earlier = (stored_study(folder) or {}).get("cells", [])
    older = [cell | {"current": False} for cell in earlier if cell["key"] not in known and cell["key"] in ran]
    data = {
        "schema": SCHEMA_VERSION,
        "study": study.study,
        "resolved": study.model_dump(mode="json"),
        "cells": [_cell(cell) | {"current": True} for cell in plan.cells] + older,
        "skipped": [_cell(cell) | {"reason": reason} for cell, reason in plan.skipped],
    }
    store(folder, data, plan.panels)


def store(folder: Path, data: Mapping[str, Any], panels: Mapping[str, Panel]) -> None:
    """Put `study.json` (as `stored_study` gives it) and the panels in place."""
    _write(folder / "study.json", data)
    frozen = {label: panel.to_json() for label, panel in panels.items()}
    _write(folder / "panels.json", {"schema": SCHEMA_VERSION, "panels": frozen})


def refuse_changes(folder: Path, study: Study, plan: Plan, heads: Heads) -> None:
    """Raises `UsageError` when rows exist under labels of this study with another identity than it has now."""
    before = stored_study(folder) or {}
    stored = {cell["key"]: cell for cell in before.get("cells", [])}
    now = {cell.labels: cell for cell in plan.cells}
    current = {cell.key for cell in plan.cells}
    changed: dict[str, tuple[Cell, int]] = {}
    for (key, _), head in heads.items():
        cell = now.get((head["method"], head["actor"], head["environment"], head["seed"]))
        if cell is not None and key not in current:
            changed[key] = (cell, changed.get(key, (cell, 0))[1] + 1)
    if changed:
        raise UsageError(_refusal(folder, changed, stored, _selections(before, study)))


def _selections(before: Mapping[str, Any], study: Study) -> dict[str, str]:
    """What was changed in how each environment chooses its tasks, in the words of the study file."""
    found = {}
    for label, part in study.environments.items():
        old = before.get("resolved", {}).get("environments", {}).get(label)
        if old is not None:
            now = part.model_dump(mode="json")
            said = [difference({name: old.get(name)}, {name: now[name]}) for name in ("tasks", "first", "split")]
            found[label] = ", ".join(line for lines in said for line in lines)
    return found


def _refusal(
    folder: Path, changed: Mapping[str, tuple[Cell, int]], stored: Mapping[str, Any], selections: Mapping[str, str]
) -> str:
    rows = sum(count for _, count in changed.values())
    causes: dict[str, list[Cell]] = {}
    for key, (cell, _) in changed.items():
        old = stored.get(key, {}).get("identity")
        said = difference(old, cell.identity) if old is not None else [f"cell {key} -> {cell.key} (old parts not kept)"]
        for line in said:
            if line.startswith("environment.panel:") and cell.environment in selections:
                why = selections[cell.environment] or "the study selects as before: the data or the plugin changed"
                line = f"{line} ({why})"
            causes.setdefault(line, []).append(cell)
    lines = [f"  {line}   [{_where(cells)}]" for line, cells in list(causes.items())[:SHOWN]]
    if len(causes) > SHOWN:
        lines.append(f"  and {len(causes) - SHOWN} more")
    return "\n".join(
        [
            f"{folder} holds {rows} episode(s) of {len(changed)} cell(s) that this study now defines otherwise:",
            *lines,
            "They cannot be mixed. Take the change back, give the changed part a new label, or begin anew with another "
            "`study:` name or --results DIR. (Policy and throughput may change at any time.)",
        ]
    )


def _where(cells: list[Cell]) -> str:
    return str(cells[0]) + (f" and {len(cells) - 1} more" if len(cells) > 1 else "")


def unknown_rows(plan: Plan, heads: Heads) -> int:
    """Rows of cells that are not in the study any more (kept, not counted)."""
    current = {cell.key for cell in plan.cells}
    return sum(key not in current for key, _ in heads)


def _cell(cell: Cell) -> dict[str, Any]:
    names: Iterable[str] = ("key", "method", "actor", "environment", "seed", "split", "identity")
    metric = getattr(registry.load("environments", cell.spec["environment"]["plugin"]), "metric", None)
    found = {name: getattr(cell, name) for name in names} | {"tasks": len(cell.tasks)}
    # Kept here, because a reader of the results may not have the plugin, or have it elsewhere.
    return found if metric is None else found | {"metric": str(metric)}


def _read(path: Path) -> dict[str, Any] | None:
    try:
        data = parse(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, CodecError) as error:
        raise _damaged(path, str(error)) from error
    if not isinstance(data, dict) or data.get("schema") != SCHEMA_VERSION:
        raise newer(data.get("schema") if isinstance(data, dict) else None, str(path))
    return data


def _damaged(path: Path, why: str) -> UsageError:
    return UsageError(f"Cannot read {path}: {why}. It is rewritten by each run: move it away to go on.")


def _write(path: Path, data: Mapping[str, Any]) -> None:
    text = json.dumps(data, indent=1, ensure_ascii=False, allow_nan=False)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with temporary.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:
        raise LedgerError(f"Cannot write {path}: {error.strerror or error}.") from error
