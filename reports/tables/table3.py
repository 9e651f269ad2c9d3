"""Table 3: the slices that were run: tasks, repeats and step limit by environment and actor (paper section 4.1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from harness.rows import Scalar
from harness.tracking.plan import PlannedCell
from reports import caption
from reports.frames import Tracked
from reports.table import DASH, Column, Entry, Table

ORDER = 3


@dataclass(frozen=True, slots=True)
class Slice:
    """What one actor ran of one environment; None where the plan does not say."""

    environment: str
    actor: str
    split: str
    tasks: int
    repeats: int
    max_steps: int | None
    panel: str
    cells: tuple[PlannedCell, ...]


def slices(source: Tracked) -> list[Slice]:
    """The slices of a study in the order of its plan, without cells that it skips."""
    places: dict[tuple[str, str], list[PlannedCell]] = {}
    for cell in source.cells:
        if not cell.skipped:
            places.setdefault((cell.environment, cell.actor), []).append(cell)
    return [_slice(*place, cells) for place, cells in places.items()]


def _slice(environment: str, actor: str, cells: Sequence[PlannedCell]) -> Slice:
    steps = cells[0].params.get("environment.max_steps")
    return Slice(
        environment=environment,
        actor=actor,
        split=cells[0].split,
        tasks=len(cells[0].tasks),
        repeats=len({cell.seed for cell in cells}),
        max_steps=steps if isinstance(steps, int) else None,
        panel=str(cells[0].params.get("environment.panel") or ""),
        cells=tuple(cells),
    )


def build(source: Tracked) -> Table:
    """A row an environment and actor."""
    heads = ("Environment", "Actor", "Split")
    columns = [Column(head, numeric=False) for head in heads]
    columns += [Column("Tasks"), Column("Repeats"), Column("Max. steps"), Column("Panel", numeric=False)]
    found = slices(source)
    return Table(
        name="table3",
        title=f"{source.study}: evaluation slices.",
        columns=columns,
        body=[_row(item) for item in found],
        caption=[
            "Each method runs every task of the slice once a repeat (seed). Panel: hash of the frozen tasks and of the "
            "data behind them.",
            *caption.simulated_in(source),
        ],
        data=[_tidy(item) for item in found],
    )


def _row(item: Slice) -> list[Entry]:
    steps = DASH if item.max_steps is None else str(item.max_steps)
    texts = (item.environment, item.actor, item.split, str(item.tasks), str(item.repeats), steps, item.panel or DASH)
    return [Entry(text) for text in texts]


def _tidy(item: Slice) -> dict[str, Scalar]:
    return {
        "environment": item.environment,
        "actor": item.actor,
        "split": item.split,
        "tasks": item.tasks,
        "repeats": item.repeats,
        "max_steps": item.max_steps,
        "panel": item.panel,
    }
