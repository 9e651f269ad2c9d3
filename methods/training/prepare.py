"""Prepare: what a study has to train before it can run, made once and kept in the cache.

A judge says `model: trained:LABEL/comparator`, an offline candidate source `data: trained:LABEL/branches`, where LABEL
is one of the study's recipes (`studyrecipe`); both are replaced by folders whose name is the recipe's hash, so a recipe
is trained once on a machine and found by every later run and study.  A judge is evaluated once, when it is trained.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from harness.errors import UsageError, nearest
from harness.study import Study
from methods.training.artefact import CARD, refuse_damaged, write_json
from methods.training.logging import log_softly
from methods.training.steps import Say, collected, evaluated, paired, train
from methods.training.studyrecipe import JUDGES, Judge, Prepared, StudyRecipe, recipes, sibling

PREFIX = "trained:"
RECIPE_FILE = "recipe.json"
__all__ = [
    "JUDGES",
    "Judge",
    "Prepared",
    "StudyRecipe",
    "collected",
    "evaluated",
    "paired",
    "prepare",
    "recipes",
    "train",
]


def prepare(study: Study, *, dry: bool = False, say: Say = print, tracking_uri: str | None = None) -> Study:
    """Train what the study's judges and candidate sources name, and put the folders in their place.

    Args:
        study: from `load_study`.
        dry: train nothing; say what would be trained.
        say: where lines about it go.
        tracking_uri: MLflow store that each trained judge is logged to; None: none.

    Raises:
        UsageError: a wrong recipe, a name that no recipe has, or a collection that failed.
    """
    wanted = sorted(set(_references(study)))
    if not wanted:
        return study
    known = recipes(study)
    places: dict[str, str] = {}
    for name in wanted:
        label, _, part = name.removeprefix(PREFIX).partition("/")
        if label not in known or part not in (*JUDGES, "branches"):
            valid = [f"{PREFIX}{one}/{what}" for one in known for what in (*JUDGES, "branches")]
            raise UsageError(f"{study.study}: nothing is trained under {name!r}.{nearest(name, valid)}")
        if part in JUDGES and known[label].settings(part) is None:  # type: ignore[arg-type]
            raise UsageError(
                f"{study.where('training', label)}: training.{label} leaves the {part} out, which {name!r} names; "
                f"write `{part}: {{}}` to train it."
            )
        places[name] = str(known[label].part(part))
    for name in wanted:  # only now, when all of them can be made
        label, _, part = name.removeprefix(PREFIX).partition("/")
        _make(known[label], part, dry, say, tracking_uri, sibling(known[label], known))
    return _replaced(study, places)


def _make(one: Prepared, part: str, dry: bool, say: Say, tracking_uri: str | None, other: Prepared | None) -> None:
    folder = one.part(part)
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / RECIPE_FILE).exists():
        named = one.branches_hash if part == "branches" else one.hash
        write_json(folder / RECIPE_FILE, {"hash": named, "recipe": one.label})
    judge: Judge | None = part if part in JUDGES else None  # type: ignore[assignment]
    ready = one.trained(judge) if judge else (folder / CARD).exists()
    if dry:
        if not ready:
            say(f"to be trained first: {one.label}/{part} ({one.recipe.tasks} tasks of {one.recipe.environment})")
        return
    if not ready:
        collected(one, say)
    if judge:
        if not ready:
            paired(one, say)
            train(one, judge, say)
        refuse_damaged(folder)
        evaluated(one, judge, say)
        if other is not None and judge == "comparator":
            evaluated(one, judge, say, on=other)
        if tracking_uri is not None:
            log_softly(folder, tracking_uri, say)


def _references(study: Study) -> Iterator[str]:
    for part in (*study.judges.values(), *study.candidates.values()):
        yield from _named(part.model_dump())


def _named(value: Any) -> Iterator[str]:
    if isinstance(value, str) and value.startswith(PREFIX):
        yield value
    elif isinstance(value, Mapping):
        for inner in value.values():
            yield from _named(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _named(inner)


def _replaced(study: Study, places: Mapping[str, str]) -> Study:
    def put(value: Any) -> Any:
        if isinstance(value, str):
            return places.get(value, value)
        if isinstance(value, dict):
            return {key: put(inner) for key, inner in value.items()}
        return [put(inner) for inner in value] if isinstance(value, list) else value

    change = {}
    for section in ("judges", "candidates"):
        parts = getattr(study, section)
        change[section] = {
            label: type(part).model_validate(put(part.model_dump(exclude_unset=True))) for label, part in parts.items()
        }
    return study.model_copy(update=change)
