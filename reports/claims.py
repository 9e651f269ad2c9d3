"""Claims: the sentences that a main table carries, computed the same way from published numbers and from ours.

The paper says of table 1: COTA costs 1.38 times the actor's time on average, stays under 1.5 in seven of nine settings,
and is best in nine of nine (sections 4.2 and 4.3).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from reports.names import METHODS
from reports.performance import Performance
from reports.published import published

LIMIT: Final = 1.5


@dataclass(frozen=True, slots=True)
class Setting:
    """One method with one actor in one environment; None is unknown."""

    actor: str
    environment: str
    method: str
    performance: float | None
    avg_t: float | None


@dataclass(frozen=True, slots=True)
class Claims:
    """What a main table says of one method.

    Attributes:
        settings: Settings (actor and environment) in which the method has a performance.
        mean_avg_t: Mean Avg. T over the settings that have one; None when there is none.
        timed: Settings with an Avg. T.
        under: Settings with an Avg. T below 1.5.
        compared: Settings in which every other method of the table has a performance too.
        best: Those of them in which no other method reaches it.
    """

    settings: int
    mean_avg_t: float | None
    timed: int
    under: int
    compared: int
    best: int


def claims(settings: Iterable[Setting], method: str) -> Claims:
    """The claims of a table about one method, by its name in `settings`."""
    by_place: dict[tuple[str, str], dict[str, Setting]] = {}
    for item in settings:
        by_place.setdefault((item.actor, item.environment), {})[item.method] = item
    ours = [place[method] for place in by_place.values() if method in place]
    times = [item.avg_t for item in ours if item.avg_t is not None]
    compared = best = 0
    for place in by_place.values():
        others = [item.performance for name, item in place.items() if name != method]
        mine = place[method].performance if method in place else None
        if mine is None or not others or None in others:
            continue
        compared += 1
        best += all(mine > other for other in others if other is not None)
    return Claims(
        settings=sum(item.performance is not None for item in ours),
        mean_avg_t=sum(times) / len(times) if times else None,
        timed=len(times),
        under=sum(value < LIMIT for value in times),
        compared=compared,
        best=best,
    )


def paper_settings() -> list[Setting]:
    """Table 1 as published."""
    return [
        Setting(row["actor"], row["environment"], row["method"], float(row["performance"]), float(row["avg_t"]))
        for row in published("table1")
    ]


def our_settings(found: Sequence[Performance]) -> list[Setting]:
    """Table 1 as measured here, methods by the paper's names where they are its methods."""
    return [
        Setting(
            item.actor, item.environment, METHODS.get(item.plugin, item.method), item.scored.value, item.avg_t.value
        )
        for item in found
        if not item.skipped
    ]
