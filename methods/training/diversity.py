"""The `diversity:` section of a study: which recipe's prefixes, which actor and candidates, how many of each."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from harness.errors import UsageError, nearest
from harness.measures import Cell, Measure, write_measure
from harness.progress import Units
from harness.study import Study
from methods.branching.diversity import DiversitySpec, measure_diversity, rows, simulated
from methods.training.steps import Say, collected
from methods.training.studyrecipe import Prepared, plug, recipes, validated


class DiversityRecipe(BaseModel):
    """One entry of `diversity:`; `prefixes_of` names a recipe under `training:`."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)
    prefixes_of: str
    actor: str
    candidates: str
    samples: int = Field(default=8, ge=1)
    k: int = Field(default=4, ge=1)
    prefixes: int = Field(default=300, ge=1)
    seed: int = 0


def wanted(study: Study, ready: Study | None = None) -> dict[str, tuple[DiversitySpec, Prepared]]:
    """What a study asks for, by label; parts are those of `ready`, the same study with its data in place.

    Raises:
        UsageError: no `diversity:` section, or something wrong in it, with its place.
    """
    if not study.diversity:
        raise UsageError(
            f"The study {study.study!r} has no `diversity:` section; experiments/diversity.yaml shows what it holds."
        )
    known = recipes(study)
    found = {}
    for label, data in study.diversity.items():
        where = f"{study.study}: diversity.{label}"
        recipe = validated(DiversityRecipe, data, where)
        if recipe.prefixes_of not in known:
            hint = nearest(recipe.prefixes_of, known)
            raise UsageError(f"{where}.prefixes_of: no recipe is called {recipe.prefixes_of!r}.{hint}")
        found[label] = (_spec(ready or study, recipe, known[recipe.prefixes_of], where), known[recipe.prefixes_of])
    return found


def _spec(study: Study, recipe: DiversityRecipe, one: Prepared, where: str) -> DiversitySpec:
    at = (one.recipe.environment, recipe.actor)
    return DiversitySpec(
        environment=one.spec.environment,
        actor=plug(study, "actors", recipe.actor, at, where),
        candidates=plug(study, "candidates", recipe.candidates, at, where),
        samples=recipe.samples,
        k=recipe.k,
        prefixes=recipe.prefixes,
        seed=recipe.seed,
        trajectory_seed=one.spec.seed,
    )


def measured_diversity(study: Study, ready: Study, folder: Path, made_by: str, say: Say) -> list[dict[str, Cell]]:
    """Measure all that the study asks for and write the measure `diversity`; its rows come back.

    Args:
        study: from `load_study`.
        ready: the same as `prepare` left it, so that candidate sources have their data.
        folder: the study's results folder; gets `diversity/<label>.jsonl.gz` and the measure.
        made_by: the command.
        say: where lines about it go.

    Raises:
        UsageError: a wrong section, or prefixes at which the actor failed (run the same command again).
    """
    every: list[dict[str, Cell]] = []
    notes = [study.notes] if study.notes else []
    failed = 0
    for label, (spec, one) in wanted(study, ready).items():
        collected(one, say)
        with Units(f"{label}: prefixes") as shown:
            file = folder / "diversity" / f"{label}.jsonl.gz"
            records = measure_diversity(spec, one.branches, file, one.throughput, shown)
        notes += _notes(label, spec, records)
        failed += sum(record["status"] in ("failed", "timeout") for record in records)
        named: dict[str, Cell] = {"environment": one.recipe.environment, "actor": study.diversity[label]["actor"]}  # type: ignore[dict-item]
        every += [named | row for row in rows(spec, records)]
    write_measure(folder, Measure("diversity", tuple(every), made_by, tuple(notes)))
    if failed:
        raise UsageError(f"At {failed} prefixes the actor or its endpoint failed. Run the same command again for them.")
    return every


def _notes(label: str, spec: DiversitySpec, records: list[dict[str, Any]]) -> list[str]:
    notes = []
    if len(records) < spec.prefixes:
        notes.append(f"{label}: {len(records)} prefixes were collected, fewer than the {spec.prefixes} asked for.")
    left = sum(record["status"] != "done" for record in records)
    if left:
        notes.append(f"{label}: {left} prefixes left out (failed, or not reproduced).")
    if simulated(spec):
        notes.append(f"{label}: the actor is simulated; noise of its judgement plays the part of temperature.")
    return notes
