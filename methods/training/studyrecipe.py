"""Study recipes: the entries of a study's `training:` section, checked, with all that follows from them.

A recipe names an environment and an actor of the study, how many branches to collect, how pairs are made, and what is
trained from them.  Its hash is made from what is declared, before anything is trained, so a plan can name cells whose
judges do not exist yet.  Branches have a hash of their own: recipes that differ only in what they make of the same
branches (the target ablation) collect them once.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from harness.cache import cache_dir
from harness.errors import UsageError, nearest
from harness.scheduler import resolve_here
from harness.seeds import digest
from harness.study import LABEL, Study
from methods.branching.spec import CollectSpec, Plug, Throughput
from methods.judges.prompt import load_prompt
from methods.training.artefact import IDENTITY
from methods.training.settings import RECIPE, Settings, critic_preset, preset

Judge = Literal["comparator", "critic"]
M = TypeVar("M", bound=BaseModel)
JUDGES: tuple[Judge, ...] = ("comparator", "critic")


class Source(BaseModel):
    """The frozen actor of a recipe, where it is none that the study evaluates."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)
    plugin: str
    params: dict[str, Any] = Field(default_factory=dict)


class StudyRecipe(BaseModel):
    """One entry of `training:`; numbers as in `CollectSpec`, `make_pairs` and `Settings`.

    `actor` is a label of the study, or a plugin with its parameters. `comparator` and `critic` hold changed training
    settings; null leaves that judge out.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)
    environment: str
    actor: str | Source
    split: str = "train"
    tasks: int = Field(default=50, ge=1)
    first_task: int = Field(default=0, ge=0)
    trajectories: int = Field(default=1, ge=1)
    share: float = Field(default=0.5, gt=0, le=1)
    most_points: int = Field(default=10, ge=1)
    alternatives: int = Field(default=5, ge=1)
    continuations: int = Field(default=1, ge=1)
    max_steps: int | None = Field(default=None, ge=1)
    candidates: str | None = None
    seed: int = 0
    margin: float | None = Field(default=None, ge=0)
    tie_share: float = Field(default=0.2, ge=0, lt=1)
    ab_only: bool = False
    base: str = "tiny"
    revision: str | None = None
    comparator: dict[str, Any] | None = Field(default_factory=dict)
    critic: dict[str, Any] | None = Field(default_factory=dict)


@dataclass(frozen=True)
class Prepared:
    """A recipe with all that follows from it; `folder` holds pairs/, comparator/ and critic/."""

    label: str
    recipe: StudyRecipe
    spec: CollectSpec
    throughput: Throughput
    hash: str = ""
    branches_hash: str = ""

    @property
    def folder(self) -> Path:
        """Where everything of this recipe is kept, but for its branches."""
        return cache_dir("trained", self.hash[:16])

    @property
    def branches(self) -> Path:
        """Where its branches are kept, for every recipe that wants the same ones."""
        return cache_dir("branches", self.branches_hash[:16])

    @property
    def pairs(self) -> Path:
        """Where its pairs are kept."""
        return self.folder / "pairs"

    def part(self, name: str) -> Path:
        """The folder that `trained:LABEL/name` stands for."""
        return self.branches if name == "branches" else self.folder / name

    def settings(self, judge: Judge) -> Settings | None:
        """Training settings of a judge; None when the recipe leaves it out."""
        changes = getattr(self.recipe, judge)
        if changes is None:
            return None
        base = preset(self.recipe.base) if judge == "comparator" else critic_preset(self.recipe.base)
        return base.changed(**changes)

    def trained(self, judge: Judge) -> bool:
        """Whether the judge is finished."""
        return (self.folder / judge / IDENTITY).exists()


def recipes(study: Study) -> dict[str, Prepared]:
    """The study's recipes by label. Raises `UsageError` with the place of what is wrong."""
    return {label: _prepared(study, label, data) for label, data in study.training.items()}


