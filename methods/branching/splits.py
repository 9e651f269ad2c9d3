"""Splits: tasks, never pairs, go to train, validation or test, and no task is ever on two sides.

A task's split is a function of its name alone (hashed with a salt), so collecting more tasks never moves one that was
there before.  `check_leaks` runs on what was written, not on what was meant.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, get_args

from harness.errors import UsageError
from harness.seeds import seed_of

Split = Literal["train", "validation", "test"]
SPLITS: tuple[Split, ...] = get_args(Split)
FRACTIONS: Mapping[Split, float] = {"train": 0.8, "validation": 0.1, "test": 0.1}  # paper table 4: 79.5 / 10 / 10.4


class LeakError(UsageError):
    """A task is where it must not be; nothing was written that could be trained on."""


@dataclass(frozen=True, slots=True)
class Panel:
    """Tasks kept for evaluation: their ids, and their content hashes for tasks that hide behind another id."""

    ids: frozenset[str] = frozenset()
    fingerprints: frozenset[str] = frozenset()


def split_of(environment: str, task_id: str, salt: int = 0) -> Split:
    """The split of a task: the same whatever other tasks there are."""
    place = seed_of(consumer="split", environment=environment, task=task_id, salt=salt) / 2**63
    for split in SPLITS[:-1]:
        if place < FRACTIONS[split]:
            return split
        place -= FRACTIONS[split]
    return SPLITS[-1]


def check_leaks(rows: Iterable[tuple[str, str, str, str]], panels: Mapping[str, Panel]) -> None:
    """Raises `LeakError` when a task is in two splits or in the evaluation panel.

    Args:
        rows: (environment, task_id, fingerprint, split) of everything that was written.
        panels: evaluation panel by environment.
    """
    by_task: dict[tuple[str, str], str] = {}
    by_content: dict[tuple[str, str], str] = {}
    for environment, task_id, fingerprint, split in rows:
        for seen, key, word in ((by_task, task_id, "task"), (by_content, fingerprint, "content of task")):
            other = seen.setdefault((environment, key), split)
            if other != split:
                raise LeakError(
                    f"The {word} {task_id!r} of {environment} is in both {other!r} and {split!r}: sibling branches "
                    "would cross a split. Make the pairs again from one branch folder per task set."
                )
        panel = panels.get(environment, Panel())
        if task_id in panel.ids or fingerprint in panel.fingerprints:
            raise LeakError(
                f"Task {task_id!r} of {environment} belongs to the evaluation panel and is in the {split!r} split of "
                "the training data. Collect from the training split only, or take the task out of the panel."
            )


def refuse_panel_tasks(environment: str, tasks: Collection[str], panel: Panel) -> None:
    """Raises `LeakError` before any work when tasks to be collected are evaluation tasks."""
    common = sorted(panel.ids.intersection(tasks))
    if common:
        shown = ", ".join(common[:5]) + (" ..." if len(common) > 5 else "")
        raise LeakError(
            f"{len(common)} of the {len(tasks)} {environment} tasks to branch belong to the evaluation panel: {shown}. "
            "Choose the training split (`split: train`)."
        )
