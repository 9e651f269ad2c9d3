"""Beside: published values with ours next to them, table by table.

Each function takes a study and gives the published values that it has something for, in the paper's units.  Methods,
actors and environments are matched by what they are (`reports.names`), not by what the study calls them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from reports.comparable import STAND_IN, counterpart, measure_reasons, reasons, slice_of
from reports.costs import hours, spent
from reports.frames import Group, Tracked, groups
from reports.measured import Line, estimate
from reports.names import METHODS, published_environment, published_method, same_environment
from reports.performance import measure
from reports.published import published, value
from reports.shares import share
from reports.stats import Estimate
from reports.tables.figure1 import CLASSES, advised
from reports.tables.table3 import slices
from reports.tables.table5 import operating_point, points, reward, success

HUNDRED: Final = 100.0


@dataclass(frozen=True)
class Beside:
    """One published value and ours.

    Attributes:
        table: The paper's table.
        setting: What both are of, in words; ours and theirs where the names differ.
        quantity: What was measured, with its unit.
        theirs: The published value.
        ours: The same here, in the same unit.
        why: Why the two are not comparable; empty when they are.
        exact: A count that is either the same or not.
        digits: Decimals for the eye.
    """

    table: str
    setting: str
    quantity: str
    theirs: float
    ours: Estimate
    why: tuple[str, ...] = ()
    exact: bool = False
    digits: int = 2

    @property
    def difference(self) -> float | None:
        """Ours less theirs."""
        return None if self.ours.value is None else self.ours.value - self.theirs

    @property
    def verdict(self) -> str:
        """`inside` or `outside` of our interval, `same` or `other` for counts, or `not comparable: why`."""
        if self.ours.value is None:
            return "not comparable: nothing scored"
        if self.exact:
            return "same" if self.ours.value == self.theirs else "other"
        if self.why:
            return f"not comparable: {', '.join(self.why)}"
        if self.ours.interval is None:
            return "not comparable: ours has no interval"
        low, high = self.ours.interval
        return "inside" if low <= self.theirs <= high else "outside"


def everything(source: Tracked) -> list[Beside]:
    """All that can stand side by side, in the order of the paper's tables."""
    return [line for part in PARTS for line in part(source)]


def _performance(source: Tracked) -> Iterator[Beside]:
    for group, item in zip(groups(source), measure(source), strict=True):
        line = _line("table1", group)
        name = "table1"
        if line is None:
            line = _line("table2", group, "method_name")
            name = "table2"
        if line is None or item.skipped:
            continue
        graded = line["unit"] == "mean_reward"
        factor, digits, unit = (1.0, 4, "mean reward") if graded else (HUNDRED, 2, "success, %")
        why = tuple(reasons(group))
        scored = scaled(item.scored, factor)
        yield Beside(name, _setting(group), unit, float(line["performance"]), scored, why, digits=digits)
        if line.get("avg_t") and line["method"] != "Origin":
            yield Beside(name, _setting(group), "Avg. T", float(line["avg_t"]), item.avg_t, why, digits=3)


def _line(table: str, group: Group, method: str = "method") -> Mapping[str, str] | None:
    cell = group.cells[0]
    wanted = (published_method(cell), counterpart(cell), published_environment(cell))
    rows = published(table)
    return next((row for row in rows if (row[method], row["actor"], row["environment"]) == wanted), None)


def _setting(group: Group) -> str:
    actor = counterpart(group.cells[0])
    named = group.actor if group.actor == actor else f"{group.actor} (theirs: {actor})"
    return f"{METHODS.get(group.plugin, group.method)}, {named}, {group.environment}"


def scaled(found: Estimate, factor: float) -> Estimate:
    """An estimate in another unit."""

    def times(number: float | None) -> float | None:
        return None if number is None else number * factor

    return replace(found, value=times(found.value), low=times(found.low), high=times(found.high))


def exactly(number: float | None, n: int = 0) -> Estimate:
    """A number without an interval."""
    return Estimate(number, None, None, n, 0)


def _slices(source: Tracked) -> Iterator[Beside]:
    for item in slices(source):
        cell = item.cells[0]
        for line in published("table3"):
            if line["environment"] != published_environment(cell):
                continue
            actor = counterpart(cell)
            theirs = slice_of(line, actor)
            setting = f"{item.actor} (theirs: {actor}), {item.environment}"
            for name, ours in (("tasks", item.tasks), ("repeats", item.repeats), ("max_steps", item.max_steps)):
                words = name.replace("max_steps", "step limit")
                yield Beside("table3", setting, words, theirs[name], exactly(ours), exact=True, digits=0)


def _sweep(source: Tracked) -> Iterator[Beside]:
    for group in points(source):
        for line in published("table5"):
            if published_environment(group.cells[0]) != "WebShop":
                continue
            if (int(line["k"]), int(line["r"])) != operating_point(group):
                continue
            setting = f"{group.method} (K={line['k']}, R={line['r']}), {group.actor}, {group.environment}"
            why = (*reasons(group), "the paper names neither actor nor tasks")
            mean, rate = reward(source, group), scaled(success(group), HUNDRED)
            yield Beside("table5", setting, "mean reward", float(line["mean_reward"]), mean, why, digits=4)
            yield Beside("table5", setting, "success, %", float(line["success_pct"]), rate, why, digits=1)


