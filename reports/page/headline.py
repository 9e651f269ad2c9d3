"""Headline: the few numbers that a reader wants first, each with what it stands for."""

from __future__ import annotations

from collections.abc import Sequence

from reports.frames import Tracked
from reports.performance import Performance, baseline_of
from reports.table import DASH, number

Tile = tuple[str, str, str]  # name, number, what stands behind it


def headline(source: Tracked, found: Sequence[Performance]) -> list[Tile]:
    """Tiles: episodes, errors, and for each method how often it leads and its time against the baseline."""
    planned = sum(item.planned for item in found)
    recorded = sum(row["outcome"] != "skipped" for row in source.rows)
    errors = sum(item.errors for item in found)
    unscored = sum(item.unscored for item in found)
    tiles: list[Tile] = [
        ("episodes", f"{recorded:,} of {planned:,}", f"{len(source.cells)} cells" + _and(unscored, "not scored here")),
        ("errors", f"{errors:,}", "failed, timed out or unparsed; left out of the means"),
    ]
    methods = list(dict.fromkeys(item.method for item in found))
    base = baseline_of(methods)
    leads, places = _leads(found)
    for method in methods:
        times = [i.avg_t.value for i in found if i.method == method and i.avg_t.value is not None]
        mean = sum(times) / len(times) if times else None
        said = "the baseline of Avg. T" if method == base else f"Avg. T {number(mean, 2)}, mean over {len(times)}"
        tiles.append((method, f"{leads.get(method, 0)} of {places}" if places else DASH, f"best or tied; {said}"))
    return tiles


def _and(count: int, what: str) -> str:
    return f", {count:,} {what}" if count else ""


def _leads(found: Sequence[Performance]) -> tuple[dict[str, int], int]:
    """How often each method has the highest mean of an actor and environment, ties counting for each."""
    groups: dict[tuple[str, str], list[Performance]] = {}
    for item in found:
        if item.scored.value is not None:
            groups.setdefault((item.actor, item.environment), []).append(item)
    compared = [items for items in groups.values() if len(items) > 1]
    leads: dict[str, int] = {}
    for items in compared:
        best = max(item.scored.value or 0.0 for item in items)
        for item in items:
            leads[item.method] = leads.get(item.method, 0) + (item.scored.value == best)
    return leads, len(compared)
