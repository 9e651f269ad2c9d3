"""Performance and Avg. T of one group, under both conventions for errors: the numbers behind Table 1 and the summary.

Randomness of an interval depends on the study and the labels alone, so the same episodes give the same interval from
either source, in any order, and adding a method changes no other number.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from harness.rows import Row
from harness.seeds import seed_of
from reports.frames import Group, groups, score
from reports.frames import Tracked as Source
from reports.stats import EMPTY, Estimate, mean_by_task, paired_ratio, success_rate

BASELINE: Final = "origin"


@dataclass(frozen=True)
class Performance:
    """One method, actor and environment.

    Attributes:
        scored: Performance over scored episodes; errors left out.
        zeros: Performance with every error counted as 0.
        avg_t: Time against the paired baseline, or `EMPTY` when there is none.
        planned: Episodes in the plan.
        missing: Planned, but without a row (or skipped).
        errors: Failed, timed out or unparsed episodes.
        unscored: Ended, but cannot be scored here.
        simulated: Simulated parts.
        skipped: Why nothing of it was run, or empty.
        plugin: What the method is, whatever its label.
    """

    method: str
    actor: str
    environment: str
    metric: str
    scored: Estimate
    zeros: Estimate
    avg_t: Estimate
    planned: int
    missing: int
    errors: int
    unscored: int
    simulated: tuple[str, ...]
    skipped: str
    plugin: str = ""

    @property
    def incomplete(self) -> bool:
        """The mean does not stand for all that was planned."""
        return not self.skipped and (self.missing > 0 or self.errors > 0)

    @property
    def conventions_differ(self) -> bool:
        """Leaving errors out and counting them as 0 give different numbers."""
        return self.errors > 0 and self.scored.value != self.zeros.value


def measure(source: Source, baseline: str | None = None) -> list[Performance]:
    """Every group of a study, in the order of its plan.

    Args:
        source: What was tracked.
        baseline: Label of the method that Avg. T divides by; the one called Origin by default.
    """
    key = ("performance", baseline)
    if key not in source.memo:
        source.memo[key] = _measure(source, baseline)
    kept: list[Performance] = source.memo[key]
    return kept


def _measure(source: Source, baseline: str | None) -> list[Performance]:
    found = groups(source)
    base = baseline or baseline_of(group.method for group in found)
    by_key = {(group.method, group.actor, group.environment): group for group in found}
    return [
        _performance(source.study, group, by_key.get((base, group.actor, group.environment)) if base else None)
        for group in found
    ]


def baseline_of(methods: object) -> str | None:
    """The label that means Origin, if any."""
    return next((str(name) for name in methods if str(name).lower() == BASELINE), None)  # type: ignore[attr-defined]


def generator(study: str, *labels: str) -> np.random.Generator:
    """The generator of one number, named by what it is for."""
    return np.random.default_rng(seed_of(study=study, **{f"label{i}": label for i, label in enumerate(labels)}))


def _performance(study: str, group: Group, base: Group | None) -> Performance:
    labels = group.key
    scored = _estimate(group.of("scored"), (), group.metric, generator(study, *labels, "scored"))
    errors = group.of("error")
    # Without errors both conventions are the same sample, and get the same interval.
    zeros = (
        _estimate(group.of("scored"), errors, group.metric, generator(study, *labels, "zeros")) if errors else scored
    )
    return Performance(
        method=group.method,
        actor=group.actor,
        environment=group.environment,
        metric=group.metric,
        scored=scored,
        zeros=zeros,
        avg_t=average_t(group, base, generator(study, *labels, "avg_t")) if base else EMPTY,
        planned=group.planned,
        missing=group.missing,
        errors=len(errors),
        unscored=len(group.of("unscored")),
        simulated=group.simulated,
        skipped=group.skipped,
        plugin=group.plugin,
    )


def _estimate(scored: Sequence[Row], zeros: Sequence[Row], metric: str, rng: np.random.Generator) -> Estimate:
    values = [score(row, metric) for row in scored] + [0.0] * len(zeros)
    tasks = [str(row["task_id"]) for row in (*scored, *zeros)]
    return success_rate(values, tasks) if metric == "success_rate" else mean_by_task(values, tasks, rng)


def average_t(group: Group, base: Group, rng: np.random.Generator) -> Estimate:
    """The paper's Avg. T: summed working seconds of the group over those of the paired baseline episodes.

    A pair is the same actor, environment, task and seed. Only episodes that ended (done, or at the step limit) have a
    time worth comparing; `work_s` leaves out what an episode waited in queues.
    """
    if group is base:
        count = len(_times(group))
        tasks = len({task for task, _ in _times(group)})
        return Estimate(1.0, None, None, count, tasks) if count else EMPTY
    ours, theirs = _times(group), _times(base)
    pairs = sorted(ours.keys() & theirs.keys())
    return paired_ratio([ours[p] for p in pairs], [theirs[p] for p in pairs], [task for task, _ in pairs], rng)


def _times(group: Group) -> Mapping[tuple[str, int], float]:
    ended = (row for row in group.rows if row["outcome"] in ("scored", "unscored"))
    return {(str(row["task_id"]), int(row["seed"] or 0)): float(row["work_s"] or 0.0) for row in ended}