def _frequency(source: Tracked) -> Iterator[Beside]:
    columns = {"agentprm": "forced_pct", "absq-constructive": "selective_pct"}
    for group in groups(source):
        if group.plugin not in columns or group.skipped or not group.rows:
            continue
        for line in _matching("table8", group):
            ours = scaled(share(source, group, "fired", "reviews"), HUNDRED)
            theirs, words = float(line[columns[group.plugin]]), "reviews that fire, %"
            yield Beside("table8", _setting(group), words, theirs, ours, tuple(reasons(group)), digits=1)


def _matching(table: str, group: Group) -> Iterator[Mapping[str, str]]:
    cell = group.cells[0]
    for line in published(table):
        if (line["actor"], line["environment"]) == (counterpart(cell), published_environment(cell)):
            yield line


def _online(source: Tracked) -> Iterator[Beside]:
    rows = dict(zip(("origin", "cota"), published("table11"), strict=True))
    for group in groups(source):
        place = published_environment(group.cells[0]), counterpart(group.cells[0])
        if group.plugin not in rows or place != ("WebShop", STAND_IN) or not group.rows:
            continue
        line = rows[group.plugin]
        tokens = {role: spent(group, role).full for role in ("actor", "advisor")}
        values = {
            f"{role} tokens, M": (value(line[f"{role}_tokens_millions"]), exactly(None if n is None else n / 1e6))
            for role, n in tokens.items()
        }
        values["episode time, h"] = (value(line["episode_time_hours"]), exactly(hours(group)))
        values["success, %"] = (value(line["success_pct"]), scaled(success(group), HUNDRED))
        for words, (theirs, ours) in values.items():
            if theirs is not None:
                yield Beside("table11", _setting(group), words, theirs, ours, tuple(reasons(group)), digits=3)


def _replans(source: Tracked) -> Iterator[Beside]:
    for group in advised(source):
        for line in _matching("figure1", group) if group.plugin == "cota" else ():
            for name in CLASSES:
                theirs = value(line[f"{name}_pct"])
                if theirs is not None:
                    ours = scaled(share(source, group, name, "replans"), HUNDRED)
                    words = f"{name}, % of answers"
                    yield Beside("figure1", _setting(group), words, theirs, ours, tuple(reasons(group)), digits=1)


def _measures(source: Tracked) -> Iterator[Beside]:
    for table, columns in COLUMNS.items():
        found = source.measures.get(table)
        for row in found.rows if found else ():
            for line in published(table):
                if found is None or not _same(table, row, line):
                    continue
                why = tuple(measure_reasons(found.notes, row))
                for theirs, ours, digits in columns:
                    printed = value(line[theirs])
                    if printed is not None and row.get(ours) is not None:
                        words = theirs.replace("_pct", ", %").replace("_", " ")
                        yield Beside(table, _named(row), words, printed, estimate(row, ours), why, digits=digits)


def _same(table: str, row: Line, line: Mapping[str, str]) -> bool:
    if table == "table9":
        return row.get("training_target") == line["training_target"]
    if table == "diversity":
        return ("candidate" in str(row.get("sampler")).lower()) == ("candidate" in line["sampler"].lower())
    return row.get("target") in (None, "A/B/T") and same_environment(row.get("environment"), line["environment"])


def _named(row: Line) -> str:
    names = ("training_target", "sampler", "environment", "recipe", "actor")
    return ", ".join(dict.fromkeys(str(row[name]) for name in names if row.get(name)))


PARTS: Final[Sequence[Callable[[Tracked], Iterator[Beside]]]] = (
    _performance,
    _slices,
    _sweep,
    _frequency,
    _online,
    _replans,
    _measures,
)
# Published column, ours, decimals.
COLUMNS: Final[Mapping[str, Sequence[tuple[str, str, int]]]] = {
    "table4": [(name, name, 0) for name in ("physical_pairs", "train", "validation", "test")],
    "table7": [
        ("pairwise_ranking_acc_pct", "pairwise_ranking_acc_pct", 2),
        ("spearman", "spearman", 3),
        ("bce", "bce", 3),
    ],
    "table9": [(name, name, 2) for name in ("preference_consistency_pct", "valid_output_pct")],
    "table10": [
        ("base_rollout_h200_hours", "base_rollout_hours", 2),
        ("branch_rollout_h200_hours", "branch_rollout_hours", 2),
        ("comparator_ft_h200_hours", "comparator_ft_hours", 2),
        ("total_h200_hours", "total_hours", 2),
    ],
    "diversity": [
        ("distinct_actions_mean", "distinct_actions_mean", 2),
        ("unique_action_utilization_pct", "unique_action_utilization_pct", 1),
    ],
}
