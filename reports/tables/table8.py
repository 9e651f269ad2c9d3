"""Table 8: how often a method stepped in, forced against selective (paper appendix B.8).

Forced: reviews in which the judge's choice replaces the proposal.  Selective: reviews in which the gate asks the actor
to answer again.  The paper gives this for the absolute-Q critic; the comparator's pair stands beside it where it ran.
"""

from __future__ import annotations

from harness.rows import Scalar
from reports import caption
from reports.contrasts import only
from reports.frames import Group, Tracked, groups
from reports.shares import share
from reports.stats import EMPTY, Estimate
from reports.table import INCOMPLETE, Column, Entry, Table, flat, percent

ORDER = 8
NEEDS = "a forced or selective method with a judge: agentprm, absq-constructive, pairwise-forced, cota"
JUDGES = {"absolute Q": ("agentprm", "absq-constructive"), "pairwise": ("pairwise-forced", "cota")}


def frequencies(source: Tracked) -> list[tuple[str, str, str, Group | None, Group | None]]:
    """(judge, environment, actor, forced group, selective group) of every place where one of the two was run."""
    places: dict[tuple[str, str], list[Group]] = {}
    for group in groups(source):
        if not group.skipped and group.rows:
            places.setdefault((group.environment, group.actor), []).append(group)
    found = []
    for judge, (forced, selective) in JUDGES.items():
        for (environment, actor), here in places.items():
            pair = only(here, forced), only(here, selective)
            if any(pair):
                found.append((judge, environment, actor, *pair))
    return found


def build(source: Tracked) -> Table | None:
    """A row a judge, environment and actor."""
    found = frequencies(source)
    if not found:
        return None
    columns = [Column(head, numeric=False) for head in ("Judge", "Environment", "Actor")]
    columns += [Column("Forced (%)"), Column("Selective (%)")]
    chosen = [group for *_, forced, selective in found for group in (forced, selective) if group]
    marked = any(group.incomplete for group in chosen)
    return Table(
        name="table8",
        title=f"{source.study}: intervention frequency.",
        columns=columns,
        body=[
            [Entry(judge), Entry(environment), Entry(actor), _entry(source, forced), _entry(source, selective)]
            for judge, environment, actor, forced, selective in found
        ],
        caption=[
            "Forced: share of reviews in which the judge's choice replaces the proposal. Selective: share of reviews "
            "in which the gate asks the actor to answer again. Brackets: 95% interval, bootstrap over tasks. Every "
            "recorded episode counts.",
            *caption.simulated_in(source),
        ],
        notes=[f"{INCOMPLETE} Incomplete: episodes are missing or broke."] if marked else [],
        data=[_tidy(source, *row) for row in found],
    )


def fired(source: Tracked, group: Group | None) -> Estimate:
    """Share of a group's reviews that fired."""
    return share(source, group, "fired", "reviews") if group else EMPTY


def _entry(source: Tracked, group: Group | None) -> Entry:
    return percent(fired(source, group), 1, INCOMPLETE if group and group.incomplete else "")


def _tidy(
    source: Tracked, judge: str, environment: str, actor: str, forced: Group | None, selective: Group | None
) -> dict[str, Scalar]:
    labels: dict[str, Scalar] = {"judge": judge, "environment": environment, "actor": actor}
    return labels | flat("forced", fired(source, forced)) | flat("selective", fired(source, selective))
