"""What was planned: the cells of a study as the tracker and the reports need them.

A row count says nothing without the count that was meant.  `PlannedCell` carries the labels, the tasks, the metric and
the parameters that may be shown; it travels with each MLflow run as `cell.json`, so that a colleague who has only the
tracking server sees which cells and episodes are missing.  Parameters pass an allow-list: numbers and flags always,
texts only under a known harmless name, and nothing at all under a name that sounds like a secret.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from harness import registry
from harness.errors import UsageError
from harness.rows import Row, Scalar

SECRET: Final = re.compile(r"key|token|secret|passw|credential|auth|bearer|cookie|session|header|signature", re.I)
# Names that hold such a word and are counts, not secrets.
COUNTS: Final = frozenset(
    {"max_tokens", "prompt_tokens", "completion_tokens", "max_new_tokens", "max_completion_tokens"}
)
TEXTS: Final = frozenset(
    [
        "actor",
        "architecture",
        "catalogue",
        "competence",
        "comparator",
        "critic",
        "data_version",
        "dataset",
        "device",
        "dtype",
        "engine",
        "environment",
        "games",
        "generator",
        "intervention",
        "judge",
        "kind",
        "level",
        "method",
        "metric",
        "mode",
        "model",
        "name",
        "order",
        "panel",
        "plugin",
        "policy",
        "prompt_hash",
        "prompt_version",
        "quantization",
        "render",
        "revision",
        "sha256",
        "simulated",
        "source",
        "sources",
        "split",
        "strategy",
        "text_mode",
        "tie",
        "tie_rule",
        "user",
        "user_simulator",
        "variant",
        "version",
    ]
)


@dataclass(frozen=True, slots=True)
class PlannedCell:
    """One cell of a plan; `known` is False when it was guessed from what was recorded, `skipped` says why not run."""

    key: str
    study: str
    method: str
    actor: str
    environment: str
    seed: int
    split: str
    tasks: tuple[str, ...]
    metric: str = "success_rate"
    params: Mapping[str, Scalar] = field(default_factory=dict)
    known: bool = True
    skipped: str = ""

    @property
    def name(self) -> str:
        """A readable run name."""
        return f"{self.method} | {self.actor} | {self.environment} | seed {self.seed}"

    def to_json(self) -> dict[str, Any]:
        """The cell as JSON; `from_json` gives it back."""
        return asdict(self) | {"tasks": list(self.tasks), "params": dict(self.params)}

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> PlannedCell:
        """The inverse of `to_json`. Raises KeyError for a missing field."""
        return PlannedCell(**{**data, "tasks": tuple(data["tasks"])})


def read_plan(folder: Path) -> list[PlannedCell]:
    """The plan of a results folder, from its `study.json` and `panels.json`; empty when it keeps none.

    Raises:
        UsageError: a damaged file, or one of another schema.
    """
    from harness import results

    stored = results.stored_study(folder)
    if stored is None:
        return []
    panels = results.kept_panels(folder)
    tasks = {label: panel.ids for label, panel in panels.items()}
    entries = [(cell, "") for cell in stored["cells"] if cell.get("current", True)]
    entries += [(cell, str(cell["reason"])) for cell in stored.get("skipped", [])]
    return [planned_from(str(stored["study"]), cell, tasks.get(cell["environment"], ()), why) for cell, why in entries]


def planned_from(study: str, cell: Mapping[str, Any], tasks: Sequence[str], skipped: str = "") -> PlannedCell:
    """What tracker and reports need of a cell as `study.json` stores it; `skipped` is why it is not run."""
    identity = cell["identity"]
    plugin = str(identity.get("environment", {}).get("plugin", cell["environment"]))
    return PlannedCell(
        key=str(cell["key"]),
        study=study,
        method=str(cell["method"]),
        actor=str(cell["actor"]),
        environment=str(cell["environment"]),
        seed=int(cell["seed"]),
        split=str(cell["split"]),
        tasks=tuple(tasks),
        metric=str(cell.get("metric") or metric_of(plugin)),
        params=public_params(identity),
        skipped=skipped,
    )


def public_params(identity: Mapping[str, Any]) -> dict[str, Scalar]:
    """The parameters of a cell's identity that may be logged, flattened to `part.name`, sorted."""
    found = {name: value for name, value in _leaves(identity, ()) if _shown(name, value)}
    return dict(sorted(found.items()))


def metric_of(plugin: str) -> str:
    """The metric that an environment plugin states, or the guess when it is not installed here."""
    try:
        return str(registry.load("environments", plugin).metric)
    except UsageError:
        return guess_metric(plugin)


def cells_from_rows(rows: Iterable[Row]) -> list[PlannedCell]:
    """The cells that rows come from, when no plan is at hand: nothing can be known to be missing."""
    tasks: dict[str, list[str]] = {}
    first: dict[str, Row] = {}
    for row in rows:
        key = str(row["cell"])
        first.setdefault(key, row)
        tasks.setdefault(key, []).append(str(row["task_id"]))
    return [
        PlannedCell(
            key=key,
            study=str(row["study"]),
            method=str(row["method"]),
            actor=str(row["actor"]),
            environment=str(row["environment"]),
            seed=int(row["seed"] or 0),
            split=str(row["split"]),
            tasks=tuple(tasks[key]),
            metric=guess_metric(str(row["environment"])),
            known=False,
        )
        for key, row in first.items()
    ]


def guess_metric(environment: str) -> str:
    """The metric of an environment by its name: only WebShop reports a mean reward."""
    return "mean_reward" if "webshop" in environment.lower() else "success_rate"


def _leaves(value: object, path: tuple[str, ...]) -> Iterator[tuple[str, Scalar]]:
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _leaves(inner, (*path, str(name)))
    elif value is None or isinstance(value, (str, int, float, bool)):
        yield ".".join(path), value
    elif isinstance(value, (list, tuple)) and all(isinstance(item, (int, float, str)) for item in value):
        yield ".".join(path), ", ".join(map(str, value))


def _shown(name: str, value: Scalar) -> bool:
    parts = name.split(".")
    if any(SECRET.search(part) and part not in COUNTS for part in parts):
        return False
    return value is None or isinstance(value, (bool, int, float)) or parts[-1] in TEXTS
