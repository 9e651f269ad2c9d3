"""Table 1: performance and Avg. T of every method, by actor and environment (paper section 4.2)."""

from __future__ import annotations

from collections.abc import Sequence

from harness.rows import Scalar
from reports import caption
from reports.frames import Tracked
from reports.performance import Performance, baseline_of, measure
from reports.table import INCOMPLETE, Column, Entry, Table, entry, flat

ORDER = 1


def build(source: Tracked) -> Table:
    """The table in the paper's shape: a row an actor and environment, two columns a method."""
    found = measure(source)
    methods = list(dict.fromkeys(item.method for item in found))
    actors = list(dict.fromkeys(item.actor for item in found))
    rows = sorted(dict.fromkeys((i.actor, i.environment) for i in found), key=lambda row: actors.index(row[0]))
    by_key = {(item.method, item.actor, item.environment): item for item in found}
    columns = [Column("Actor", numeric=False), Column("Environment", numeric=False)]
    columns += [Column(head, method) for method in methods for head in ("Perf.", "Avg. T")]
    body = []
    for actor, environment in rows:
        cells = [by_key.get((method, actor, environment)) for method in methods]
        first = next(item for item in cells if item is not None)
        if all(item is None or item.skipped for item in cells):
            continue  # the note names them with their reasons
        body.append([Entry(_actor(actor, first)), Entry(environment), *_pairs(cells)])
    return Table(
        name="table1",
        title=f"{source.study}: performance and Avg. T.",
        columns=columns,
        body=body,
        caption=_caption(found, methods),
        notes=[
            *caption.marks(found),
            *caption.other_convention(found),
            *caption.unscored(found),
            *caption.missing(source, found),
            *caption.broken_advisers(source),
        ],
        data=[tidy(item) for item in found],
    )


def tidy(item: Performance) -> dict[str, Scalar]:
    """One group in full precision; the convention is part of each name."""
    return {
        "actor": item.actor,
        "environment": item.environment,
        "method": item.method,
        "metric": item.metric,
        **flat("performance_scored", item.scored),
        **flat("performance_errors_zero", item.zeros),
        **flat("avg_t", item.avg_t),
        "planned": item.planned,
        "missing": item.missing,
        "errors": item.errors,
        "unscored": item.unscored,
        "incomplete": item.incomplete,
        "skipped": item.skipped,
        "simulated": ",".join(item.simulated),
    }


def _actor(label: str, item: Performance) -> str:
    return f"{label} (simulated)" if "actor" in item.simulated else label


def _pairs(cells: Sequence[Performance | None]) -> list[Entry]:
    entries = []
    for item in cells:
        if item is None or item.skipped:
            entries += [Entry("skipped" if item else "–"), Entry("–")]
            continue
        mark = INCOMPLETE if item.incomplete else ""
        extra = f"n={item.scored.n}/{item.planned}" if item.incomplete or item.unscored else ""
        digits, scale = (3, 1.0) if item.metric == "mean_reward" else (1, 100.0)
        entries += [entry(item.scored, digits, scale, mark, extra), entry(item.avg_t, 2)]
    return entries


def _caption(found: Sequence[Performance], methods: Sequence[str]) -> list[str]:
    base = baseline_of(methods)
    sentences = [
        "Perf.: mean reward in [0, 1] or success rate in percent, over all seeds.",
        caption.sample_size(found),
        caption.interval(found),
        caption.AVG_T if base else "No method called Origin is in this study, so there is no Avg. T.",
        caption.convention(found),
        caption.simulated(part for item in found for part in item.simulated),
    ]
    return [sentence for sentence in sentences if sentence]
