"""Coverage: planned = scored + unscored + errors + skipped + missing, for every group, and who broke."""

from __future__ import annotations

from collections import Counter

from harness.rows import Scalar
from reports.caption import shown
from reports.frames import Group, Tracked, groups
from reports.performance import measure
from reports.table import Column, Entry, Table

ORDER = 90


def build(source: Tracked) -> Table:
    """One row a method, actor and environment, with both conventions for errors side by side."""
    found = {(item.method, item.actor, item.environment): item for item in measure(source)}
    heads = ("Planned", "Scored", "Unscored", "Errors", "Skipped", "Missing", "Perf. (scored)", "Perf. (errors as 0)")
    columns = [Column(head, numeric=False) for head in ("Method", "Actor", "Environment")]
    columns += [Column(head) for head in heads] + [Column("Who broke", numeric=False)]
    body, data = [], []
    for group in groups(source):
        item = found[group.method, group.actor, group.environment]
        counts = _counts(group)
        texts = [*(str(value) for value in counts.values()), shown(item), shown(item, zero=True), broke(group) or "–"]
        body.append([Entry(text) for text in (group.method, group.actor, group.environment, *texts)])
        row: dict[str, Scalar] = {"method": group.method, "actor": group.actor, "environment": group.environment}
        data.append(
            {
                **row,
                **counts,
                "scored_mean": item.scored.value,
                "errors_zero_mean": item.zeros.value,
                "broke": broke(group),
            }
        )
    return Table(
        name="coverage",
        title=f"{source.study}: what stands behind the numbers.",
        columns=columns,
        body=body,
        caption=["Planned episodes by what became of them, and performance under both conventions for errors."],
        data=data,
    )


def broke(group: Group) -> str:
    """Errors by boundary and status, such as `2 actor unparsed, 1 simulator failed`."""
    kinds = Counter(f"{row['boundary'] or 'unknown'} {row['status']}" for row in group.of("error"))
    return ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items()))


def _counts(group: Group) -> dict[str, Scalar]:
    skipped = len(group.of("skipped"))
    return {
        "planned": group.planned,
        "scored": len(group.of("scored")),
        "unscored": len(group.of("unscored")),
        "errors": len(group.of("error")),
        "skipped": skipped,
        "missing": group.missing - skipped,
    }
