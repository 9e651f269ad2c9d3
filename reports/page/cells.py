"""Cells: one line a cell of the plan, with what became of it and which episode the viewer opens on."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from harness.rows import Row
from harness.tracking.layout import cell_status
from harness.tracking.metrics import mean
from reports.frames import Key, Tracked
from reports.performance import Performance
from reports.table import number


@dataclass(frozen=True)
class Line:
    """One cell; `task` is one of its episodes that the page holds, or empty."""

    key: str
    method: str
    actor: str
    environment: str
    seed: int
    status: str
    recorded: str
    performance: str
    errors: int
    task: str
    simulated: bool


def cell_lines(source: Tracked, found: Sequence[Performance], shown: Collection[Key]) -> list[Line]:
    """Every cell in the order of the plan."""
    rows: dict[str, list[Row]] = {}
    for row in source.rows:
        rows.setdefault(str(row["cell"]), []).append(row)
    tasks: dict[str, str] = {}
    for key, task in sorted(shown):
        tasks.setdefault(key, task)
    simulated = {(item.method, item.actor, item.environment): "actor" in item.simulated for item in found}
    lines = []
    for cell in source.cells:
        mine = rows.get(cell.key, [])
        scored = [row for row in mine if row["outcome"] == "scored"]
        reward = cell.metric == "mean_reward"
        lines.append(
            Line(
                key=cell.key,
                method=cell.method,
                actor=cell.actor,
                environment=cell.environment,
                seed=cell.seed,
                status=f"skipped: {cell.skipped}" if cell.skipped else cell_status(cell, mine),
                recorded=f"{len(mine)}/{len(cell.tasks)}",
                performance=number(
                    mean(scored, "reward" if reward else "success"), 3 if reward else 1, 1.0 if reward else 100.0
                ),
                errors=sum(row["outcome"] == "error" for row in mine),
                task=tasks.get(cell.key, ""),
                simulated=simulated[cell.method, cell.actor, cell.environment],
            )
        )
    return lines
