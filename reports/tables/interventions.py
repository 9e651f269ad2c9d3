"""Interventions: how often a method stepped in and what the actor made of it (paper section 4.4, figure 1)."""

from __future__ import annotations

from harness.rows import Scalar
from harness.tracking.metrics import ratio, total
from reports.frames import Group, Tracked, groups
from reports.table import Column, Entry, Table, number

ORDER = 10
SHARES = (
    ("Fired", "fired", "reviews"),
    ("Adopt", "adopt", "replans"),
    ("Keep", "keep", "replans"),
    ("Novel", "novel", "replans"),
    ("Fail-open", "fail_opens", "reviews"),
)


def build(source: Tracked) -> Table | None:
    """Counts and shares; None when no method reviewed anything."""
    found = [group for group in groups(source) if total(group.rows, "reviews")]
    if not found:
        return None
    columns = [Column(head, numeric=False) for head in ("Method", "Actor", "Environment")]
    columns += [Column("Reviews"), Column("Replans"), *(Column(f"{head} %") for head, _, _ in SHARES)]
    return Table(
        name="interventions",
        title=f"{source.study}: interventions.",
        columns=columns,
        body=[_row(group) for group in found],
        caption=[
            "Fired and Fail-open: share of reviewed proposals. Adopt, Keep, Novel: share of replans that equal a "
            "recommended action, the original proposal, or neither. Every recorded episode counts."
        ],
        data=[_data(group) for group in found],
    )


def _row(group: Group) -> list[Entry]:
    texts = [group.method, group.actor, group.environment]
    texts += [number(total(group.rows, name), 0) for name in ("reviews", "replans")]
    texts += [number(ratio(total(group.rows, top), total(group.rows, of)), 1, 100.0) for _, top, of in SHARES]
    return [Entry(text) for text in texts]


def _data(group: Group) -> dict[str, Scalar]:
    names = (
        "reviews",
        "fired",
        "candidates",
        "winners",
        "comparisons",
        "replans",
        "adopt",
        "keep",
        "novel",
        "fail_opens",
    )
    counts: dict[str, Scalar] = {name: total(group.rows, name) for name in names}
    return {"method": group.method, "actor": group.actor, "environment": group.environment, **counts}
