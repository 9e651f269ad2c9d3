"""Frames: tracked studies as tidy pandas frames, one row an episode, identical from a ledger and from MLflow.

`open_source` takes a results folder or a tracking URI and gives the same `Tracked`; everything else in this package
works on that.  Missing values are pandas' NA of a nullable type, never NaN in the place of an integer.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness import ledger
from harness.codec import parse, to_json
from harness.errors import UsageError
from harness.rows import Row, Scalar
from harness.tracking.plan import PlannedCell
from harness.tracking.read import from_mlflow, studies
from harness.tracking.tracked import Tracked, from_ledger
from reports.names import method_plugin

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Group", "Key", "Tracked", "episodes", "folder_of", "groups", "open_source", "records", "score"]

Key = tuple[str, str]  # cell, task id


def open_source(where: str | Path, study: str | None = None) -> Tracked:
    """A study from a results folder, or from a tracking store.

    Args:
        where: `results/<study>`, or an MLflow tracking URI (``http://...``, ``sqlite:///...``).
        study: Its name in the store; may be left out when the store holds one study only.

    Raises:
        UsageError: nothing there, no such study, duplicates, or a store that does not answer.
    """
    text = str(where)
    if isinstance(where, Path) or ("://" not in text and text != "databricks"):
        source = from_ledger(Path(where))
        source.memo["folder"] = Path(where)
        return source
    if study is None:
        found = studies(text)
        if len(found) != 1:
            raise UsageError(f"Which study? The store holds: {', '.join(found) or 'none'}. Name one.")
        study = found[0]
    return from_mlflow(text, study)


def folder_of(source: Tracked) -> Path | None:
    """The results folder that a study was read from, or None when it came from a tracking store."""
    folder = source.memo.get("folder")
    return folder if isinstance(folder, Path) else None


def records(source: Tracked, keys: Collection[Key]) -> Iterator[Mapping[str, Any]]:
    """Some episodes as `harness.codec` writes them; from a ledger without touching the others."""
    folder = folder_of(source)
    if not keys:
        return
    if folder is None:
        for episode in source.records():
            if (episode.cell, episode.task_id) in keys:
                yield to_json(episode)
        return
    found = ledger.read(folder)
    last = {(frame.head["cell"], frame.head["task_id"]): frame for frame in found.frames}
    for key in sorted(last.keys() & set(keys), key=lambda key: last[key].offset):
        record: Mapping[str, Any] = parse(found.text(last[key]))
        yield record


def episodes(source: Tracked) -> pd.DataFrame:
    """One row an episode, columns of `harness.rows.FIELDS`, nullable types, sorted by plan and task."""
    import pandas as pd
    import pyarrow as pa

    kinds = {
        pa.string(): pd.StringDtype(),
        pa.int64(): pd.Int64Dtype(),
        pa.float64(): pd.Float64Dtype(),
        pa.bool_(): pd.BooleanDtype(),
    }
    frame: pd.DataFrame = source.table.to_pandas(types_mapper=kinds.get)
    return frame


class Group:
    """All cells of one method, actor and environment (every seed), with their rows."""

    def __init__(self, method: str, actor: str, environment: str, cells: Sequence[PlannedCell]) -> None:
        self.method, self.actor, self.environment = method, actor, environment
        self.cells = tuple(cells)
        self.rows: list[Row] = []
        self._outcomes: dict[str, list[Row]] = {}
        self._scores: dict[tuple[str, int], float] | None = None

    @property
    def metric(self) -> str:
        """`mean_reward` or `success_rate`."""
        return self.cells[0].metric

    @property
    def plugin(self) -> str:
        """The method's plugin: what it is, whatever it is called."""
        return method_plugin(self.cells[0])

    @property
    def key(self) -> tuple[str, str, str]:
        """(method, actor, environment)."""
        return self.method, self.actor, self.environment

    def param(self, name: str) -> Scalar:
        """A parameter of the plan such as ``method.params.k``, or None when it is not known."""
        return self.cells[0].params.get(name)

    def scores(self) -> dict[tuple[str, int], float]:
        """(task, seed) to score, of scored episodes."""
        if self._scores is None:
            self._scores = {
                (str(row["task_id"]), int(row["seed"] or 0)): score(row, self.metric) for row in self.of("scored")
            }
        return self._scores

    @property
    def planned(self) -> int:
        """Planned episodes, without those of cells that the study skips."""
        return sum(len(cell.tasks) for cell in self.cells if not cell.skipped)

    @property
    def skipped(self) -> str:
        """Why nothing of this group is run, or empty."""
        reasons = {cell.skipped for cell in self.cells}
        return ", ".join(sorted(reasons)) if all(reasons) else ""

    def of(self, outcome: str) -> list[Row]:
        """Rows of one outcome: scored, unscored, error, skipped. All rows must be in."""
        if not self._outcomes:
            for row in self.rows:
                self._outcomes.setdefault(str(row["outcome"]), []).append(row)
        return self._outcomes.get(outcome, [])

    @property
    def missing(self) -> int:
        """Planned episodes that have no row, or one that says skipped."""
        return max(0, self.planned - len(self.rows) + len(self.of("skipped")))

    @property
    def incomplete(self) -> bool:
        """A mean over its scored episodes does not stand for all that was planned."""
        return not self.skipped and (self.missing > 0 or bool(self.of("error")))

    @property
    def simulated(self) -> tuple[str, ...]:
        """Simulated parts, sorted."""
        return tuple(sorted({part for row in self.rows for part in str(row["simulated"] or "").split(",") if part}))


def groups(source: Tracked) -> list[Group]:
    """Groups in the order of the plan, each row in its group."""
    if "groups" not in source.memo:
        source.memo["groups"] = _groups(source)
    kept: list[Group] = source.memo["groups"]
    return kept


def _groups(source: Tracked) -> list[Group]:
    found: dict[tuple[str, str, str], list[PlannedCell]] = {}
    for cell in source.cells:
        found.setdefault((cell.method, cell.actor, cell.environment), []).append(cell)
    made = {key: Group(*key, cells) for key, cells in found.items()}
    home = {cell.key: (cell.method, cell.actor, cell.environment) for cell in source.cells}
    for row in source.rows:
        made[home[str(row["cell"])]].rows.append(row)
    return list(made.values())


def score(row: Row, metric: str) -> float:
    """The number that performance averages: the reward, or 1 for a success. Raises ValueError for an unscored row.

    A score outside [0, 1] is refused: some environment broke its contract, and no mean should hide that.
    """
    value = row["reward"] if metric == "mean_reward" else row["success"]
    if value is None:
        raise ValueError(f"task {row['task_id']!r} of cell {row['cell']} has no score")
    number = float(value)
    if not 0.0 <= number <= 1.0:
        raise UsageError(
            f"Task {row['task_id']!r} of cell {row['cell']} ({row['environment']}) has a reward of {number}, outside "
            "[0, 1]. The environment plugin is at fault; correct it and run these episodes again."
        )
    return number
