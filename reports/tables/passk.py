"""pass^k: the chance that k attempts at a task all succeed, where success is what counts (tau-bench's measure)."""

from __future__ import annotations

from collections import Counter

from harness.rows import Scalar
from reports import caption
from reports.frames import Group, Tracked, groups
from reports.performance import generator
from reports.robust import pass_hat_k
from reports.stats import Estimate
from reports.table import INCOMPLETE, Column, Entry, Table, flat, percent

ORDER = 21
NEEDS = "an environment judged by success, run with two seeds or more"


def build(source: Tracked) -> Table | None:
    """A row a method, actor and environment, a column a k; None when no task was tried twice."""
    found = [group for group in groups(source) if group.metric == "success_rate" and not group.skipped]
    found = [group for group in found if len({cell.seed for cell in group.cells if not cell.skipped}) > 1]
    most = max((attempts(group) for group in found), default=0)
    if most < 2:
        return None
    columns = [Column(head, numeric=False) for head in ("Method", "Actor", "Environment")]
    columns += [Column(f"pass^{k}") for k in range(1, most + 1)]
    rows = [(group, [measure(source, group, k) for k in range(1, most + 1)]) for group in found]
    return Table(
        name="passk",
        title=f"{source.study}: pass^k.",
        columns=columns,
        body=[_row(group, values) for group, values in rows],
        caption=[
            "Chance in percent that k attempts at a task all succeed (not pass@k, at least one of k), estimated "
            "without bias from the seeds of each task: comb(c, k) / comb(n, k) for c successes in n, averaged over "
            "tasks with at least k scored seeds. Brackets: 95% interval, bootstrap over tasks. Errors are left out.",
            *caption.simulated_in(source),
        ],
        notes=[f"{INCOMPLETE} Incomplete: episodes are missing or broke."] if any(g.incomplete for g in found) else [],
        data=[_tidy(group, k, value) for group, values in rows for k, value in enumerate(values, 1)],
    )


def attempts(group: Group) -> int:
    """Most scored seeds of any task."""
    return max(Counter(task for task, _ in group.scores()).values(), default=0)


def measure(source: Tracked, group: Group, k: int) -> Estimate:
    """pass^k of a group over its scored episodes; a success is the environment's own."""
    rows = group.of("scored")
    values = [float(row["success"] or 0) for row in rows]
    rng = generator(source.study, *group.key, f"pass^{k}")
    return pass_hat_k(values, [str(row["task_id"]) for row in rows], k, rng)


def _row(group: Group, values: list[Estimate]) -> list[Entry]:
    mark = INCOMPLETE if group.incomplete else ""
    return [*(Entry(text) for text in group.key), *(percent(value, 1, mark) for value in values)]


def _tidy(group: Group, k: int, value: Estimate) -> dict[str, Scalar]:
    row: dict[str, Scalar] = {"method": group.method, "actor": group.actor, "environment": group.environment, "k": k}
    found = flat("pass_hat_k", value)
    found["pass_hat_k_tasks"] = found.pop("pass_hat_k_n")
    return row | found
