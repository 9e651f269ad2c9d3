"""Study: one YAML file that says what is compared, and nothing about how the machine gets through it.

The settings are of three kinds, and only the first decides what a finished episode is worth keeping for:

* identity: environments (plugin, parameters, split, tasks, `max_steps`), actors, methods with their judges and
  candidate sources, seeds, `rules`.  A change gives other cells.
* policy: time limits, retries, how to stop.  A time-out is a status of its own and never a score, so limits do not
  change what a finished row says.
* throughput: backend and workers; and whatever parameters a plugin names in its class attribute `throughput`.

Labels (`methods: {cota: ...}`) are what tables show; a plugin's name defaults to its label.  `overrides` change a part
for one environment (`retail`) or one environment and actor (`retail/medium`), the more special one last.  A study may
build on another one (`extends`, see `harness.extends`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    PrivateAttr,
    ValidationError,
    field_validator,
    model_validator,
)

from harness import yamlfile
from harness.errors import UsageError, nearest
from harness.extends import extended
from harness.study_check import SECTIONS, check, complain

Tool = Literal["comparator", "critic", "adviser", "candidates"]
TOOLS: tuple[Tool, ...] = ("comparator", "critic", "adviser", "candidates")
LocalBackend = Literal["loky", "threading", "sequential"]
Backend = LocalBackend | Literal["dask"]
LABEL = r"^[A-Za-z0-9][A-Za-z0-9_.+-]{0,63}$"
# What every seeded library takes and every table can hold (numpy, torch, 32-bit columns).
Seed = Annotated[int, Field(ge=0, lt=2**31)]
MAX_STEPS: Final = 100_000
MAX_WORKERS: Final = 1024


class Model(BaseModel):
    """Base: unknown keys are errors, values never change afterwards, `8` is no text and `"8"` no number."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Change(Model):
    """What an override may change: parameters are merged, the rest replaced."""

    plugin: str | None = None
    params: dict[str, JsonValue] = Field(default_factory=dict)


class Part(Change):
    """A plugin with parameters, under a label."""

    overrides: dict[str, Change] = Field(default_factory=dict)

    def resolved(self, environment: str, actor: str) -> Change:
        """Plugin and parameters for one environment and actor, overrides applied."""
        found: Change = self
        for key in (environment, f"{environment}/{actor}"):
            if key in self.overrides:
                found = _merged(found, self.overrides[key])
        return found


class EnvironmentPart(Change):
    """Where episodes happen: which tasks of which split, how many steps, optionally pinned to a panel."""

    split: str = "test"
    tasks: int | Literal["all"] | list[str] = "all"
    first: int = Field(default=0, ge=0)
    max_steps: int | None = Field(default=None, ge=1, le=MAX_STEPS)
    panel: str | None = Field(default=None, pattern="^[0-9a-f]{8,64}$")

    @field_validator("tasks", mode="before")
    @classmethod
    def _ids_are_text(cls, tasks: Any) -> Any:
        if isinstance(tasks, list):
            tasks = [str(task) if type(task) is int else task for task in tasks]
            fits = all(isinstance(task, str) for task in tasks)
        else:
            fits = type(tasks) is int or tasks == "all"
        if not fits:
            raise ValueError("should be a number of tasks, a list of ids, or 'all'")
        return tasks

    @field_validator("tasks")
    @classmethod
    def _some(cls, tasks: Any) -> Any:
        if tasks in (0, []) or (isinstance(tasks, int) and tasks < 0):
            raise ValueError("at least one task is needed: a number, a list of ids, or 'all'")
        if isinstance(tasks, list) and len(set(tasks)) != len(tasks):
            raise ValueError(f"task ids stand twice: {', '.join(sorted({t for t in tasks if tasks.count(t) > 1}))}")
        return tasks


class MethodChange(Change):
    """An override of a method may also name other judges or candidates."""

    comparator: str | None = None
    critic: str | None = None
    adviser: str | None = None
    candidates: str | None = None


class MethodPart(MethodChange):
    """A method and the labels of what it uses."""

    overrides: dict[str, MethodChange] = Field(default_factory=dict)

    def resolved(self, environment: str, actor: str) -> MethodChange:
        """Plugin, parameters and tool labels for one environment and actor, overrides applied."""
        found: MethodChange = self
        for key in (environment, f"{environment}/{actor}"):
            if key in self.overrides:
                found = _merged(found, self.overrides[key])
        return found


