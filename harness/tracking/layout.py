"""Layout: names, tags and descriptions of what is in the tracking store.

    experiment <study>          one flat run a cell (method, actor, environment, seed); tag `cota.cell` finds it again
    experiment <study>-summary  one run a method and actor: means with intervals; tag `cota.group` finds it again

No nested runs, no global active run, few metrics.  Each description says what the numbers mean and what is simulated.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from harness.colours import colour
from harness.rows import Row, Scalar
from harness.tracking.metrics import CURVES, GLOSSARY
from harness.tracking.plan import PlannedCell

CELL_TAG: Final = "cota.cell"
GROUP_TAG: Final = "cota.group"
MEASURES_TAG: Final = "cota.measures"
LEFT_OUT_TAG: Final = "cota.left_out"
COMPLETE: Final = "complete"
INCOMPLETE: Final = "incomplete"
SKIPPED: Final = "skipped"
OUTSIDE: Final = "not in plan"
EPISODES: Final = "episodes.parquet"
PREVIEW: Final = "episodes.csv"
CELL_FILE: Final = "cell.json"


def experiment_names(study: str) -> tuple[str, str]:
    """The two experiments of a study: cells, and summary."""
    return study, f"{study}-summary"


def cell_params(cell: PlannedCell) -> dict[str, Scalar]:
    """Parameters of a cell's run: the axes of the grid first, then what the identity may show."""
    axes: dict[str, Scalar] = {
        "method": cell.method,
        "actor": cell.actor,
        "environment": cell.environment,
        "seed": cell.seed,
        "split": cell.split,
        "tasks": len(cell.tasks),
        "metric": cell.metric,
    }
    return axes | {name: value for name, value in cell.params.items() if name not in axes}


def cell_status(cell: PlannedCell, rows: Sequence[Row]) -> str:
    """`complete` only when every planned task has a row; `skipped` when the study leaves the cell out."""
    if cell.skipped:
        return SKIPPED
    done = {str(row["task_id"]) for row in rows}
    return COMPLETE if done >= set(cell.tasks) else INCOMPLETE


def simulated_parts(rows: Sequence[Row]) -> list[str]:
    """What was simulated in any of these episodes, sorted."""
    return sorted({part for row in rows for part in str(row["simulated"] or "").split(",") if part})


def cell_tags(cell: PlannedCell, rows: Sequence[Row], position: int, beside: Sequence[str] = ()) -> dict[str, str]:
    """Tags of a cell's run, for filtering in the page; `beside` are the methods of the study."""
    parts = simulated_parts(rows)
    return {
        "cota.study": cell.study,
        "method": cell.method,
        "actor": cell.actor,
        "environment": cell.environment,
        "seed": str(cell.seed),
        "simulated": ", ".join(parts) if parts else ("nothing" if rows else "unknown"),
        "mlflow.runColor": colour(cell.method, beside),
        "cota.position": f"{position:05d}",
        "cota.recorded": str(len(rows)),
        "cota.plan": "known" if cell.known else "guessed",
    }


def cell_note(cell: PlannedCell, rows: Sequence[Row], status: str) -> str:
    """The description of a cell's run."""
    parts = simulated_parts(rows)
    counts = {name: sum(row["outcome"] == name for row in rows) for name in ("scored", "unscored", "error", "skipped")}
    lines = [
        f"**{cell.method}** with actor **{cell.actor}** on **{cell.environment}** ({cell.split}), seed {cell.seed}.",
        "",
        f"{len(rows)} of {len(cell.tasks)} planned episodes recorded ({status}): "
        + ", ".join(f"{count} {name}" for name, count in counts.items() if count or name == "scored")
        + ".",
    ]
    if parts:
        lines.append(f"\n**Simulated: {', '.join(parts)}.** These are not results of a language model in that role.")
    if cell.skipped:
        lines.append(f"\n**Skipped by the study:** {cell.skipped}")
    if status == INCOMPLETE:
        lines.append("\n**Incomplete:** the means cover only the episodes recorded so far.")
    lines += ["", f"`{EPISODES}` holds every episode in full; `{PREVIEW}` is a preview. Cell `{cell.key}`."]
    return "\n".join(lines)


def study_note(cells: Sequence[PlannedCell], simulated: Sequence[str], metrics: Mapping[str, str]) -> str:
    """The description of an experiment: what was compared, what is simulated, what the names mean."""

    def labels(name: str) -> str:
        return ", ".join(dict.fromkeys(str(getattr(cell, name)) for cell in cells))

    lines = [
        f"# {cells[0].study}",
        f"{len(cells)} cells, {sum(len(cell.tasks) for cell in cells)} planned episodes.",
        "",
        f"- methods: {labels('method')}",
        f"- actors: {labels('actor')}",
        f"- environments: {labels('environment')}",
        f"- seeds: {labels('seed')}",
    ]
    if simulated:
        lines.append(f"- **simulated: {', '.join(simulated)}** (not results of a language model in that role)")
    lines += ["", "| name | meaning |", "| --- | --- |"]
    lines += [f"| `{name}` | {meaning} |" for name, meaning in metrics.items()]
    return "\n".join(lines)


def cell_glossary() -> dict[str, str]:
    """Metrics and curves of the cell runs with their definitions."""
    return {**GLOSSARY, **CURVES}
