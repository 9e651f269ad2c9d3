"""Anatomy of the interventions: when the gate fires, how many candidates win, what the actor answers, what fails open.

All of it comes from the episodes' rows (`harness.rows`), so it is the same from a ledger and from MLflow.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from markupsafe import Markup

from harness.rows import Row
from reports.frames import Tracked, groups
from reports.page.charts import Part, lines, stacked
from reports.page.palette import palette
from reports.table import DASH, Column, Entry, Table

ANSWERS: Final = ("adopt", "keep", "novel")
DID: Final = ("fired", "candidates", "replans", "fail_opens")  # a method that did none of these only looked on
MANY: Final = 5  # so many winners and more are drawn alike
FEWEST: Final = 3  # reviews at a step for its share to be drawn


@dataclass(frozen=True)
class Chart:
    """One chart with the words above it."""

    title: str
    svg: Markup


@dataclass(frozen=True)
class Anatomy:
    """Charts by kind, and the table of causes; `methods` ever stepped in, `most` winners are told apart."""

    methods: Sequence[str]
    firings: Sequence[Chart]
    winners: Sequence[Chart]
    answers: Sequence[Chart]
    fail_opens: Table | None
    most: int


def anatomy(source: Tracked) -> Anatomy | None:
    """None when no method ever stepped in."""
    rows: dict[tuple[str, str], list[Row]] = {}
    for group in groups(source):
        rows.setdefault((group.environment, group.method), []).extend(group.rows)
    kept = {place: some for place, some in rows.items() if any(row[name] for row in some for name in DID)}
    if not kept:
        return None
    methods = list(dict.fromkeys(method for _, method in kept))
    environments = list(dict.fromkeys(environment for environment, _ in kept))
    parts = [(env, [(name, kept[env, name]) for name in methods if (env, name) in kept]) for env in environments]
    return Anatomy(
        methods,
        [_firings(env, some, palette(source)) for env, some in parts],
        [chart for env, some in parts if (chart := _winners(env, some)) is not None],
        [chart for env, some in parts if (chart := _answers(env, some)) is not None],
        _fail_opens(parts),
        _most(parts),
    )


def summed(rows: Sequence[Row], name: str) -> dict[str, Any]:
    """A JSON column of counts (numbers, or lists of numbers) summed over rows."""
    total: dict[str, Any] = {}
    for row in rows:
        for key, value in json.loads(str(row[name] or "{}")).items():
            old = total.get(key)
            if isinstance(value, list):
                total[key] = [a + b for a, b in zip(old or [0] * len(value), value, strict=True)]
            else:
                total[key] = (old or 0) + value
    return total


def _firings(environment: str, parts: Sequence[tuple[str, Sequence[Row]]], colours: Mapping[str, str]) -> Chart:
    series = {}
    for method, rows in parts:
        by_step = sorted((int(step), counts) for step, counts in summed(rows, "reviews_by_step").items())
        series[method] = [(step, fired / reviews) for step, (reviews, fired) in by_step if reviews >= FEWEST]
    title = f"{environment}: share of reviews that fired, by step"
    return Chart(environment, lines(title, series, colours))


def _winners(environment: str, parts: Sequence[tuple[str, Sequence[Row]]]) -> Chart | None:
    bars = []
    for method, rows in parts:
        counts = {int(key): count for key, count in summed(rows, "reviews_by_winners").items()}
        if counts:
            some = [Part(f"{n} winners", counts[n], f"w{min(n, MANY)}") for n in sorted(counts)]
            bars.append((method, some, f"n={sum(counts.values())}"))
    return Chart(environment, stacked(f"{environment}: winning candidates a review", bars)) if bars else None


def _most(parts: Sequence[tuple[str, Sequence[tuple[str, Sequence[Row]]]]]) -> int:
    """The most winners that a review had, up to where they are drawn alike."""
    counts = (summed(rows, "reviews_by_winners") for _, some in parts for _, rows in some)
    return min(MANY, max((int(key) for found in counts for key in found), default=0))


def _answers(environment: str, parts: Sequence[tuple[str, Sequence[Row]]]) -> Chart | None:
    bars = []
    for method, rows in parts:
        counts: Mapping[str, int] = {kind: sum(int(row[kind] or 0) for row in rows) for kind in ANSWERS}
        if sum(counts.values()):
            some = [Part(kind, counts[kind], kind) for kind in ANSWERS]
            bars.append((method, some, f"n={sum(counts.values())}"))
    return Chart(environment, stacked(f"{environment}: what the actor answered", bars)) if bars else None


def _fail_opens(parts: Sequence[tuple[str, Sequence[tuple[str, Sequence[Row]]]]]) -> Table | None:
    found = [
        (environment, method, rows, Counter(summed(rows, "fail_open_causes")))
        for environment, some in parts
        for method, rows in some
    ]
    causes = sorted({cause for *_, counts in found for cause in counts})
    if not causes:
        return None
    columns = [Column("Method", numeric=False), Column("Environment", numeric=False), Column("Reviews")]
    columns += [Column("Failed open"), *(Column(cause) for cause in causes)]
    body = []
    for environment, method, rows, counts in found:
        totals = [sum(int(row[name] or 0) for row in rows) for name in ("reviews", "fail_opens")]
        texts = [*map(str, totals), *(str(counts[cause]) if counts[cause] else DASH for cause in causes)]
        body.append([Entry(method), Entry(environment), *map(Entry, texts)])
    caption = [
        "Failed open: reviews that let the proposal pass with at least one cause. Causes are counted a candidate."
    ]
    return Table("fail_opens", "Fail-opens by cause.", columns, body, caption)
