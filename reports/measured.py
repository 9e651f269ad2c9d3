"""Measured tables: what a command measured beside the episodes (`harness.measures`), laid out as a table.

The paper's columns come first, in its order; what a measure has beyond them follows: nothing measured is hidden.
`<column>_lo` and `<column>_hi` become the interval of a column.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from harness.measures import Measure
from harness.rows import Scalar
from reports.frames import Tracked
from reports.stats import Estimate
from reports.table import DASH, Column, Entry, Table, entry

Line = Mapping[str, Scalar]
ENDS = ("_lo", "_hi")


@dataclass(frozen=True)
class Shape:
    """How one measure is shown.

    Attributes:
        measure: Its name.
        title: First words of the caption.
        columns: (name in the measure, heading, digits); digits None for words.
        caption: Sentences: what the numbers are.
    """

    measure: str
    title: str
    columns: Sequence[tuple[str, str, int | None]]
    caption: Sequence[str]


def measured(source: Tracked, shape: Shape) -> Table | None:
    """The table of a measure, or None when it was not made."""
    found = source.measures.get(shape.measure)
    if found is None or not found.rows:
        return None
    return lay_out(source, shape, found)


def lay_out(source: Tracked, shape: Shape, found: Measure) -> Table:
    """A measure as a table of the given shape."""
    columns = [column for column in shape.columns if any(column[0] in row for row in found.rows)]
    columns += _others(shape, found.rows)
    return Table(
        name=shape.measure,
        title=f"{source.study}: {shape.title}",
        columns=[Column(head, numeric=digits is not None) for _, head, digits in columns],
        body=[[cell(row, name, digits) for name, _, digits in columns] for row in found.rows],
        caption=[*shape.caption, *_interval(found.rows), f"Measured by {found.made_by}."],
        notes=[*found.notes],
        data=[dict(row) for row in found.rows],
    )


def estimate(row: Line, name: str) -> Estimate:
    """A column of a measure with its interval; `n` as far as the row has it."""
    value, low, high = (number(row.get(f"{name}{end}")) for end in ("", *ENDS))
    n = row.get(f"{name}_n", row.get("n"))
    return Estimate(value, low, high, int(n) if isinstance(n, int | float) else 0, 0)


def number(value: Scalar) -> float | None:
    """A number, or None for a word or what is not known."""
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def cell(row: Line, name: str, digits: int | None) -> Entry:
    """One entry: a dash for what is not known, a word as it is, a number with its interval."""
    value = row.get(name)
    if value is None:
        return Entry(DASH)
    if digits is None or number(value) is None:
        return Entry(str(value))
    return entry(estimate(row, name), digits)


def _others(shape: Shape, rows: Sequence[Line]) -> list[tuple[str, str, int | None]]:
    """Columns that the measure has beyond the shape's, without what belongs to another: ends of intervals and n."""
    known = {name for name, _, _ in shape.columns}
    every = dict.fromkeys(name for row in rows for name in row)
    names = [name for name in every if name not in known and not name.endswith(ENDS)]
    names = [name for name in names if name.removesuffix("_n") == name or name.removesuffix("_n") not in every]
    return [(name, _words(name), _digits(rows, name)) for name in names]


def _words(name: str) -> str:
    """A column's name as a heading."""
    text = name.replace("_pct", " (%)").replace("_", " ")
    return text if text == "n" else text[:1].upper() + text[1:]


def _digits(rows: Sequence[Line], name: str) -> int | None:
    values = [row.get(name) for row in rows if row.get(name) is not None]
    if not values or any(number(value) is None for value in values):
        return None
    if all(isinstance(value, int) for value in values):
        return 0
    return 1 if name.endswith("_pct") else 3


def _interval(rows: Sequence[Line]) -> list[str]:
    some = any(name.endswith("_lo") and value is not None for row in rows for name, value in row.items())
    return ["Brackets: 95% interval."] if some else []
