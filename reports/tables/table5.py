"""Table 5: the validation sweep over K (candidates) and R (winners needed) (paper section 4.2)."""

from __future__ import annotations

from collections.abc import Sequence

from harness.rows import Scalar
from reports import caption
from reports.frames import Group, Tracked, groups
from reports.performance import generator
from reports.stats import Estimate, mean_by_task, success_rate
from reports.table import INCOMPLETE, Column, Entry, Table, entry, flat

ORDER = 5
NEEDS = "methods of plugin cota with different k and r (experiments/validation_sweep.yaml)"
DEFAULT_K, DEFAULT_R = 4, 1


def points(source: Tracked) -> list[Group]:
    """Groups of COTA at several operating points; empty when no environment and actor has two."""
    found = [group for group in groups(source) if group.plugin == "cota" and not group.skipped]
    places: dict[tuple[str, str], set[tuple[int, int]]] = {}
    for group in found:
        places.setdefault((group.actor, group.environment), set()).add(operating_point(group))
    return [group for group in found if len(places[group.actor, group.environment]) > 1]


def operating_point(group: Group) -> tuple[int, int]:
    """(K, R) of a group; the plugin's defaults where the study does not say."""
    k, r = group.param("method.params.k"), group.param("method.params.r")
    return int(k) if k is not None else DEFAULT_K, int(r) if r is not None else DEFAULT_R


def build(source: Tracked) -> Table | None:
    """A row an operating point, actor and environment; None when the study has no sweep."""
    found = points(source)
    if not found:
        return None
    heads = ("Configuration", "Environment", "Actor", "Split")
    columns = [Column(head, numeric=False) for head in heads]
    columns += [Column(head) for head in ("K", "R", "Mean reward", "Success (%)", "n")]
    rows = [(group, reward(source, group), success(group)) for group in found]
    return Table(
        name="table5",
        title=f"{source.study}: validation sweep over the operating point.",
        columns=columns,
        body=[_row(*row) for row in rows],
        caption=[
            "The gate fires when at least R of K candidates beat the proposal. Brackets: 95% interval over tasks.",
            *caption.simulated_in(source),
        ],
        notes=[*_marks(found), *_best(rows)],
        data=[_tidy(*row) for row in rows],
    )


def reward(source: Tracked, group: Group) -> Estimate:
    """Mean reward over scored episodes."""
    rows = group.of("scored")
    rng = generator(source.study, *group.key, "sweep")
    return mean_by_task([float(row["reward"] or 0) for row in rows], [str(row["task_id"]) for row in rows], rng)


def success(group: Group) -> Estimate:
    """Success rate over scored episodes."""
    rows = group.of("scored")
    return success_rate([float(row["success"] or 0) for row in rows], [str(row["task_id"]) for row in rows])


def _row(group: Group, mean: Estimate, rate: Estimate) -> list[Entry]:
    k, r = operating_point(group)
    mark = INCOMPLETE if group.incomplete else ""
    texts = [group.method, group.environment, group.actor, group.cells[0].split, str(k), str(r)]
    n = str(mean.n) if mean.n == group.planned else f"{mean.n}/{group.planned}"
    return [*(Entry(text) for text in texts), entry(mean, 4, 1.0, mark), entry(rate, 1, 100.0, mark), Entry(n)]


def _tidy(group: Group, mean: Estimate, rate: Estimate) -> dict[str, Scalar]:
    k, r = operating_point(group)
    labels: dict[str, Scalar] = {"configuration": group.method, "environment": group.environment, "actor": group.actor}
    return {**labels, "split": group.cells[0].split, "k": k, "r": r} | flat("mean_reward", mean) | flat("success", rate)


def _marks(found: Sequence[Group]) -> list[str]:
    if not any(group.incomplete for group in found):
        return []
    return [f"{INCOMPLETE} Incomplete: the mean covers the n of the planned episodes shown."]


def _best(rows: Sequence[tuple[Group, Estimate, Estimate]]) -> list[str]:
    places: dict[tuple[str, str], list[tuple[float, Group]]] = {}
    for group, mean, _ in rows:
        if mean.value is not None:
            places.setdefault((group.environment, group.actor), []).append((mean.value, group))
    parts = []
    for (environment, actor), some in places.items():
        value, group = max(some, key=lambda pair: pair[0])
        k, r = operating_point(group)
        parts.append(f"{environment} with {actor}: {group.method} (K={k}, R={r}; {value:.4f})")
    return [f"Highest mean reward: {'; '.join(parts)}."] if parts else []
