"""Prepare: what a study has to train before it can run, made once and kept in the cache.

A study's `training:` section holds recipes.  A recipe names an environment and an actor of the study, how many branches
to collect, how pairs are made, and what is trained from them.  A judge says `model: trained:LABEL/comparator`, an
offline candidate source `data: trained:LABEL/branches`; both are replaced by folders whose name is the recipe's hash,
so a recipe is trained once on a machine and found by every later run and study.  The hash is made from what is
declared, before anything is trained, so a plan can name cells whose judges do not exist yet.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from harness.cache import cache_dir
from harness.errors import UsageError, nearest
from harness.scheduler import resolve_workers
from harness.seeds import digest
from harness.study import Study
from methods.branching.collect import Collected, collect
from methods.branching.pair_counts import PairCounts
from methods.branching.pairs import make_pairs
from methods.branching.spec import CollectSpec, Plug, Throughput
from methods.training.artefact import CARD, IDENTITY, write_json
from methods.training.settings import RECIPE, Settings, critic_preset, preset

Say = Callable[[str], None]
Judge = Literal["comparator", "critic"]
JUDGES: tuple[Judge, ...] = ("comparator", "critic")
PREFIX = "trained:"
RECIPE_FILE = "recipe.json"


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
    """A recipe with all that follows from it; `folder` holds branches/, pairs/, comparator/ and critic/."""

    label: str
    recipe: StudyRecipe
    spec: CollectSpec
    throughput: Throughput
    hash: str

    @property
    def folder(self) -> Path:
        """Where everything of this recipe is kept."""
        return cache_dir("trained", self.hash[:16])

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
    where = f"{study.study}: training.{label}"
    try:
        recipe = StudyRecipe.model_validate(dict(data))
    except ValidationError as error:
        problem = error.errors()[0]
        place = ".".join(map(str, problem["loc"]))
        hint = nearest(str(problem["loc"][0]), StudyRecipe.model_fields) if problem["type"] == "extra_forbidden" else ""
        raise UsageError(f"{where}.{place}: {problem['msg']}.{hint}") from error
    for name, known in (("environment", study.environments), ("actor", study.actors)):
        given = getattr(recipe, name)
        if isinstance(given, str) and given not in known:
            raise UsageError(f"{where}.{name}: {given!r} is no label.{nearest(given, known)}")
    spec = _spec(study, recipe, where)
    environment = spec.make_environment()
    made = Prepared(label, recipe, spec, _throughput(study), "")
    parts = {
        "collect": spec.identity(environment),
        "units": [recipe.tasks, recipe.first_task, recipe.trajectories],
        "pairs": [recipe.margin, recipe.tie_share, recipe.ab_only],
        "base": [recipe.base, recipe.revision],
        "judges": {judge: _plain(made.settings(judge)) for judge in JUDGES},
        "recipe": RECIPE,
    }
    return Prepared(label, recipe, spec, made.throughput, digest(parts))


def _plain(settings: Settings | None) -> Any:
    return None if settings is None else {name: getattr(settings, name) for name in settings.__dataclass_fields__}


def _spec(study: Study, recipe: StudyRecipe, where: str) -> CollectSpec:
    place = study.environments[recipe.environment]
    label = recipe.actor if isinstance(recipe.actor, str) else ""
    actor = study.actors[label].resolved(recipe.environment, label) if label else recipe.actor
    source = Plug(plugin="environment")
    if recipe.candidates is not None:
        if recipe.candidates not in study.candidates:
            raise UsageError(f"{where}.candidates: no such label.{nearest(recipe.candidates, study.candidates)}")
        found = study.candidates[recipe.candidates].resolved(recipe.environment, label)
        source = Plug(plugin=found.plugin or "", params=dict(found.params))
    return CollectSpec(
        environment=Plug(plugin=place.plugin or "", params=dict(place.params)),
        actor=Plug(plugin=actor.plugin or "", params=dict(actor.params)),  # type: ignore[union-attr]
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
    return Throughput(
        workers=resolve_workers(study.throughput),
        backend=study.throughput.backend,
        call_s=study.policy.call_timeout_s,
        step_s=study.policy.step_timeout_s,
        episode_s=study.policy.episode_timeout_s,
    )


def prepare(study: Study, *, dry: bool = False, say: Say = print) -> Study:
    """Train what the study's judges and candidate sources name, and put the folders in their place.

    Args:
        study: from `load_study`.
        dry: train nothing; say what would be trained.
        say: where progress lines go.

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
        places[name] = str(known[label].folder / part)
        try:
            _make(known[label], part, dry, say)
        except KeyboardInterrupt:
            say(f"Stopped at {label}/{part}. Branches and checkpoints are kept: the same command goes on from there.")
            raise
    return _replaced(study, places)


