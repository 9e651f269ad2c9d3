"""Measures: numbers of a study that are not episodes, such as pair counts, judge diagnostics, costs of training.

One JSON file a measure in `results/<study>/measures/`, written whole by the command that measured, read by the reports
and copied to the tracking store, so that a table of them can be made from either.  A measure is a list of flat rows.
Columns are named as in the published table where there is one (`reports/paper/`), with `<column>_lo`, `<column>_hi` and
`n` beside a value that has an interval; a value that is not known is null.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.errors import UsageError

FOLDER = "measures"
SCHEMA = 1
Cell = str | int | float | bool | None
Line = Mapping[str, Cell]


@dataclass(frozen=True, slots=True)
class Measure:
    """Rows of one measure; `made_by` is the command, `notes` what a caption must say (a simulated source, a model)."""

    name: str
    rows: tuple[Line, ...]
    made_by: str
    notes: tuple[str, ...] = ()


def write_measure(results: Path, measure: Measure) -> Path:
    """Put a measure in a study's results folder, in place of the last one of its name.

    Raises:
        ValueError: a NaN or an infinite value (unknown is None), or a name that is not a plain word.
    """
    if not _plain(measure.name):
        raise ValueError(f"a measure's name is a plain word, not {measure.name!r}")
    for row in measure.rows:
        for column, value in row.items():
            if isinstance(value, float) and not math.isfinite(value):
                raise ValueError(f"{measure.name}.{column} is {value}; write None for what is not known")
    folder = results / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / f"{measure.name}.json"
    data = {
        "schema": SCHEMA,
        "measure": measure.name,
        "made_by": measure.made_by,
        "notes": list(measure.notes),
        "rows": [dict(row) for row in measure.rows],
    }
    text = json.dumps(data, indent=1, allow_nan=False)
    if target.exists() and target.read_text(encoding="utf-8", errors="replace") == text:
        return target  # reports and store go by the time of the file: what did not change is not made again
    fresh = target.with_suffix(f".{os.getpid()}.tmp")
    fresh.write_text(text, encoding="utf-8")
    os.replace(fresh, target)
    return target


def read_measure(results: Path, name: str) -> Measure | None:
    """A measure, or None when it was not made yet. Raises `UsageError` for a damaged or newer file."""
    path = results / FOLDER / f"{name}.json"
    if not _plain(name):
        raise UsageError(f"{path}: a measure's name is a plain word, not {name!r}. Move or rename the file.")
    if not path.exists():
        return None
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        if data["schema"] > SCHEMA:
            raise UsageError(f"{path}: written by a newer cota-bench (schema {data['schema']}, known: {SCHEMA})")
        return _checked(name, data)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UsageError(f"{path}: damaged ({error}). Delete it and run the command that made it again.") from error


def _checked(name: str, data: Mapping[str, Any]) -> Measure:
    """A measure from JSON. Raises ValueError where it is none: another name, rows that are not flat, NaN, no notes."""
    rows, notes = data["rows"], data["notes"]
    if data["measure"] != name:
        raise ValueError(f"it holds the measure {data['measure']!r}")
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise ValueError("rows: a list of objects is needed")
    if not isinstance(notes, list) or not all(isinstance(note, str) for note in notes):
        raise ValueError("notes: a list of texts is needed")
    for column, value in ((column, value) for row in rows for column, value in row.items()):
        if not isinstance(value, Cell) or (isinstance(value, float) and not math.isfinite(value)):
            raise ValueError(f"{column} is {value!r}; a text, a finite number, true, false or null is needed")
    return Measure(name, tuple(rows), str(data["made_by"]), tuple(notes))


def _plain(name: str) -> bool:
    """Whether a name is letters, digits and underscores alone, so that a file of that name stays in its folder."""
    return name.replace("_", "").isalnum()


def names(results: Path) -> Sequence[str]:
    """Measures of a study, by name."""
    return sorted(path.stem for path in (results / FOLDER).glob("*.json"))


def read_all(results: Path) -> dict[str, Measure]:
    """Every measure in a folder, by name. Raises `UsageError` for a damaged or newer file."""
    found = ((name, read_measure(results, name)) for name in names(results))
    return {name: measure for name, measure in found if measure is not None}
