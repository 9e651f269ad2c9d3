"""Table 11: tokens, money and time online (paper appendix B.10)."""

from __future__ import annotations

from harness.rows import Scalar
from reports import caption
from reports.costs import NOTHING, Spent, hours, prices, spent
from reports.frames import Group, Tracked, groups
from reports.performance import Performance, measure
from reports.stats import Estimate
from reports.table import DASH, INCOMPLETE, Column, Entry, Table, entry, flat
from reports.tables.table5 import success

ORDER = 11
ROLES = ("actor", "advisor")
KINDS = ("prompt", "completion", "reasoning", "billed_prompt", "billed_completion")


def build(source: Tracked) -> Table | None:
    """A row a method, actor and environment; None before the first episode."""
    found = [group for group in groups(source) if group.rows and not group.skipped]
    if not found:
        return None
    by_key = {(item.method, item.actor, item.environment): item for item in measure(source)}
    used = {group.key: {role: spent(group, role) for role in ROLES} for group in found}
    priced = any(role.cost is not NOTHING and role.cost.full is not None for g in used.values() for role in g.values())
    saved = any(role.billed != role.full for g in used.values() for role in g.values())
    columns = [Column(head, numeric=False) for head in ("Method", "Actor", "Environment")]
    for role in ROLES:
        group = f"{role.title()} tokens (M)"
        columns += [Column("prompt", group), Column("completion", group), Column("total", group)]
        columns += [Column("billed", group)] if saved else []
    columns += [Column("Cost (USD)"), Column("without cache")] if priced else []
    columns += [Column("Episode time (h)"), Column("Avg. T"), Column("Success (%)"), Column("n")]
    return Table(
        name="table11",
        title=f"{source.study}: tokens and time online.",
        columns=columns,
        body=[_row(group, used[group.key], by_key[group.key], priced, saved) for group in found],
        caption=[*_caption(source, priced, saved)],
        notes=_notes(found, used),
        data=[_tidy(group, used[group.key], by_key[group.key]) for group in found],
    )


def _row(group: Group, used: dict[str, Spent], item: Performance, priced: bool, saved: bool) -> list[Entry]:
    cells = [Entry(text) for text in group.key]
    for role in ROLES:
        one = used[role]
        values = [one.prompt, one.completion, one.full, *([one.billed] if saved else [])]
        cells += [Entry(millions(value)) for value in values]
    if priced:
        cells += [Entry(money(used, "billed")), Entry(money(used, "full"))]
    time = hours(group)
    mark = INCOMPLETE if group.incomplete else ""
    n = str(item.scored.n) + (f"/{group.planned}" if item.scored.n < group.planned else "")
    cells += [Entry(short(time)), entry(item.avg_t, 2)]
    return [*cells, entry(success(group), 1, 100.0, mark), Entry(n)]


def millions(tokens: float | None) -> str:
    """Millions of tokens for the eye: at least three digits that say something."""
    return short(None if tokens is None else tokens / 1e6)


def short(value: float | None) -> str:
    """Three decimals, or two digits of a value that would vanish among them."""
    if value is None:
        return DASH
    return "0" if value == 0 else f"{value:.3f}" if value >= 0.1 else f"{value:.2g}"


def cost_of(used: dict[str, Spent], kind: str) -> float | None:
    """Cost of all roles; None when one is unknown."""
    values = [getattr(one.cost, kind) for one in used.values()]
    return None if None in values else sum(values)


def money(used: dict[str, Spent], kind: str) -> str:
    """Cost for the eye."""
    value = cost_of(used, kind)
    return DASH if value is None else f"{value:.2f}"


def _caption(source: Tracked, priced: bool, saved: bool) -> list[str]:
    lines = ["Sums over every recorded episode, those that broke included; working time leaves queues out."]
    if saved:
        lines.append("Billed: without what the response cache gave; total: as if it had given nothing.")
    if priced:
        lines.append(f"Prices of {prices().version}; a model of your own machine has none.")
    return [*lines, *caption.simulated_in(source)]


def _notes(found: list[Group], used: dict[tuple[str, str, str], dict[str, Spent]]) -> list[str]:
    notes = []
    if any(group.incomplete for group in found):
        notes.append(f"{INCOMPLETE} Incomplete: episodes are missing or broke.")
    unknown = [f"{' x '.join(key)}: {role}" for key, one in used.items() for role in ROLES if one[role].full is None]
    if unknown:
        notes.append(f"Token counts that a server did not report make a sum unknown: {caption.listed(unknown)}.")
    if all(one[role].full == 0 for one in used.values() for role in ROLES):
        notes.append("No model was called: simulated actors and rules use no tokens.")
    return notes


def _tidy(group: Group, used: dict[str, Spent], item: Performance) -> dict[str, Scalar]:
    row: dict[str, Scalar] = {"method": group.method, "actor": group.actor, "environment": group.environment}
    for role, one in used.items():
        row |= {f"{role}_{kind}_tokens": getattr(one, kind) for kind in KINDS}
        row |= {f"{role}_tokens_millions": None if one.full is None else one.full / 1e6}
    row |= {f"cost_usd_{kind}": cost_of(used, kind) for kind in ("billed", "full")}
    rate: Estimate = success(group)
    row |= {"episode_time_hours": hours(group), "episodes": len(group.rows), "incomplete": group.incomplete}
    return row | flat("avg_t", item.avg_t) | flat("success_scored", rate)