class Rules(Model):
    """Rules of the episode loop that change outcomes (identity)."""

    replans: int = Field(default=2, ge=0, le=20)


class Policy(Model):
    """How hard to try (never identity). Seconds; None: no limit."""

    call_timeout_s: float | None = Field(default=300.0, gt=0)
    step_timeout_s: float | None = Field(default=None, gt=0)
    episode_timeout_s: float | None = Field(default=3600.0, gt=0)
    kill_after_s: float = Field(default=60.0, gt=0)  # past the episode limit, before its worker process is killed
    retry_failed: bool = True  # failed and timed-out episodes of earlier invocations are run again
    attempts: int = Field(default=1, ge=1, le=20)  # tries of one episode within one invocation
    worker_deaths: int = Field(default=3, ge=1, le=20)  # after so many dead workers an episode is recorded as failed
    max_failures: int | None = Field(default=None, ge=1)  # stop handing out after so many failures
    stop_grace_s: float = Field(default=30.0, ge=0)  # how long Ctrl-C waits for running episodes


class Throughput(Model):
    """How to use the machine (never identity).

    `workers: auto` is one a core; of a cluster, one a thread.  `traces` episodes of each cell go to MLflow as traces.
    """

    backend: Backend = "loky"
    workers: int | Literal["auto"] = "auto"
    processes: int | Literal["auto"] = 1  # that the threads of `threading` are spread over
    traces: int = Field(default=2, ge=0, le=1000)  # so many episodes of each cell are shown step by step; 0: none
    address: str | None = None  # of a dask scheduler, `tcp://HOST:8786`
    worker_wait_s: float = Field(default=60.0, gt=0)  # without any worker in the cluster, before the run stops

    @model_validator(mode="after")
    def _threads_only(self) -> Throughput:
        if self.processes != 1 and self.backend != "threading":
            raise ValueError("`processes` spreads threads over processes: it goes with `backend: threading`")
        return self

    @field_validator("workers", "processes")
    @classmethod
    def _positive(cls, workers: Any) -> Any:
        if workers != "auto" and not 1 <= workers <= MAX_WORKERS:
            raise ValueError(f"at least 1 and at most {MAX_WORKERS}, or 'auto'")
        return workers


class Skip(Model):
    """Combinations that are planned but not run; an absent label means all. The reason is printed and stored."""

    method: str | None = None
    actor: str | None = None
    environment: str | None = None
    seed: Seed | None = None
    reason: str = Field(min_length=3)


@dataclass(frozen=True)
class Origin:
    """Where a study stands and how it writes the plugins that are files; two studies are equal wherever they stand."""

    document: yamlfile.Document | None = field(default=None, compare=False)
    written: Mapping[str, str] = field(default_factory=dict, compare=False)


class Study(Model):
    """A validated study; `load_study` reads one."""

    study: str = Field(pattern=LABEL)
    title: str = ""
    fills: str = ""
    hours: str | float | int = ""
    notes: str = ""
    extends: str | None = None  # what these two say is done before validation (`harness.extends`)
    only: dict[str, list[str]] = Field(default_factory=dict)
    environments: dict[str, EnvironmentPart] = Field(min_length=1)
    actors: dict[str, Part] = Field(min_length=1)
    judges: dict[str, Part] = Field(default_factory=dict)
    candidates: dict[str, Part] = Field(default_factory=dict)
    methods: dict[str, MethodPart] = Field(min_length=1)
    seeds: list[Seed] = Field(min_length=1)
    rules: Rules = Rules()
    skip: list[Skip] = Field(default_factory=list)
    training: dict[str, dict[str, JsonValue]] = Field(default_factory=dict)  # read by the package that trains judges
    diversity: dict[str, dict[str, JsonValue]] = Field(default_factory=dict)  # read by `cota-bench diversity`
    policy: Policy = Policy()
    throughput: Throughput = Throughput()
    _origin: Origin = PrivateAttr(default_factory=Origin)

    def written(self, plugin: str | None) -> str | None:
        """A plugin as the study file writes it: a path there is relative, here it is resolved (identity takes text)."""
        return self._origin.written.get(plugin or "", plugin)

    def where(self, *path: str | int) -> str:
        """`file:line:column` of a part of the study, or its name when it was made in memory."""
        return self._origin.document.where(path) if self._origin.document is not None else self.study

    @model_validator(mode="before")
    @classmethod
    def _named(cls, data: Any) -> Any:
        """`origin:` alone means the plugin of that name with its defaults."""
        if not isinstance(data, Mapping):
            return data
        data = dict(data)
        for section in ("environments", "actors", "judges", "candidates", "methods"):
            if isinstance(data.get(section), Mapping):
                data[section] = {label: _part(label, part) for label, part in data[section].items()}
        return {key: value for key, value in data.items() if value is not None}

    @field_validator("seeds")
    @classmethod
    def _distinct(cls, seeds: list[int]) -> list[int]:
        if len(set(seeds)) != len(seeds):
            raise ValueError("a seed stands twice")
        return seeds

    def __str__(self) -> str:
        return self.study


