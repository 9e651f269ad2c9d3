"""Interquartile means: performance without the lowest and the highest quarter of episodes (Agarwal et al. 2021)."""

from __future__ import annotations

from harness.rows import Scalar
from reports import caption
from reports.frames import Group, Tracked, groups
from reports.performance import generator
from reports.robust import iqm
from reports.stats import Estimate
from reports.table import INCOMPLETE, Column, Entry, Table, entry, flat

ORDER = 22
NEEDS = "an environment judged by a mean reward"


def build(source: Tracked) -> Table | None:
    """A row a method, actor and environment with graded rewards; of successes alone an IQM says little."""
    found = [g for g in groups(source) if g.metric == "mean_reward" and not g.skipped and g.scores()]
    if not found:
        return None
    columns = [Column(head, numeric=False) for head in ("Method", "Actor", "Environment")]
    columns += [Column("IQM"), Column("Reward 0 (%)"), Column("Reward 1 (%)"), Column("n")]
    rows = [(group, measure(source, group)) for group in found]
    return Table(
        name="iqm",
        title=f"{source.study}: interquartile mean of rewards.",
        columns=columns,
        body=[_row(group, value) for group, value in rows],
        caption=[
            "IQM: mean reward of the middle half of the scored episodes. Brackets: 95% interval, bootstrap over tasks. "
            "Reward 0 and Reward 1: share of scored episodes that end with nothing, and with everything.",
            *caption.simulated_in(source),
        ],
        notes=[f"{INCOMPLETE} Incomplete: episodes are missing or broke."] if any(g.incomplete for g in found) else [],
        data=[_tidy(group, value) for group, value in rows],
    )


def measure(source: Tracked, group: Group) -> Estimate:
    """The IQM of a group's scores."""
    scores = sorted(group.scores().items())
    rng = generator(source.study, *group.key, "iqm")
    return iqm([value for _, value in scores], [task for (task, _), _ in scores], rng)


def part(group: Group, value: float) -> float:
    """Share of scored episodes with exactly this score."""
    scores = group.scores().values()
    return sum(score == value for score in scores) / len(scores)


def _row(group: Group, value: Estimate) -> list[Entry]:
    mark = INCOMPLETE if group.incomplete else ""
    ends = [f"{100 * part(group, end):.1f}" for end in (0.0, 1.0)]
    n = str(value.n) + (f"/{group.planned}" if value.n < group.planned else "")
    return [*(Entry(text) for text in group.key), entry(value, 3, 1.0, mark), *(Entry(t) for t in ends), Entry(n)]


def _tidy(group: Group, value: Estimate) -> dict[str, Scalar]:
    row: dict[str, Scalar] = {"method": group.method, "actor": group.actor, "environment": group.environment}
    return row | flat("iqm", value) | {"zero_share": part(group, 0.0), "one_share": part(group, 1.0)}
