"""Metrics of one cell: a dozen final numbers and a few short curves, each with a written definition.

A convention is part of a metric's name: `reward_mean_scored` leaves errors out, `reward_mean_errors_zero` counts them
as zero.  What is unknown is not logged at all; NaN, infinity and None never reach the store.  The second convention
and the unscored count appear only in cells where they say something.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from harness.rows import ROLES, TOKEN_ROLES, Row
from harness.tracking.plan import PlannedCell

POINTS: Final = 50
Value = float | None

GLOSSARY: Final[Mapping[str, str]] = {
    "reward_mean_scored": "mean reward in [0, 1] over scored episodes; errors and unscored episodes left out",
    "reward_mean_errors_zero": "mean reward over scored episodes and errors, an error counting as 0",
    "success_rate_scored": "share of successes over scored episodes; errors and unscored episodes left out",
    "success_rate_errors_zero": "share of successes over scored episodes and errors, an error counting as a failure",
    "episodes_planned": "tasks of the cell",
    "episodes_scored": "episodes that ended (done or at the step limit) with a score: the n of the means",
    "episodes_unscored": "episodes that ended but cannot be scored here (a judge is missing)",
    "episodes_errors": "episodes that broke: failed, timed out or unparsed",
    "episodes_missing": "planned episodes without a record, or skipped",
    "seconds_per_episode": "mean working time of an ended episode in seconds: wall time less what was waited",
    "steps_per_episode": "mean executed steps of an ended episode",
    "fired_share": "gate firings over reviewed proposals",
    "adopt_share": "replans equal to a recommended action, over replans",
    "keep_share": "replans equal to the original proposal, over replans",
    "novel_share": "replans equal to neither, over replans",
    "fail_open_share": "reviews that failed open, over reviews",
    "actor_tokens": "prompt and completion tokens of the actor, summed; absent when any is unknown",
    "advisor_tokens": "prompt and completion tokens of the advisor, summed; absent when any is unknown",
}
CURVES: Final[Mapping[str, str]] = {
    "curve/reward_mean_scored": "running reward_mean_scored over the tasks in panel order",
    "curve/success_rate_scored": "running success_rate_scored over the tasks in panel order",
    "curve/seconds_per_episode": "running seconds_per_episode over the tasks in panel order",
    "curve/fired_share": "running fired_share over the tasks in panel order",
}


def final_metrics(cell: PlannedCell, rows: Sequence[Row]) -> dict[str, float]:
    """The final metrics of a cell that are known: finite numbers only, names of `GLOSSARY`."""
    scored = [row for row in rows if row["outcome"] == "scored"]
    errors = [row for row in rows if row["outcome"] == "error"]
    ended = [row for row in rows if row["outcome"] in ("scored", "unscored")]
    recorded = len(ended) + len(errors)
    counted = len(scored) + len(errors)
    replans = total(rows, "replans")
    reviews = total(rows, "reviews")
    found: dict[str, Value] = {
        "reward_mean_scored": mean(scored, "reward"),
        "success_rate_scored": mean(scored, "success"),
        "episodes_planned": len(cell.tasks),
        "episodes_scored": len(scored),
        "episodes_errors": len(errors),
        "episodes_missing": 0 if cell.skipped else max(0, len(cell.tasks) - recorded),
        "seconds_per_episode": mean(ended, "work_s"),
        "steps_per_episode": mean(ended, "steps"),
        "fired_share": ratio(total(rows, "fired"), reviews),
        "adopt_share": ratio(total(rows, "adopt"), replans),
        "keep_share": ratio(total(rows, "keep"), replans),
        "novel_share": ratio(total(rows, "novel"), replans),
        "fail_open_share": ratio(total(rows, "fail_opens"), reviews),
        "actor_tokens": tokens(rows, "actor"),
        "advisor_tokens": tokens(rows, "advisor"),
    }
    if errors:
        found["reward_mean_errors_zero"] = ratio(total(scored, "reward"), counted)
        found["success_rate_errors_zero"] = ratio(total(scored, "success"), counted)
    if len(ended) > len(scored):
        found["episodes_unscored"] = len(ended) - len(scored)
    return finite(found)


def curves(cell: PlannedCell, rows: Sequence[Row]) -> dict[str, list[tuple[int, float]]]:
    """At most `POINTS` points a key: (episodes so far, running value), tasks in panel order, the last one exact."""
    place = {task: i for i, task in enumerate(cell.tasks)}
    ordered = sorted(rows, key=lambda row: place.get(str(row["task_id"]), len(place)))
    count = len(ordered)
    marks = sorted({max(1, round(count * (i + 1) / POINTS)) for i in range(POINTS)}) if count else []
    makers: dict[str, Callable[[Sequence[Row]], Value]] = {
        "curve/reward_mean_scored": lambda part: mean(_scored(part), "reward"),
        "curve/success_rate_scored": lambda part: mean(_scored(part), "success"),
        "curve/seconds_per_episode": lambda part: mean(_ended(part), "work_s"),
        "curve/fired_share": lambda part: ratio(total(part, "fired"), total(part, "reviews")),
    }
    found = {}
    for key, make in makers.items():
        points = [(mark, make(ordered[:mark])) for mark in marks]
        kept = [(mark, float(value)) for mark, value in points if value is not None and math.isfinite(value)]
        if kept:
            found[key] = kept
    return found


def finite(values: Mapping[str, Value]) -> dict[str, float]:
    """Only what is known and finite."""
    return {name: float(value) for name, value in values.items() if value is not None and math.isfinite(value)}


def total(rows: Sequence[Row], name: str) -> Value:
    """Sum of a column; None when any value is unknown."""
    values = [row[name] for row in rows]
    if any(value is None for value in values):
        return None
    return math.fsum(float(value) for value in values if value is not None)


def mean(rows: Sequence[Row], name: str) -> Value:
    """Mean of a column; None for no rows or an unknown value."""
    return ratio(total(rows, name), len(rows))


def ratio(top: Value, bottom: Value) -> Value:
    """top / bottom; None when either is unknown or the bottom is zero."""
    return None if top is None or not bottom else top / bottom


def tokens(rows: Sequence[Row], role: str) -> Value:
    """Prompt and completion tokens of a role; None when any is unknown."""
    if role not in TOKEN_ROLES or role not in ROLES:
        raise ValueError(f"no token counts for {role!r}")
    prompt, completion = total(rows, f"{role}_prompt"), total(rows, f"{role}_completion")
    return None if prompt is None or completion is None else prompt + completion


def _scored(rows: Sequence[Row]) -> list[Row]:
    return [row for row in rows if row["outcome"] == "scored"]


def _ended(rows: Sequence[Row]) -> list[Row]:
    return [row for row in rows if row["outcome"] in ("scored", "unscored")]
