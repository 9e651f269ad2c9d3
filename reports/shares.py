"""Shares: ratios of counts over the episodes of a group, with intervals over tasks (firings, adopt, keep, novel)."""

from __future__ import annotations

from collections.abc import Sequence

from harness.rows import Row
from reports.frames import Group, Tracked
from reports.performance import generator
from reports.stats import EMPTY, Estimate, paired_ratio


def share(source: Tracked, group: Group, top: str, bottom: str) -> Estimate:
    """Sum of column `top` over sum of column `bottom`, every recorded episode of the group counting.

    `n` is the number of episodes, not of reviews; tasks are resampled. Empty when a count is unknown or there is none.
    """
    key = ("share", group.key, top, bottom)
    if key not in source.memo:
        rng = generator(source.study, *group.key, top, bottom)
        tops, bottoms = column(group.rows, top), column(group.rows, bottom)
        tasks = [str(row["task_id"]) for row in group.rows]
        source.memo[key] = EMPTY if tops is None or bottoms is None else paired_ratio(tops, bottoms, tasks, rng)
    found: Estimate = source.memo[key]
    return found


def column(rows: Sequence[Row], name: str) -> list[float] | None:
    """A column as numbers; None when any value is unknown."""
    values = [row[name] for row in rows]
    return None if any(value is None for value in values) else [float(value or 0) for value in values]
