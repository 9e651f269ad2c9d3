"""Tracked: what is known about a study, the same object whether it comes from a ledger or from MLflow.

Everything that reports compute starts here: the plan, one row an episode (Arrow, fixed schema) and, when needed, the
full records.  Rows of cells outside the plan (an earlier form of the study) are left out and counted, never mixed in.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.codec import parse
from harness.errors import UsageError
from harness.measures import Measure, read_all
from harness.records import Episode
from harness.rows import Row, record_row
from harness.tracking.plan import PlannedCell, cells_from_rows, read_plan
from harness.tracking.table import to_table

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class Tracked:
    """One study as it stands.

    Attributes:
        study: Its name.
        origin: Where this was read, for captions and messages.
        cells: The plan in its order.
        table: One row an episode, columns of `harness.rows.FIELDS`, sorted by cell and task.
        records: Makes an iterator over the full episodes.
        left_out: Rows of cells that are not in the plan.
        links: Address of each cell's run, when it has one.
        measures: What was measured beside the episodes, by name (`harness.measures`).
        memo: What readers have computed from this study and want to keep with it.
    """

    study: str
    origin: str
    cells: tuple[PlannedCell, ...]
    table: pa.Table
    records: Callable[[], Iterator[Episode]]
    left_out: int = 0
    links: Mapping[str, str] = field(default_factory=dict)
    measures: Mapping[str, Measure] = field(default_factory=dict)
    memo: dict[object, Any] = field(default_factory=dict, compare=False, repr=False)

    @cached_property
    def rows(self) -> list[Row]:
        """The table as plain rows."""
        rows: list[Row] = self.table.to_pylist()
        return rows

    @property
    def plan_known(self) -> bool:
        """False when the plan was guessed from what was recorded."""
        return all(cell.known for cell in self.cells)


def tracked(
    origin: str,
    cells: Sequence[PlannedCell],
    rows: Iterable[Row],
    records: Callable[[], Iterator[Episode]],
    links: Mapping[str, str] | None = None,
    left_out: int = 0,
    measures: Mapping[str, Measure] | None = None,
) -> Tracked:
    """Rows and plan put together: sorted, and without what the plan does not know.

    `left_out` counts rows of cells outside the plan that are not among `rows`.

    Raises:
        UsageError: two rows of one (cell, task), or neither a plan nor a row.
    """
    everything = list(rows)
    known = list(cells) or cells_from_rows(everything)
    if not known:
        raise UsageError(f"{origin} holds neither a plan nor an episode. Run the study first: cota-bench run STUDY")
    order = {cell.key: i for i, cell in enumerate(known)}
    places = {cell.key: {task: i for i, task in enumerate(cell.tasks)} for cell in known}
    kept = [row for row in everything if row["cell"] in order]
    kept.sort(key=lambda row: _place(row, order, places))
    _unique(kept, origin)
    left_out += len(everything) - len(kept)
    table, study = to_table(kept), known[0].study
    return Tracked(study, origin, tuple(known), table, records, left_out, dict(links or {}), dict(measures or {}))


def from_ledger(folder: Path) -> Tracked:
    """The study of a results folder.

    Raises:
        UsageError: no such folder, nothing in it, or a ledger that cannot be believed.
    """
    from harness import ledger

    if not folder.is_dir():
        raise UsageError(f"There is no results folder {folder}. Run the study first, or name another with --results.")
    found = ledger.read(folder)
    rows = [record_row(parse(found.text(frame))) for frame in found.last_attempts()]
    records = partial(ledger.read_episodes, folder)
    return tracked(f"ledger {folder}", read_plan(folder), rows, records, measures=read_all(folder))


def _place(row: Row, order: Mapping[str, int], places: Mapping[str, Mapping[str, int]]) -> tuple[int, int, str]:
    cell, task = str(row["cell"]), str(row["task_id"])
    tasks = places[cell]
    return order[cell], tasks.get(task, len(tasks)), task


def _unique(rows: Sequence[Row], origin: str) -> None:
    for before, after in itertools.pairwise(rows):
        if (before["cell"], before["task_id"]) == (after["cell"], after["task_id"]):
            raise UsageError(
                f"{origin} holds two rows of task {after['task_id']!r} in cell {after['cell']} "
                f"({after['method']}, {after['actor']}, {after['environment']}, seed {after['seed']}). "
                "Duplicates are refused: rebuild the tracking store with `cota-bench sync`, or restore the ledger."
            )
