"""Captions: sentences generated from the data, so that no table can claim what its numbers do not hold."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

from harness.tracking.plan import PlannedCell
from reports.frames import Group, Tracked, groups
from reports.performance import Performance
from reports.table import INCOMPLETE, number

SHOWN: Final = 12
SIMULATED: Final = "SIMULATED: "
NO_TROUBLE: Final = frozenset({"tie", "inconsistent", "replan_limit", "candidates:none"})
AVG_T: Final = (
    "Avg. T is the summed working time of the method's episodes over that of the paired baseline episodes (same actor, "
    "environment, task and seed; wall time less what was waited in queues)."
)


def sample_size(found: Sequence[Performance]) -> str:
    """How many episodes stand behind each number."""
    counts = sorted({item.scored.n for item in found if not item.skipped})
    tasks = sorted({item.scored.clusters for item in found if not item.skipped})
    n = f"n = {counts[0]}" if len(counts) == 1 else f"n = {counts[0]} to {counts[-1]}" if counts else "n = 0"
    t = "" if tasks == counts or not tasks else f" on {span(tasks)} tasks"
    return f"{n} scored episodes a cell{t}."


def span(values: Sequence[int]) -> str:
    """`20`, or `17 to 20`."""
    return str(values[0]) if len(values) == 1 else f"{values[0]} to {values[-1]}"


def interval(found: Sequence[Performance], *, timed: bool = True) -> str:
    """Which interval is in brackets; `timed` when the table has an Avg. T."""
    kinds = {item.metric for item in found}
    parts = []
    if "mean_reward" in kinds:
        parts.append(f"bootstrap over tasks for mean rewards{' and Avg. T' if timed else ''}")
    if "success_rate" in kinds:
        parts.append("Wilson with the effective n under clustering by task for success rates")
    if kinds == {"success_rate"} and timed:
        parts.append("bootstrap over tasks for Avg. T")
    return f"Brackets: 95% interval ({'; '.join(parts)}); none where fewer than two tasks are scored."


def convention(found: Sequence[Performance]) -> str:
    """How errors count here."""
    errors = sum(item.errors for item in found)
    if not errors:
        return "No episode broke."
    return f"{errors} episodes broke (failed, timed out or unparsed) and are left out of the means."


def simulated(parts: Iterable[str]) -> str:
    """What is simulated, said plainly; empty when nothing is."""
    names = sorted(set(parts))
    if not names:
        return ""
    what = ", ".join(names)
    more = " The actor is a script with a stated competence, not a language model." if "actor" in names else ""
    return f"{SIMULATED}{what}.{more} These numbers are not comparable with published ones."


def simulated_in(source: Tracked) -> list[str]:
    """The warning of a whole study, as a list that is empty when nothing in it is simulated."""
    text = simulated(_simulated_parts(source))
    return [text] if text else []


def simulated_short(source: Tracked) -> str:
    """The same for a figure's title, since a picture travels without its caption: ` (simulated: actor, user)`."""
    parts = sorted(_simulated_parts(source))
    return f" (simulated: {', '.join(parts)})" if parts else ""


def _simulated_parts(source: Tracked) -> set[str]:
    if "simulated" not in source.memo:
        source.memo["simulated"] = {p for row in source.rows for p in str(row["simulated"] or "").split(",") if p}
    found: set[str] = source.memo["simulated"]
    return found


def marks(found: Sequence[Performance]) -> list[str]:
    """What the mark on an incomplete mean stands for."""
    if not any(item.incomplete for item in found):
        return []
    return [f"{INCOMPLETE} Incomplete: the mean covers the n of the planned episodes shown in parentheses."]


def other_convention(found: Sequence[Performance]) -> list[str]:
    """The second convention wherever it gives another number."""
    parts = [
        f"{name(item)} {shown(item, zero=True)} (n = {item.zeros.n}; {item.errors} errors)"
        for item in found
        if item.conventions_differ
    ]
    return [f"With errors counted as 0 instead of left out: {listed(parts)}."] if parts else []


def unscored(found: Sequence[Performance]) -> list[str]:
    """Episodes that ended and cannot be scored here, reported apart from the means."""
    parts = [f"{name(item)} {item.unscored}" for item in found if item.unscored]
    if not parts:
        return []
    return [f"Ended but not scored here (their tasks need a judge that is not configured): {listed(parts)}."]


def missing(source: Tracked, found: Sequence[Performance]) -> list[str]:
    """Cells and episodes that were planned and are not there, with reasons for what was skipped."""
    notes = []
    recorded: dict[str, int] = {}
    for row in source.rows:
        recorded[str(row["cell"])] = recorded.get(str(row["cell"]), 0) + (row["outcome"] != "skipped")
    gaps = [
        f"{label(cell)} ({len(cell.tasks) - recorded.get(cell.key, 0)} of {len(cell.tasks)} episodes)"
        for cell in source.cells
        if not cell.skipped and recorded.get(cell.key, 0) < len(cell.tasks)
    ]
    if gaps:
        notes.append(f"Missing: {listed(gaps)}.")
    reasons = [f"{name(item)}: {item.skipped}" for item in found if item.skipped]
    if reasons:
        notes.append(f"Skipped by the study: {listed(reasons)}.")
    if not source.plan_known:
        notes.append("The plan of this study was not found: what is missing from it cannot be known.")
    if source.left_out:
        notes.append(f"{source.left_out} recorded episodes belong to cells outside the present plan and are left out.")
    return notes


def broken_advisers(source: Tracked) -> list[str]:
    """Methods whose judge, critic or source broke in most reviews: they fail open, and look like the actor alone."""
    parts = [part for group in groups(source) if (part := _broken(group))]
    if not parts:
        return []
    return [f"The adviser broke in most reviews, so that the actor's own proposals stood: {listed(parts)}."]


def _broken(group: Group) -> str:
    reviews, opened = (sum(int(row[name] or 0) for row in group.rows) for name in ("reviews", "fail_opens"))
    causes: Counter[str] = Counter()
    for row in group.rows:
        causes.update(json.loads(str(row["fail_open_causes"] or "{}")))
    trouble = Counter({cause: count for cause, count in causes.items() if cause not in NO_TROUBLE})
    if 2 * opened <= reviews or 2 * trouble.total() <= causes.total():
        return ""
    worst = trouble.most_common(1)[0][0][:60]
    return f"{group.method} x {group.actor} x {group.environment} {opened / reviews:.0%} ({worst})"


def listed(parts: Sequence[str]) -> str:
    """A list that stays readable."""
    rest = f"; and {len(parts) - SHOWN} more" if len(parts) > SHOWN else ""
    return "; ".join(parts[:SHOWN]) + rest


def label(cell: PlannedCell) -> str:
    """A cell in words."""
    return f"{cell.method} x {cell.actor} x {cell.environment} x seed {cell.seed}"


def name(item: Performance) -> str:
    """A group in words."""
    return f"{item.method} x {item.actor} x {item.environment}"


def shown(item: Performance, *, zero: bool = False) -> str:
    """Performance as Table 1 writes it: a mean reward, or a success rate in percent."""
    value = (item.zeros if zero else item.scored).value
    return number(value, 3) if item.metric == "mean_reward" else number(value, 1, 100.0)