def _part(label: Any, part: Any) -> Any:
    if part is None:
        part = {}
    if not isinstance(part, Mapping):
        return part
    return {"plugin": str(label)} | {key: value for key, value in part.items() if value is not None}


def _merged(base: Any, change: Any) -> Any:
    given = {name: getattr(change, name) for name in change.model_fields_set if name != "params"}
    if given.get("plugin", base.plugin) != base.plugin:
        return base.model_copy(update=given | {"params": dict(change.params)})
    return base.model_copy(update=given | {"params": base.params | change.params})


def parse_study(document: yamlfile.Document) -> Study:
    """A study from a loaded document. Raises `UsageError` listing everything that is wrong, each with its place."""
    document = extended(document, _beside)
    if not isinstance(document.data, Mapping):
        raise UsageError(f"{document.source}: a study is a mapping with keys such as {', '.join(Study.model_fields)}.")
    try:
        study = Study.model_validate(document.data)
    except ValidationError as error:
        raise complain(error, document, Study) from error
    study = _located(study, document)
    check(study, document)
    return study


def _beside(name: str, folder: Path) -> yamlfile.Document:
    """The study that another one extends: a file beside it, or one by name."""
    near = folder / (name if name.endswith((".yaml", ".yml")) else f"{name}.yaml")
    return yamlfile.load(near if near.is_file() else find(name))


def _located(study: Study, document: yamlfile.Document) -> Study:
    """The study with plugins in files (`file.py:Class`) by absolute path: beside the study first, then from here."""
    written: dict[str, str] = {}
    folder = Path(document.source).parent

    def place(part: Any) -> Any:
        change: dict[str, Any] = {}
        text = part.plugin
        if text is not None and ".py:" in text:
            file, _, attribute = text.rpartition(":")
            found = next((path for path in (folder / file, Path(file)) if path.is_file()), None)
            if found is not None:
                change["plugin"] = f"{found.resolve()}:{attribute}"
                written[change["plugin"]] = text
        if getattr(part, "overrides", None):
            change["overrides"] = {key: place(inner) for key, inner in part.overrides.items()}
        return part.model_copy(update=change) if change else part

    parts = {name: {label: place(part) for label, part in getattr(study, name).items()} for name in SECTIONS}
    made = study.model_copy(update=parts)
    made._origin = Origin(document, written)
    return made


def load_study(name_or_path: str | Path) -> Study:
    """A study by its name in `experiments/` or by the path of a YAML file. Raises `UsageError`."""
    return parse_study(yamlfile.load(find(name_or_path)))


def find(name_or_path: str | Path) -> Path:
    """The file of a study. Raises `UsageError` with the nearest name."""
    given = Path(name_or_path)
    if given.suffix in (".yaml", ".yml") or given.is_file():
        if not given.is_file():
            raise UsageError(f"There is no study file {given}.{nearest(given.stem, known())}")
        return given
    studies = known()
    if str(name_or_path) not in studies:
        raise UsageError(f"Unknown study {str(name_or_path)!r}.{nearest(str(name_or_path), studies)}")
    return studies[str(name_or_path)]


def known() -> dict[str, Path]:
    """Studies by name: `./experiments` of the working directory first, then those that came with the package."""
    return {path.stem: path for folder in reversed(list(_folders())) for path in sorted(folder.glob("*.yaml"))}


def _folders() -> Iterator[Path]:
    if Path("experiments").is_dir():
        yield Path("experiments")
    with resources.as_file(resources.files("experiments")) as folder:
        yield folder
