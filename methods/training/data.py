"""Data: pairs and critic records as `cota-bench pairs` writes them, grouped by the view they share.

All questions about one view are one group, because training, like scoring, runs a view once for all of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.errors import UsageError
from harness.seeds import digest
from methods.branching.tables import read_rows

SPLITS = ("train", "validation", "test")
PAIR_COLUMNS = ("environment", "task_id", "split", "view", "first", "second", "label", "pair_id", "order")
CRITIC_COLUMNS = ("environment", "task_id", "split", "view", "action", "outcome", "remaining")
GAMMA = 0.95  # paper appendix B.7
Rows = Sequence[Mapping[str, Any]]
Source = Path | Rows


@dataclass(frozen=True, slots=True)
class Pair:
    """An ordered pair and its label; `pair_id` is the same for both orders."""

    first: str
    second: str
    label: str
    pair_id: str


@dataclass(frozen=True, slots=True)
class Target:
    """An action and its target value in [0, 1]."""

    action: str
    value: float


@dataclass(frozen=True, slots=True)
class Group:
    """A view with the questions about it: `Pair`s or `Target`s."""

    environment: str
    task_id: str
    view: str
    items: tuple[Any, ...]


def pair_rows(source: Source, split: str, environments: Sequence[str] | None = None) -> Rows:
    """Rows of one split, from a folder with `{split}.parquet` or from rows in memory."""
    return _rows(source, split, f"{split}.parquet", PAIR_COLUMNS, environments)


def critic_rows(source: Source, split: str, environments: Sequence[str] | None = None) -> Rows:
    """Critic records of one split, from `critic-{split}.parquet` or from rows in memory."""
    return _rows(source, split, f"critic-{split}.parquet", CRITIC_COLUMNS, environments)


def _rows(source: Source, split: str, file: str, columns: Sequence[str], environments: Sequence[str] | None) -> Rows:
    if isinstance(source, Path):
        path = source / file
        if not path.exists():
            raise UsageError(f"{source} holds no {file}. Make pairs with `cota-bench pairs`, or name another folder.")
        rows: Iterable[Mapping[str, Any]] = read_rows(path, columns)
    else:
        rows = (row for row in source if row["split"] == split)
    return [row for row in rows if environments is None or row["environment"] in environments]


def group_pairs(rows: Rows) -> list[Group]:
    """Pairs by view, in order of first appearance."""
    return _grouped(rows, lambda r: Pair(r["first"], r["second"], r["label"], str(r["pair_id"])))


def group_targets(rows: Rows, gamma: float = GAMMA) -> list[Group]:
    """Actions with their targets by view, duplicates averaged.

    A terminal outcome in [0, 1] is mapped to [-1, 1], discounted by gamma to the power of the remaining steps, averaged
    over duplicates of (view, action), and mapped back (paper appendix B.7): far-off outcomes go towards 0.5.
    """
    values: dict[tuple[str, str], list[float]] = {}
    for row in rows:
        value = (2.0 * float(row["outcome"]) - 1.0) * gamma ** int(row["remaining"])
        values.setdefault((row["view"], row["action"]), []).append(value)
    seen: set[tuple[str, str]] = set()
    once = []
    for row in rows:
        key = (row["view"], row["action"])
        if key not in seen:
            seen.add(key)
            once.append(row)

    def target(row: Mapping[str, Any]) -> Target:
        found = values[row["view"], row["action"]]
        return Target(row["action"], (sum(found) / len(found) + 1.0) / 2.0)

    return _grouped(once, target)


def _grouped(rows: Rows, item: Any) -> list[Group]:
    held: dict[tuple[str, str, str], list[Any]] = {}
    for row in rows:
        held.setdefault((row["environment"], row["task_id"], row["view"]), []).append(item(row))
    return [Group(*key, tuple(items)) for key, items in held.items()]


def data_hash(rows: Rows, columns: Sequence[str]) -> str:
    """Hash over the columns that training reads."""
    return digest([[row[column] for column in columns] for row in rows])


def describe_pairs(rows: Rows) -> dict[str, Any]:
    """Counts for the data card."""
    labels = Counter((row["environment"], row["label"]) for row in rows)
    return _described(rows) | {"labels": {f"{e}/{label}": n for (e, label), n in sorted(labels.items())}}


def describe_targets(rows: Rows) -> dict[str, Any]:
    """Counts for the data card."""
    mean = sum(float(row["outcome"]) for row in rows) / len(rows) if rows else None
    return _described(rows) | {"mean_outcome": mean}


def _described(rows: Rows) -> dict[str, Any]:
    environments = Counter(row["environment"] for row in rows)
    return {
        "rows": len(rows),
        "views": len({row["view"] for row in rows}),
        "tasks": len({(row["environment"], row["task_id"]) for row in rows}),
        "environments": dict(sorted(environments.items())),
    }
