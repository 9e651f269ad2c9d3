"""Figure 1 in numbers: what actors make of advice, by actor and environment (paper section 4.5)."""

from __future__ import annotations

from harness.rows import Scalar
from harness.tracking.metrics import total
from reports import caption
from reports.frames import Group, Tracked, groups
from reports.shares import share
from reports.table import INCOMPLETE, Column, Entry, Table, flat, number, percent

ORDER = 12
NEEDS = "a method whose advice an actor answered (cota, absq-constructive)"
CLASSES = ("adopt", "keep", "novel")


def advised(source: Tracked) -> list[Group]:
    """Groups with at least one answer to a recommendation: a self-check or free feedback recommends no action."""
    return [group for group in groups(source) if total(group.rows, "replans") and total(group.rows, "winners")]


def build(source: Tracked) -> Table | None:
    """A row a method, actor and environment; None when no actor was ever asked again."""
    found = advised(source)
    if not found:
        return None
    columns = [Column(head, numeric=False) for head in ("Method", "Actor", "Environment")]
    columns += [Column("Replans"), *(Column(f"{name.title()} (%)") for name in CLASSES)]
    return Table(
        name="figure1",
        title=f"{source.study}: what actors make of advice.",
        columns=columns,
        body=[_row(source, group) for group in found],
        caption=[
            "Share of answers to advice that equal a recommended action (Adopt), the original proposal (Keep) or "
            "neither (Novel). Brackets: 95% interval, bootstrap over tasks. Every recorded episode counts.",
            *caption.simulated_in(source),
        ],
        notes=[f"{INCOMPLETE} Incomplete: episodes are missing or broke."] if any(g.incomplete for g in found) else [],
        data=[_tidy(source, group) for group in found],
    )


def _row(source: Tracked, group: Group) -> list[Entry]:
    texts = (group.method, group.actor, group.environment, number(total(group.rows, "replans"), 0))
    mark = INCOMPLETE if group.incomplete else ""
    shares = [percent(share(source, group, name, "replans"), 1, mark) for name in CLASSES]
    return [*(Entry(text) for text in texts), *shares]


def _tidy(source: Tracked, group: Group) -> dict[str, Scalar]:
    row: dict[str, Scalar] = {"method": group.method, "actor": group.actor, "environment": group.environment}
    row["replans"] = total(group.rows, "replans")
    for name in CLASSES:
        row |= flat(name, share(source, group, name, "replans"))
    return row