def _prepared(study: Study, label: str, data: Mapping[str, Any]) -> Prepared:
    where = f"{study.where('training', label)}: training.{label}"
    if not re.match(LABEL, label):
        raise UsageError(f"{where}: a label is letters, digits and _ . + - (64 at most, a letter or digit first).")
    recipe = validated(StudyRecipe, data, where)
    if recipe.environment not in study.environments:
        hint = nearest(recipe.environment, study.environments)
        raise UsageError(f"{where}.environment: {recipe.environment!r} is no label.{hint}")
    spec = _spec(study, recipe, where)
    environment = spec.make_environment()
    made = Prepared(label, recipe, spec, _throughput(study))
    for judge in JUDGES:
        _check_settings(made, judge, where)
    collect, units = spec.identity(environment), [recipe.tasks, recipe.first_task, recipe.trajectories]
    parts = {
        "collect": collect,
        "units": units,
        "pairs": [recipe.margin, recipe.tie_share, recipe.ab_only],
        "base": [recipe.base, recipe.revision],
        "judges": {judge: _plain(made.settings(judge)) for judge in JUDGES},
        "recipe": RECIPE,
    }
    return replace(made, hash=digest(parts), branches_hash=digest({"collect": collect, "units": units}))


def _check_settings(made: Prepared, judge: Judge, where: str) -> None:
    try:
        settings = made.settings(judge)
        if settings is not None:
            load_prompt(settings.prompt)
    except UsageError as error:
        raise UsageError(f"{where}.{judge}: {error}") from error


def sibling(one: Prepared, known: Mapping[str, Prepared]) -> Prepared | None:
    """For an A/B recipe the A/B/T one from the same branches: on its pairs both targets are asked (paper table 9)."""
    if not one.recipe.ab_only:
        return None
    same = (other for other in known.values() if other.branches_hash == one.branches_hash)
    return next((other for other in same if not other.recipe.ab_only), None)


def validated(model: type[M], data: Mapping[str, Any], where: str) -> M:
    """`data` as a model. Raises `UsageError` with the place of the first problem, and the nearest key."""
    try:
        return model.model_validate(dict(data))
    except ValidationError as error:
        problem = error.errors()[0]
        place = ".".join(map(str, problem["loc"]))
        unknown = problem["type"] == "extra_forbidden"
        hint = nearest(str(problem["loc"][0]), model.model_fields) if unknown else f" It is {problem['input']!r}."
        raise UsageError(f"{where}.{place}: {problem['msg']}.{hint}") from error


def _plain(settings: Settings | None) -> Any:
    return None if settings is None else {name: getattr(settings, name) for name in settings.__dataclass_fields__}


def plug(study: Study, section: Literal["actors", "candidates"], label: str, at: tuple[str, str], where: str) -> Plug:
    """A labelled part of the study for one (environment, actor). Raises `UsageError` with the nearest label."""
    known = getattr(study, section)
    if label not in known:
        key = "actor" if section == "actors" else section
        raise UsageError(f"{where}.{key}: {label!r} is no label.{nearest(label, known)}")
    found = known[label].resolved(*at)
    return Plug(plugin=found.plugin or "", params=dict(found.params))


def _spec(study: Study, recipe: StudyRecipe, where: str) -> CollectSpec:
    place = study.environments[recipe.environment]
    given, label = recipe.actor, recipe.actor if isinstance(recipe.actor, str) else ""
    if isinstance(given, Source):
        actor = Plug(plugin=given.plugin, params=dict(given.params))
    else:
        actor = plug(study, "actors", label, (recipe.environment, label), where)
    source = Plug(plugin="environment")
    if recipe.candidates is not None:
        source = plug(study, "candidates", recipe.candidates, (recipe.environment, label), where)
    return CollectSpec(
        environment=Plug(plugin=place.plugin or "", params=dict(place.params)),
        actor=actor,
        split=recipe.split,
        tasks=recipe.tasks,
        first_task=recipe.first_task,
        trajectories=recipe.trajectories,
        seed=recipe.seed,
        share=recipe.share,
        most_points=recipe.most_points,
        alternatives=recipe.alternatives,
        continuations=recipe.continuations,
        candidates=source,
        max_steps=recipe.max_steps or place.max_steps,
    )


def _throughput(study: Study) -> Throughput:
    backend, workers = resolve_here(study.throughput)
    return Throughput(
        workers=workers,
        backend=backend,
        call_s=study.policy.call_timeout_s,
        step_s=study.policy.step_timeout_s,
        episode_s=study.policy.episode_timeout_s,
    )
