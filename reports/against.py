"""Against the paper: published values, ours, the difference and a verdict, in one table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from harness.errors import UsageError, nearest
from harness.rows import Scalar
from reports import caption
from reports.beside import Beside, everything
from reports.claims import Claims, claims, our_settings, paper_settings
from reports.comparable import MODEL_USER
from reports.frames import Tracked, groups
from reports.names import METHODS
from reports.performance import measure
from reports.published import FILES, SOURCE
from reports.table import DASH, Column, Entry, Table, entry, flat, number, plus

KNOWN = ("paper",)
VERDICTS = ("inside", "outside", "same", "other", "not comparable")


def against_tables(source: Tracked, what: str) -> list[Table]:
    """The tables of `--against`. Raises `UsageError` for anything but `paper`."""
    if what not in KNOWN:
        hint = nearest(what, KNOWN)
        raise UsageError(f"Nothing called {what!r} to compare with.{hint} Two studies: cota-bench compare A B")
    return [build(source)]


def build(source: Tracked) -> Table:
    """A row a published value that this study has something for."""
    found = everything(source)
    letters = lettered(found)
    columns = [Column(head, numeric=False) for head in ("Table", "Setting", "Quantity")]
    columns += [
        Column("Published"),
        Column("Ours"),
        Column("n"),
        Column("Difference"),
        Column("Verdict", numeric=False),
    ]
    return Table(
        name="against",
        title=f"{source.study}: the paper's values and ours.",
        columns=columns,
        body=[_row(item, letters) for item in found],
        caption=[
            f"Published: {SOURCE}. Ours with its 95% interval over tasks. inside, outside: whether the published value "
            "lies in our interval; the published one has none, so that outside is no test of a difference.",
            *caption.simulated_in(source),
        ],
        notes=[
            *_counts(found),
            *_claims(source),
            *_customers(source),
            *(f"({letter}) Not comparable: {', '.join(why)}." for why, letter in letters.items()),
        ],
        data=[_tidy(item) for item in found],
    )


def lettered(found: Sequence[Beside]) -> dict[tuple[str, ...], str]:
    """A letter for each set of reasons why values are not comparable, in the order of the rows."""
    causes = dict.fromkeys(item.why for item in found if item.verdict.startswith("not comparable") and item.why)
    return {why: _letter(place) for place, why in enumerate(causes)}


def _letter(place: int) -> str:
    """a, b, ... z, aa, ab, ..."""
    return (_letter(place // 26 - 1) if place >= 26 else "") + chr(ord("a") + place % 26)


def _row(item: Beside, letters: Mapping[tuple[str, ...], str]) -> list[Entry]:
    verdict = item.verdict
    if verdict.startswith("not comparable") and item.why in letters:
        verdict = f"not comparable ({letters[item.why]})"
    ours = entry(item.ours, item.digits)
    return [
        Entry(words(item.table)),
        Entry(item.setting),
        Entry(item.quantity),
        Entry(number(item.theirs, item.digits)),
        ours,
        Entry(str(item.ours.n) if item.ours.n else DASH),
        Entry(plus(item.difference, item.digits)),
        Entry(verdict),
    ]


def words(table: str) -> str:
    """`table10` as `10`, `figure1` as `fig. 1`."""
    return table.removeprefix("table").replace("figure", "fig. ")


def _counts(found: Sequence[Beside]) -> list[str]:
    kinds = Counter(item.verdict.partition(":")[0] for item in found)
    said = ", ".join(f"{kinds[kind]} {kind}" for kind in VERDICTS if kinds[kind])
    shown = {item.table for item in found}
    absent = [words(name) for name in FILES if name not in shown]
    lines = [f"{len(found)} values stand side by side: {said}." if found else "Nothing here stands in the paper."]
    if absent:
        lines.append(f"Nothing in this study stands beside the paper's tables {', '.join(absent)}.")
    return lines


def _claims(source: Tracked) -> list[str]:
    here = [METHODS.get(item.plugin, item.method) for item in measure(source) if not item.skipped]
    lines = [f"The paper on COTA: {said(claims(paper_settings(), 'COTA'))}."]
    if "COTA" in here:
        lines.append(f"Here: {said(claims(our_settings(measure(source)), 'COTA'))}.")
    return lines


def _customers(source: Tracked) -> list[str]:
    if not any(MODEL_USER in group.simulated for group in groups(source)):
        return []
    return ["Retail: the paper does not name the model that plays its customer; another one may move these numbers."]


def said(found: Claims) -> str:
    """Claims in words."""
    time = DASH if found.mean_avg_t is None else f"{found.mean_avg_t:.2f}"
    return (
        f"mean Avg. T {time} over {_settings(found.timed)}, {found.under} under 1.5; highest performance in "
        f"{found.best} of {_settings(found.compared)}"
    )


def _settings(count: int) -> str:
    return f"{count} setting{'' if count == 1 else 's'}"


def _tidy(item: Beside) -> dict[str, Scalar]:
    row: dict[str, Scalar] = {"table": item.table, "setting": item.setting, "quantity": item.quantity}
    row |= {"published": item.theirs, **flat("ours", item.ours)}
    return row | {"difference": item.difference, "verdict": item.verdict}
