"""Contrasts: which methods are compared with which, on the same tasks and seeds.

Each method against Origin, and within the 2x2 of {absolute Q, pairwise} x {forced, constructive} (paper section 4.4)
the four simple contrasts and their interaction.  Only pairs scored on both sides count; others are counted beside.
Holm's correction runs over all contrasts of a study at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from reports.frames import Group, Tracked, groups
from reports.names import TWO_BY_TWO
from reports.paired import Paired, compare, holm
from reports.performance import baseline_of, generator
from reports.stats import EMPTY, Estimate, mean_by_task

Scores = Mapping[tuple[str, int], float]
SIMPLE: Final = (
    ("cota", "pairwise-forced"),
    ("absq-constructive", "agentprm"),
    ("cota", "absq-constructive"),
    ("pairwise-forced", "agentprm"),
)


@dataclass(frozen=True)
class Contrast:
    """One comparison.

    Attributes:
        ours, base: Labels of the methods; the interaction names both sides in full.
        kind: `origin` (against the baseline) or `2x2`.
        result: Over pairs scored on both sides.
        adjusted: The p-value after Holm's correction over the study.
        zeros: The difference with errors counted as 0, over pairs that both have an end; same when nothing broke.
        planned: Pairs in the plan.
        simulated: Simulated parts of either side.
    """

    actor: str
    environment: str
    metric: str
    ours: str
    base: str
    kind: str
    result: Paired
    adjusted: float | None
    zeros: Estimate
    planned: int
    simulated: tuple[str, ...]

    @property
    def incomplete(self) -> bool:
        """Fewer pairs than planned."""
        return self.result.difference.n < self.planned

    @property
    def conventions_differ(self) -> bool:
        """Leaving errors out and counting them as 0 give different differences."""
        return self.zeros.value != self.result.difference.value


def contrasts(source: Tracked) -> list[Contrast]:
    """All contrasts of a study: by environment and actor in the order of its plan."""
    if "contrasts" not in source.memo:
        found = list(_all(source))
        adjusted = holm([item.result.p for item in found])
        source.memo["contrasts"] = [replace(item, adjusted=p) for item, p in zip(found, adjusted, strict=True)]
    kept: list[Contrast] = source.memo["contrasts"]
    return kept


def _all(source: Tracked) -> Iterator[Contrast]:
    places: dict[tuple[str, str], list[Group]] = {}
    for group in groups(source):
        if not group.skipped:
            places.setdefault((group.environment, group.actor), []).append(group)
    for here in places.values():
        base = baseline_of(group.method for group in here)
        for group in here:
            if base is not None and group.method != base:
                yield _contrast(source, group, next(g for g in here if g.method == base), "origin")
        yield from _two_by_two(source, here)


def _two_by_two(source: Tracked, here: Sequence[Group]) -> Iterator[Contrast]:
    known = {plugin: group for plugin in TWO_BY_TWO if (group := only(here, plugin)) is not None}
    for ours, base in SIMPLE:
        if ours in known and base in known:
            yield _contrast(source, known[ours], known[base], "2x2")
    if len(known) == len(TWO_BY_TWO):
        yield _interaction(source, known)


def only(here: Sequence[Group], plugin: str) -> Group | None:
    """The group of a plugin: the one labelled like it, or the single one there is; None for none or several."""
    found = [group for group in here if group.plugin == plugin]
    named = [group for group in found if group.method.lower() == plugin]
    chosen = named or found
    return chosen[0] if len(chosen) == 1 else None


def _contrast(source: Tracked, ours: Group, base: Group, kind: str) -> Contrast:
    labels = (ours.method, base.method, ours.actor, ours.environment)
    first, second = ours.scores(), base.scores()
    pairs = sorted(first.keys() & second.keys())
    result = compare(
        [first[pair] for pair in pairs],
        [second[pair] for pair in pairs],
        [task for task, _ in pairs],
        generator(source.study, *labels, "paired"),
    )
    return Contrast(
        actor=ours.actor,
        environment=ours.environment,
        metric=ours.metric,
        ours=ours.method,
        base=base.method,
        kind=kind,
        result=result,
        adjusted=None,
        zeros=_with_zeros(source, ours, base) if ours.of("error") or base.of("error") else result.difference,
        planned=len(_planned(ours) & _planned(base)),
        simulated=tuple(sorted({*ours.simulated, *base.simulated})),
    )


def _with_zeros(source: Tracked, ours: Group, base: Group) -> Estimate:
    first, second = _zeros(ours), _zeros(base)
    pairs = sorted(first.keys() & second.keys())
    if not pairs:
        return EMPTY
    rng = generator(source.study, ours.method, base.method, ours.actor, ours.environment, "paired zeros")
    return mean_by_task([first[p] - second[p] for p in pairs], [task for task, _ in pairs], rng)


def _zeros(group: Group) -> dict[tuple[str, int], float]:
    errors = {(str(row["task_id"]), int(row["seed"] or 0)): 0.0 for row in group.of("error")}
    return errors | group.scores()


def _planned(group: Group) -> set[tuple[str, int]]:
    return {(task, cell.seed) for cell in group.cells if not cell.skipped for task in cell.tasks}


def _interaction(source: Tracked, known: Mapping[str, Group]) -> Contrast:
    """How much more constructive advice is worth with pairwise judgement than with absolute Q."""
    cota, forced, absq, prm = (known[name] for name in ("cota", "pairwise-forced", "absq-constructive", "agentprm"))
    parts = [group.scores() for group in (cota, forced, absq, prm)]
    pairs = sorted(set.intersection(*(set(part) for part in parts)))
    values = [[part[pair] for pair in pairs] for part in parts]
    first = [a - b for a, b in zip(values[0], values[1], strict=True)]
    second = [a - b for a, b in zip(values[2], values[3], strict=True)]
    rng = generator(source.study, cota.actor, cota.environment, "interaction")
    result = compare(first, second, [task for task, _ in pairs], rng)
    return Contrast(
        actor=cota.actor,
        environment=cota.environment,
        metric=cota.metric,
        ours=f"{cota.method} − {forced.method}",
        base=f"{absq.method} − {prm.method}",
        kind="2x2",
        result=result,
        adjusted=None,
        zeros=result.difference,
        planned=len(set.intersection(*(_planned(group) for group in known.values()))),
        simulated=tuple(sorted({part for group in known.values() for part in group.simulated})),
    )