def _make(one: Prepared, part: str, dry: bool, say: Say) -> None:
    folder = one.folder / part
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / RECIPE_FILE).exists():
        write_json(folder / RECIPE_FILE, {"hash": one.hash, "recipe": one.label})
    ready = one.trained(part) if part in JUDGES else (folder / CARD).exists()  # type: ignore[arg-type]
    if ready:
        return
    if dry:
        say(f"to be trained first: {one.label}/{part} ({one.recipe.tasks} tasks of {one.recipe.environment})")
        return
    collected(one, say)
    if part in JUDGES:
        paired(one, say)
        train(one, part, say)  # type: ignore[arg-type]


def collected(one: Prepared, say: Say = print) -> Collected:
    """The recipe's branches, collected now or found."""
    began, last = time.monotonic(), 0.0

    def progress(done: int, total: int, _: Mapping[str, Any]) -> None:
        nonlocal last
        if done == total or time.monotonic() - last > 10:
            last = time.monotonic()
            rate = done / max(last - began, 1e-9)
            left = (total - done) / rate
            say(f"{one.label}: branches of {done}/{total} tasks, {rate:.2g} tasks/s, {left:.0f} s to go")

    made = collect(one.spec, one.folder / "branches", one.throughput, progress)
    if not made.complete:
        reasons = "; ".join(f"{n} x {reason}" for reason, n in made.reasons.items())
        raise UsageError(f"{one.label}: {made.statuses.get('failed')} branch units failed ({reasons}). Run it again.")
    return made


def paired(one: Prepared, say: Say = print) -> PairCounts:
    """The recipe's pairs, made anew from its branches (seconds)."""
    recipe = one.recipe
    margins = {} if recipe.margin is None else {one.spec.environment.plugin: recipe.margin}
    counts = make_pairs(
        [one.folder / "branches"],
        one.folder / "pairs",
        margins=margins,
        tie_share=recipe.tie_share,
        seed=recipe.seed,
        ab_only=recipe.ab_only,
    )
    for row in counts.table4():
        say(f"{one.label}: pairs {', '.join(f'{key} {value}' for key, value in row.items())}")
    return counts


def train(one: Prepared, judge: Judge, say: Say = print) -> Path:
    """One judge of the recipe, trained now or found."""
    from methods.training.critic import train_critic
    from methods.training.sft import train_comparator

    settings = one.settings(judge)
    if settings is None:
        raise UsageError(f"training.{one.label} leaves the {judge} out; write `{judge}: {{}}` to train it.")
    fit = train_comparator if judge == "comparator" else train_critic
    began, last = time.monotonic(), 0.0

    def progress(step: int, steps: int, numbers: Mapping[str, Any]) -> None:
        nonlocal last
        if step == steps or time.monotonic() - last > 10:
            last = time.monotonic()
            left = (last - began) / max(step, 1) * (steps - step)
            shown = ", ".join(f"{k} {v:.3f}" for k, v in numbers.items() if isinstance(v, float))
            say(f"{one.label}/{judge}: step {step}/{steps}, {left:.0f} s to go {shown}")

    recipe = one.recipe
    fit(
        one.folder / "pairs",
        one.folder / judge,
        recipe.base,
        revision=recipe.revision,
        settings=settings,
        progress=progress,
    )
    say(f"{one.label}/{judge}: trained in {time.monotonic() - began:.0f} s, kept in {one.folder / judge}")
    return one.folder / judge


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
