"""What the `alfworld` package ships: domain, grammar, goal templates and tables of what goes where.

The files are read where they lie.  The package itself is never imported: importing it creates a folder in the user's
home and sets an environment variable.
"""

from __future__ import annotations

import functools
import importlib.util
from pathlib import Path
from types import ModuleType

from harness.errors import UsageError

INSTALL = "Install the environment's packages with `pip install 'cota-bench[alfworld]'` (a C++ compiler is needed)."


@functools.cache
def root() -> Path:
    """The installed package's folder. Raises `UsageError` when it is not installed."""
    spec = importlib.util.find_spec("alfworld")
    if spec is None or not spec.submodule_search_locations:
        raise UsageError(f"alfworld is not installed. {INSTALL}")
    return Path(next(iter(spec.submodule_search_locations)))


def check_engine() -> None:
    """Raises `UsageError` when TextWorld or its planner is missing."""
    for name in ("textworld", "fast_downward", "tatsu"):
        if importlib.util.find_spec(name) is None:
            raise UsageError(f"alfworld needs the module {name!r}, which is not installed. {INSTALL}")


@functools.cache
def domain() -> str:
    """The PDDL domain."""
    return (root() / "data" / "alfred.pddl").read_text(encoding="utf-8")


@functools.cache
def grammar() -> str:
    """The text grammar, with `UNKNOWN GOAL` in the task sentence's place."""
    return (root() / "data" / "alfred.twl2").read_text(encoding="utf-8")


@functools.cache
def _module(name: str) -> ModuleType:
    path = root() / "gen" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"_alfworld_{name}", path)
    if spec is None or spec.loader is None:
        raise UsageError(f"alfworld's file {path} cannot be read. {INSTALL}")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@functools.cache
def holds() -> dict[str, tuple[str, ...]]:
    """Object types by the receptacle type that can hold them."""
    table = _module("constants").VAL_RECEPTACLE_OBJECTS
    return {str(place): tuple(sorted(things)) for place, things in table.items()}


@functools.cache
def able(what: str) -> frozenset[str]:
    """Object types that are "Heatable", "Coolable", "Cleanable", "Toggleable" or "Sliceable"."""
    return frozenset(_module("constants").VAL_ACTION_OBJECTS[what])


@functools.cache
def openable() -> frozenset[str]:
    """Receptacle types that open and close."""
    return frozenset(_module("constants").OPENABLE_CLASS_LIST)


def goal(kind: str, thing: str, place: str) -> str:
    """The PDDL goal of a task type; `place` is the lamp's type for `look_at_obj_in_light`."""
    text = str(_module("goal_library").gdict[kind]["pddl"])
    return text.format(obj=thing, recep=place, toggle=place).replace("#", "-")


def sentences(kind: str, thing: str, place: str) -> list[str]:
    """The wordings of a task, without the final full stop."""
    found = _module("goal_library").gdict[kind]["templates"]
    return [str(text).format(obj=thing.lower(), recep=place.lower(), toggle=place.lower()) for text in found]
