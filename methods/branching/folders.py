"""Branch folders as pairing sees them: groups of branches, task contents, the evaluation panel they know."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from harness.errors import UsageError
from methods.branching.collect import read_about
from methods.branching.pairing import MARGINS, Branch, Pair, pairs_of
from methods.branching.splits import Panel, Split, split_of
from methods.branching.tables import read_rows

SMALL = ("environment", "task_id", "group", "action", "canonical", "q", "base")
Content = dict[tuple[str, str], str]  # (environment, task id) to content hash


@dataclass(frozen=True, slots=True)
class Group:
    """The branches of one verified prefix; `view` is empty when it was not asked for."""

    environment: str
    task_id: str
    name: str
    branches: tuple[Branch, ...]
    view: str = ""

    @property
    def split(self) -> Split:
        """Where its task belongs."""
        return split_of(self.environment, self.task_id)


@dataclass(frozen=True)
class Folder:
    """One branch folder and the margin that its environment is paired with."""

    path: Path
    about: Mapping[str, Any]
    margin: float

    def pairs(self, content: Content, views: bool = False) -> Iterator[tuple[Group, list[Pair]]]:
        """Groups of the tasks in `content` with all their pairs, in file order, one in memory."""
        rows = read_rows(self.path / "branches.parquet", [*SMALL, "view"] if views else SMALL)
        for name, members in groupby(rows, key=lambda row: row["group"]):
            held = list(members)
            key = (held[0]["environment"], held[0]["task_id"])
            if key in content:
                branches = tuple(Branch(row["action"], row["canonical"], row["q"], row["base"]) for row in held)
                group = Group(*key, name, branches, held[0].get("view", ""))
                yield group, pairs_of(name, branches, self.margin)

    def critic_rows(self) -> Iterator[dict[str, Any]]:
        """Every base step (depth 0) and every branch continuation (depth 1), with its outcome and steps to go."""
        for row in read_rows(self.path / "steps.parquet"):
            yield row | {"depth": 0}
        for row in read_rows(self.path / "branches.parquet"):
            for outcome, length in zip(row["returns"], row["lengths"], strict=True):
                yield row | {"outcome": outcome, "remaining": length - 1, "depth": 1}


def open_folder(path: Path, margins: Mapping[str, float], ab_only: bool) -> Folder:
    """A branch folder. Raises `UsageError` when it is none, or its margin is negative."""
    about = read_about(path)
    margin = 0.0 if ab_only else margins.get(about["environment"], MARGINS.get(about["metric"], 0.0))
    if margin < 0:
        raise UsageError(f"The margin of {about['environment']} is {margin}; it must be 0 or more.")
    return Folder(path, about, margin)


def join_panels(folders: Sequence[Folder], given: Mapping[str, Panel]) -> dict[str, Panel]:
    """Evaluation panels by environment: those given, and those that the branch folders know."""
    merged = dict(given)
    for folder in folders:
        name, own = folder.about["environment"], folder.about["panel"]
        other = merged.get(name, Panel())
        merged[name] = Panel(other.ids.union(own["ids"]), other.fingerprints.union(own["fingerprints"]))
    return merged


def contents(folders: Sequence[Folder]) -> tuple[Content, dict[str, int]]:
    """Content hash of each task, and how many tasks were left out because another id in another split has theirs.

    Raises:
        UsageError: one task has two contents.
    """
    found: Content = {}
    for folder in folders:
        for row in read_rows(folder.path / "steps.parquet", ("environment", "task_id", "fingerprint")):
            known = found.setdefault((row["environment"], row["task_id"]), row["fingerprint"])
            if known != row["fingerprint"]:
                raise UsageError(
                    f"Task {row['task_id']!r} of {row['environment']} has two contents in these folders: the data "
                    "behind the environment changed between collections. Make pairs from one of them."
                )
    owner: dict[tuple[str, str], Split] = {}
    left_out: Counter[str] = Counter()
    for environment, task_id in sorted(found):
        split = split_of(environment, task_id)
        if owner.setdefault((environment, found[environment, task_id]), split) != split:
            del found[environment, task_id]
            left_out[environment] += 1
    return found, dict(left_out)


def group_actions(folder: Path) -> dict[str, list[str]]:
    """Action texts of each prefix group of a branch folder."""
    found: dict[str, list[str]] = {}
    for row in read_rows(folder / "branches.parquet", ("group", "action")):
        found.setdefault(row["group"], []).append(row["action"])
    return found
