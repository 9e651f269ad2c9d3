"""Made-up studies for the report's tests: what a plan says of methods and environments, and episodes of a given score."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from harness.measures import Measure
from harness.records import Episode
from harness.rows import episode_row
from harness.tracking.plan import PlannedCell
from harness.tracking.tracked import Tracked, tracked
from tests.synthetic import make_episode, planned_cells

Change = Callable[[PlannedCell, str], Episode | None]
TWO_BY_TWO = ("agentprm", "absq-constructive", "pairwise-forced", "cota")


def of(
    cells: Sequence[PlannedCell], change: Change | None = None, measures: Iterable[Measure] = (), origin: str = "here"
) -> Tracked:
    """A study in memory."""
    make = change or (lambda cell, task: make_episode(cell, task))
    made = [make(cell, task) for cell in cells if not cell.skipped for task in cell.tasks]
    rows = [episode_row(episode) for episode in made if episode is not None]
    return tracked(origin, cells, rows, lambda: iter(()), measures={m.name: m for m in measures})


def scored(cell: PlannedCell, task: str, reward: float, **changes: object) -> Episode:
    """An episode that ended with a reward; 1 is a success."""
    return make_episode(cell, task, reward=reward, success=reward >= 1.0, **changes)


def cells(**shape: object) -> list[PlannedCell]:
    """A plan whose parameters say what each part is, as that of a real study does."""
    return [
        replace(
            cell,
            params={
                "method.plugin": cell.method,
                "environment.plugin": cell.environment,
                "environment.max_steps": 20,
                "environment.panel": "0123abcd",
            },
        )
        for cell in planned_cells(**shape)  # type: ignore[arg-type]
    ]


def number(task: str) -> int:
    """`webshop-7` is 7."""
    return int(task.rsplit("-", 1)[1])
