"""What to collect: identity (decides the branches) apart from throughput (decides only how fast they come).

A branch folder keeps its identity in `collect.json`; going on with another identity is refused with the keys that
differ.  The number of tasks is no identity: a folder can grow.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from harness.errors import UsageError
from harness.protocols import Actor, CandidateSource, Environment
from harness.registry import create, names
from harness.seeds import digest

FORMAT = 1


class Plug(BaseModel):
    """A plugin and its parameters."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    plugin: str
    params: dict[str, Any] = Field(default_factory=dict)


class CollectSpec(BaseModel):
    """One branch collection: an environment, its frozen source actor and how branches are taken.

    Attributes:
        environment: environment plugin.
        actor: the source actor, also the continuation actor (the paper: Qwen3-8B at low temperature).
        split: where tasks come from; never the evaluation panel's.
        evaluation_splits: splits whose tasks are kept for evaluation: collecting one of them is refused, and their
            ids and content hashes stay with the branches for the leak check of the pairs. None: validation and test,
            as far as the environment's data holds them.
        tasks: how many tasks, from the beginning of the split's order; None: all.
        first_task: index at which to begin.
        trajectories: base trajectories a task.
        seed: names every random stream.
        share, most_points: min(ceil(share * T), most_points) decision points (paper appendix B.2).
        alternatives: up to so many legal actions beside the base action.
        continuations: M, rollouts an action; Q-hat is their mean.
        candidates: where alternatives come from; the default is the environment's own legal actions.
        max_steps: step budget of a trajectory; None: the environment's.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)
    environment: Plug
    actor: Plug
    split: str = "train"
    evaluation_splits: tuple[str, ...] | None = None
    tasks: int | None = Field(default=None, ge=1)
    first_task: int = Field(default=0, ge=0)
    trajectories: int = Field(default=1, ge=1)
    seed: int = 0
    share: float = Field(default=0.5, gt=0, le=1)
    most_points: int = Field(default=10, ge=1)
    alternatives: int = Field(default=5, ge=1)
    continuations: int = Field(default=1, ge=1)
    candidates: Plug = Plug(plugin="environment")
    max_steps: int | None = Field(default=None, ge=1)

    def identity(self, environment: Environment) -> dict[str, Any]:
        """All that decides which branches come out for a given task, as JSON."""
        kept = self.model_dump(mode="json", exclude={"tasks", "first_task", "trajectories", "evaluation_splits"})
        kept["format"] = FORMAT
        kept["version"] = environment.version
        kept["max_steps"] = self.budget(environment)
        return kept

    def budget(self, environment: Environment) -> int:
        """The step limit of a trajectory."""
        return self.max_steps or environment.max_steps

    def units(self, environment: Environment) -> list[tuple[str, int]]:
        """(task id, trajectory) of all that is to be collected, in a fixed order."""
        ids = list(environment.tasks(self.split))[self.first_task :]
        ids = ids[: self.tasks] if self.tasks is not None else ids
        if not ids:
            where = f"Split {self.split!r} of {environment.name}"
            raise UsageError(f"{where} has no task from number {self.first_task} on; set `first_task` lower.")
        return [(task_id, trajectory) for trajectory in range(self.trajectories) for task_id in ids]

    def make_environment(self) -> Environment:
        """A fresh environment."""
        made: Environment = create("environments", self.environment.plugin, self.environment.params)
        return made

    def make_actor(self) -> Actor:
        """The frozen source actor."""
        made: Actor = create("actors", self.actor.plugin, self.actor.params)
        return made

    def make_source(self) -> CandidateSource:
        """Where alternatives come from."""
        made: CandidateSource = create("candidates", self.candidates.plugin, self.candidates.params)
        return made


class Throughput(BaseModel):
    """How fast, and when to give up: nothing here changes a branch. Seconds; None: no limit."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    workers: int = Field(default=1, ge=1)
    backend: Literal["loky", "threading", "sequential"] = "loky"
    call_s: float | None = None
    step_s: float | None = None
    episode_s: float | None = None


def make_spec(data: dict[str, Any]) -> CollectSpec:
    """A validated spec from parsed YAML; `environment: webshop` is short for `{plugin: webshop}`.

    Raises:
        UsageError: unknown key, wrong type, unknown plugin: with the place and the valid values.
    """
    from pydantic import ValidationError

    def plug(value: Any) -> Any:
        return {"plugin": value} if isinstance(value, str) else value

    roles = ("environment", "actor", "candidates")
    data = {key: plug(value) if key in roles else value for key, value in data.items()}
    try:
        spec = CollectSpec.model_validate(data)
    except ValidationError as error:
        problems = "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors())
        valid = ", ".join(CollectSpec.model_fields)
        raise UsageError(f"The collection is not valid: {problems}. Keys: {valid}.") from error
    for kind, name in (("environments", spec.environment.plugin), ("actors", spec.actor.plugin)):
        if name not in names(kind):  # type: ignore[arg-type]
            raise UsageError(f"Unknown {kind[:-1]} {name!r}. Valid: {', '.join(names(kind))}.")  # type: ignore[arg-type]
    return spec


def differing(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    """Keys (dotted) in which two identities differ, with both values."""
    found = []
    for key in sorted({*old, *new}):
        before, after = old.get(key), new.get(key)
        if isinstance(before, dict) and isinstance(after, dict):
            found += [f"{key}.{line}" for line in differing(before, after)]
        elif before != after:
            found.append(f"{key}: {before!r} there, {after!r} now")
    return found


def identity_hash(identity: dict[str, Any]) -> str:
    """16 hex digits that name what a collection is."""
    return digest(identity)[:16]
