"""Cost: working time, model calls and tokens of an ended episode, by role."""

from __future__ import annotations

from collections.abc import Sequence

from harness.rows import ROLES, TOKEN_ROLES, Row
from harness.tracking.metrics import mean
from reports.frames import Group, Tracked, groups
from reports.page.anatomy import Chart
from reports.page.charts import Part, stacked
from reports.table import Column, Entry, Table, number


def cost_table(source: Tracked) -> Table:
    """Means over ended episodes; a count that a server did not report makes its mean unknown."""
    found = [(group, _ended(group)) for group in groups(source)]
    spent = [role for role in TOKEN_ROLES if any(row[f"{role}_calls"] for _, rows in found for row in rows)]
    columns = [Column(head, numeric=False) for head in ("Method", "Actor", "Environment")]
    columns += [Column("Episodes"), Column("Steps"), Column("Work s")]
    columns += [Column(head, role) for role in spent for head in ("Calls", "Prompt", "Completion")]
    body = []
    for group, rows in found:
        texts = [group.method, group.actor, group.environment, str(len(rows))]
        texts += [number(mean(rows, "steps"), 1), number(mean(rows, "work_s"), 3)]
        for role in spent:
            texts.append(number(mean(rows, f"{role}_calls"), 1))
            texts += [number(mean(rows, f"{role}_{kind}"), 0) for kind in ("prompt", "completion")]
        body.append([Entry(text) for text in texts])
    caption = ["Mean of an ended episode. Work: wall time less what was waited in queues. Tokens by role, as reported."]
    if not spent:
        caption.append("No model was called, so there are no tokens.")
    return Table("cost", "Cost of an episode.", columns, body, caption)


def time_charts(source: Tracked) -> list[Chart]:
    """Seconds an episode by role: a bar a method, a chart an environment, all actors together."""
    rows: dict[str, dict[str, list[Row]]] = {}
    for group in groups(source):
        rows.setdefault(group.environment, {}).setdefault(group.method, []).extend(_ended(group))
    return [_chart(environment, methods) for environment, methods in rows.items()]


def _chart(environment: str, methods: dict[str, list[Row]]) -> Chart:
    bars: list[tuple[str, Sequence[Part], str]] = []
    for method, rows in methods.items():
        means = [(role, mean(rows, f"{role}_s")) for role in ROLES]
        parts = [Part(f"{role} s", value, f"r-{role}") for role, value in means if value]
        whole = sum(part.value for part in parts)
        bars.append((method, parts, f"{whole:.2f} s" if whole >= 0.1 else f"{1000 * whole:.1f} ms"))
    return Chart(environment, stacked(f"{environment}: seconds an episode by role", bars, share=False))


def _ended(group: Group) -> list[Row]:
    return [*group.of("scored"), *group.of("unscored")]
