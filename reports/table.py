"""Table: what one table says, before any format; renderers turn it into Markdown, LaTeX and CSV.

A cell keeps value, interval and marks apart, so that every format can place them as it likes; `data` is the same
content as tidy rows in full precision.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from harness.rows import Scalar
from reports.stats import Estimate

DASH: Final = "–"
INCOMPLETE: Final = "†"


@dataclass(frozen=True)
class Entry:
    """One cell: what is shown, its interval, marks such as `†`, and a short addition such as `n=17/20`."""

    text: str
    interval: str = ""
    marks: str = ""
    extra: str = ""


@dataclass(frozen=True)
class Column:
    """One column; neighbours with the same `group` share a heading above their own."""

    head: str
    group: str = ""
    numeric: bool = True


@dataclass(frozen=True)
class Table:
    """One table with its caption and notes.

    Attributes:
        name: File name without an ending, such as ``table1``.
        title: First words of the caption.
        columns: Headings.
        body: Rows of entries, one a column.
        caption: Sentences generated from the data: n, interval, convention, what is simulated.
        notes: What stands below the table: missing cells, marks, the other convention.
        data: Tidy rows in full precision, for CSV.
    """

    name: str
    title: str
    columns: Sequence[Column]
    body: Sequence[Sequence[Entry]]
    caption: Sequence[str] = ()
    notes: Sequence[str] = ()
    data: Sequence[dict[str, Scalar]] = field(default_factory=list)


def number(value: float | None, digits: int, scale: float = 1.0) -> str:
    """A number for the eye; a dash for none."""
    return DASH if value is None else f"{value * scale:.{digits}f}"


def entry(estimate: Estimate, digits: int, scale: float = 1.0, marks: str = "", extra: str = "") -> Entry:
    """An estimate as an entry; no interval where there is none, no mark on a dash."""
    if estimate.value is None:
        return Entry(DASH, extra=extra)
    span = ""
    if estimate.interval:
        span = f"[{number(estimate.low, digits, scale)}, {number(estimate.high, digits, scale)}]"
    return Entry(number(estimate.value, digits, scale), span, marks, extra)


def flat(prefix: str, estimate: Estimate) -> dict[str, Scalar]:
    """An estimate as tidy columns."""
    return {
        prefix: estimate.value,
        f"{prefix}_ci_lo": estimate.low,
        f"{prefix}_ci_hi": estimate.high,
        f"{prefix}_n": estimate.n,
        f"{prefix}_tasks": estimate.clusters,
    }


def percent(estimate: Estimate, digits: int = 1, marks: str = "") -> Entry:
    """A share in [0, 1] as an entry in percent."""
    return entry(estimate, digits, 100.0, marks)


def signed(estimate: Estimate, digits: int, scale: float = 1.0, marks: str = "") -> Entry:
    """A difference as an entry: a plus or a minus before each number."""
    if estimate.value is None:
        return Entry(DASH)
    span = ""
    if estimate.interval:
        span = f"[{plus(estimate.low, digits, scale)}, {plus(estimate.high, digits, scale)}]"
    return Entry(plus(estimate.value, digits, scale), span, marks)


def plus(value: float | None, digits: int, scale: float = 1.0) -> str:
    """A number with its sign; one that rounds to zero has none."""
    if value is None:
        return DASH
    text = f"{value * scale:+.{digits}f}"
    return text[1:] if float(text) == 0.0 else text.replace("-", "−")


def shape(metric: str) -> tuple[int, float]:
    """Digits and scale of a metric as the paper writes it: mean reward to three digits, success in percent to one."""
    return (3, 1.0) if metric == "mean_reward" else (1, 100.0)
