"""Table 9: comparator trained on A/B alone against A/B/T (paper appendix B.9).

Preference consistency and valid outputs are measured on held-out pairs; end reward and the share of episodes that end
with nothing come from the episodes of the study's two COTA methods.
"""

from __future__ import annotations

from collections.abc import Sequence

from harness.rows import Scalar
from reports import caption
from reports.frames import Group, Tracked, groups
from reports.measured import Line, estimate, number
from reports.names import plain
from reports.performance import generator
from reports.stats import EMPTY, Estimate, mean_by_task, success_rate
from reports.table import INCOMPLETE, Column, Entry, Table, entry, flat

ORDER = 9
NEEDS = "two COTA methods labelled ...-ab and ...-abt (experiments/target_ablation.yaml)"
COMMAND = "cota-bench evaluate-judge STUDY"
TARGETS = ("A/B", "A/B/T")
JUDGED = ("preference_consistency_pct", "valid_output_pct")


def build(source: Tracked) -> Table | None:
    """A row a training target, actor and environment; None when the study has no such methods and no such measure."""
    known = source.measures.get("table9")
    lines = {str(row.get("training_target")): row for row in (known.rows if known else ())}
    rows: list[tuple[str, Line, Group | None]] = []
    for target in dict.fromkeys([*TARGETS, *lines]):
        line = lines.get(target, {})
        found = runs_of(source, target, line)
        rows += [(target, line, group) for group in found]
        rows += [(target, line, None)] if line and not found else []
    if not rows:
        return None
    heads = ("Training target", "Actor", "Environment")
    columns = [Column(head, numeric=False) for head in heads]
    columns += [Column(h) for h in ("Pref. consistency (%)", "Valid output (%)", "End reward", "Zero reward (%)", "n")]
    return Table(
        name="table9",
        title=f"{source.study}: comparator targets.",
        columns=columns,
        body=[_row(source, *row) for row in rows],
        caption=[
            "Preference consistency: preferences that both orders of a held-out pair agree on. End reward and zero "
            "reward: scored episodes. Brackets: 95% interval, over tasks for the last two.",
            *([f"Judged by {known.made_by}."] if known else []),
            *caption.simulated_in(source),
        ],
        notes=_notes(rows, known.notes if known else None),
        data=[_tidy(source, *row) for row in rows],
    )


def runs_of(source: Tracked, target: str, line: Line) -> list[Group]:
    """The groups whose comparator has this target: as the measure says, else by the end of the label."""
    wanted = [label.strip() for label in str(line.get("method") or "").split(",") if label.strip()]
    found = [group for group in groups(source) if group.plugin == "cota" and not group.skipped]
    if wanted:
        return [group for group in found if group.method in wanted]
    return [group for group in found if group.method.lower().replace("_", "-").endswith(f"-{plain(target)}")]


def end_reward(source: Tracked, group: Group | None) -> Estimate:
    """Mean reward over scored episodes."""
    if group is None:
        return EMPTY
    scores = _rewards(group)
    rng = generator(source.study, *group.key, "end reward")
    return mean_by_task([value for _, value in scores], [task for task, _ in scores], rng)


def zero_reward(group: Group | None) -> Estimate:
    """Share of scored episodes with reward 0."""
    scores = _rewards(group) if group else []
    return success_rate([float(value == 0.0) for _, value in scores], [task for task, _ in scores])


def _rewards(group: Group) -> list[tuple[str, float]]:
    return [(str(row["task_id"]), float(row["reward"] or 0)) for row in group.of("scored")]


def _row(source: Tracked, target: str, line: Line, group: Group | None) -> list[Entry]:
    mark = INCOMPLETE if group and group.incomplete else ""
    reward, zero = end_reward(source, group), zero_reward(group)
    labels = (target, group.actor if group else "–", group.environment if group else "–")
    judged = [entry(estimate(line, name), 2) for name in JUDGED]
    return [
        *map(Entry, labels),
        *judged,
        entry(reward, 4, 1.0, mark),
        entry(zero, 1, 100.0, mark),
        Entry(str(reward.n)),
    ]


def _tidy(source: Tracked, target: str, line: Line, group: Group | None) -> dict[str, Scalar]:
    row: dict[str, Scalar] = {"training_target": target, "method": group.method if group else None}
    row |= {"actor": group.actor if group else None, "environment": group.environment if group else None}
    for name in JUDGED:
        row |= {f"{name}{end}": number(line.get(f"{name}{end}")) for end in ("", "_lo", "_hi")}
    return row | flat("end_reward", end_reward(source, group)) | flat("zero_reward", zero_reward(group))


def _notes(rows: Sequence[tuple[str, Line, Group | None]], said: Sequence[str] | None) -> list[str]:
    notes = list(said or ())
    if said is None:
        notes.append(f"The judges are not evaluated yet: {COMMAND}.")
    if any(group is not None and group.incomplete for _, _, group in rows):
        notes.append(f"{INCOMPLETE} Incomplete: episodes are missing or broke.")
    return notes
