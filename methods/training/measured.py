"""Measured: what preparing a study left in the cache, as measures in its results folder (`harness.measures`).

Pair counts (Table 4), candidate sources (Table 6), critic diagnostics (Table 7), comparator targets (Table 9, judge
part), offline cost (Table 10) and comparator diagnostics.  Everything is read from cards and diagnostics that the steps
wrote, so making measures again costs nothing and changes nothing.  What was not made yet has no row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from harness.measures import Cell, Line, Measure, write_measure
from harness.study import Study
from methods.branching.tables import read_card
from methods.candidates.described import table6
from methods.training.artefact import CARD, read
from methods.training.diagnostics import remembered
from methods.training.diversity import measured_diversity
from methods.training.steps import Say, asked_on
from methods.training.studyrecipe import JUDGES, Judge, Prepared, recipes, sibling

Rows = list[dict[str, Cell]]
SPLIT = "test"
ROLLOUT_NOTE = (
    "Rollout hours are summed over workers and include restoring prefixes; hours of another machine's accelerator "
    "behind an endpoint are in them as waiting time. The total leaves out the critic, as the published one does."
)

TARGET_NOTE = "Both targets are asked about the same held-out pairs, those of the A/B/T recipe, ties among them."


def write_measures(study: Study, folder: Path, made_by: str) -> list[str]:
    """Write every measure that can be made now; their names come back.

    Args:
        study: from `load_study`, before or after `prepare`.
        folder: the study's results folder.
        made_by: the command.
    """
    known = list(recipes(study).values())
    made: dict[str, tuple[Rows, tuple[str, ...]]] = {
        "table4": (_each(known, _pair_counts), _sources(known)),
        "table6": (table6(study), ()),
        "table7": (_each(known, _critic), _sources(known)),
        "table9": (
            [row for one in known for row in _target(study, one, known)],
            (*_sources(known), *[TARGET_NOTE] * any(one.recipe.ab_only for one in known)),
        ),
        "table10": (_each(known, _cost), (*_sources(known), ROLLOUT_NOTE)),
        "comparator": (_each(known, _comparator), _sources(known)),
    }
    written = []
    for name, (rows, notes) in made.items():
        if rows:
            write_measure(folder, Measure(name, tuple(rows), made_by, notes))
            written.append(name)
    return written


def measure_run(study: Study, ready: Study, folder: Path, made_by: str, say: Say) -> None:
    """All that `cota-bench run` measures beside the episodes; diversity is sampled now where the study asks for it.

    Args:
        study: from `load_study`.
        ready: the same as `prepare` left it.
        folder: the study's results folder.
        made_by: the command.
        say: where lines about it go.

    Raises:
        UsageError: prefixes at which the actor failed; the measures are written all the same.
    """
    write_measures(study, folder, made_by)
    if study.diversity:
        measured_diversity(study, ready, folder, made_by, say)


def _each(known: Iterable[Prepared], row: Callable[[Prepared], Line | None]) -> Rows:
    found = ((one, row(one)) for one in known)
    return [
        {"environment": one.recipe.environment, "recipe": one.label, **line} for one, line in found if line is not None
    ]


def _sources(known: Iterable[Prepared]) -> tuple[str, ...]:
    """What a caption must say of the data and models behind the numbers."""
    notes = []
    for one in known:
        if (one.branches / CARD).exists():
            simulated = read_card(one.branches)["simulated"]
            if simulated:
                notes.append(f"{one.label}: branches with simulated {', '.join(simulated)}.")
        m = one.recipe.continuations
        notes.append(f"{one.label}: base model {one.recipe.base}, {m} continuation{'s' * (m > 1)} an action.")
    return tuple(dict.fromkeys(notes))


def _pair_counts(one: Prepared) -> Line | None:
    if not (one.pairs / CARD).exists():
        return None
    (row,) = read_card(one.pairs)["table4"]
    return {"target": _target_name(one)} | {key: value for key, value in row.items() if key != "environment"}


def _target_name(one: Prepared) -> str:
    return "A/B" if one.recipe.ab_only else "A/B/T"


def _diagnosed(one: Prepared, judge: Judge, on: Prepared | None = None) -> Mapping[str, Any] | None:
    if not one.trained(judge):
        return None
    found = remembered(one.folder / judge, asked_on(SPLIT, on))
    return None if found is None else next(iter(found.values()), None)


def _share(name: str, value: Mapping[str, Any], factor: float = 100.0) -> dict[str, Cell]:
    """A share with its interval, in percent."""
    parts = (("", "value"), ("_lo", "low"), ("_hi", "high"))
    return {f"{name}{end}": None if value[key] is None else factor * value[key] for end, key in parts}


def _with_interval(name: str, value: float | None, interval: Iterable[float | None]) -> dict[str, Cell]:
    low, high = interval
    return {name: value, f"{name}_lo": low, f"{name}_hi": high}


def _critic(one: Prepared) -> Line | None:
    found = _diagnosed(one, "critic")
    if found is None:
        return None
    return {
        **_share("pairwise_ranking_acc_pct", found["ranking_accuracy"]),
        **_with_interval("spearman", found["spearman"], found["spearman_interval"]),
        **_with_interval("bce", found["bce"], found["bce_interval"]),
        "bce_of_the_mean": found["bce_of_the_mean"],
        "n": found["ranking_accuracy"]["n"],
        "n_actions": found["actions"],
    }


def _target(study: Study, one: Prepared, known: Iterable[Prepared]) -> Iterator[dict[str, Cell]]:
    other = sibling(one, {each.label: each for each in known})
    found = _diagnosed(one, "comparator", other)
    if found is None:
        return
    yield {
        "training_target": _target_name(one),
        **_share("preference_consistency_pct", found["order_consistency"]),
        **_share("valid_output_pct", found["valid_outputs"]),
        "n": found["order_consistency"]["n"],
        "environment": one.recipe.environment,
        "recipe": one.label,
        "pairs_of": (other or one).label,
        "method": ", ".join(_methods(study, one)),
    }


def _methods(study: Study, one: Prepared) -> list[str]:
    """Labels of the methods that ask this recipe's comparator: their episodes give the row's reward columns."""
    wanted = {f"trained:{one.label}/comparator", str(one.part("comparator"))}
    found = []
    for label, method in study.methods.items():
        for actor in study.actors:
            judge = method.resolved(one.recipe.environment, actor).comparator
            if judge is not None:
                part = study.judges[judge].resolved(one.recipe.environment, actor)
                if part.params.get("model") in wanted and label not in found:
                    found.append(label)
    return found


def _cost(one: Prepared) -> Line | None:
    spent = read_card(one.branches)["seconds"] if (one.branches / CARD).exists() else {}
    hours: dict[str, float | None] = {
        "base_rollout_hours": _hours(spent.get("base")),
        "branch_rollout_hours": _hours(sum(v for phase, v in spent.items() if phase != "base") if spent else None),
    }
    hardware = ""
    for judge in JUDGES:
        card = read(one.folder / judge).card if one.trained(judge) else None
        hours[f"{judge}_ft_hours"] = None if card is None else _hours(card["seconds"])
        hardware = hardware if card is None else _hardware(card["hardware"])
    if all(value is None for value in hours.values()):
        return None
    counted = [value for name, value in hours.items() if name != "critic_ft_hours"]
    total = None if None in counted else sum(value for value in counted if value is not None)
    return {**hours, "total_hours": total, "hardware": hardware or None}


def _hours(seconds: float | None) -> float | None:
    return None if seconds is None else seconds / 3600


def _hardware(found: Mapping[str, Any]) -> str:
    place = f"{found['cores']} cores, {found['machine']}"
    return place if found["device"] == "cpu" else f"{found['device']}; {place}"


def _comparator(one: Prepared) -> Line | None:
    found = _diagnosed(one, "comparator")
    if found is None:
        return None
    names = {
        "accuracy": "accuracy_pct",
        "decisive_accuracy": "decisive_accuracy_pct",
        "decisive_accuracy_when_decided": "decisive_accuracy_when_decided_pct",
        "bidirectional_accuracy": "bidirectional_accuracy_pct",
        "order_consistency": "order_consistency_pct",
        "valid_outputs": "valid_output_pct",
    }
    line: dict[str, Cell] = {"target": _target_name(one)}
    for key, name in names.items():
        line |= _share(name, found[key])
        line[f"{name}_n"] = found[key]["n"]
    line |= _with_interval("calibration_error", found["calibration_error"], found["calibration_interval"])
    majority = found["majority"]
    return line | {"majority_pct": 100 * majority, "n": found["accuracy"]["n"], "tasks": found["tasks"]}
