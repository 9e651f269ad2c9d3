"""Registry: plugins are found through entry points, never by a list kept by hand or by importing `methods`.

A plugin that fails to import is a message about that plugin; all others stay usable.
"""

from __future__ import annotations

import importlib.util
import inspect
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any, Literal

from harness.errors import UsageError, nearest
from harness.seeds import digest

Kind = Literal["methods", "environments", "actors", "judges", "candidates"]
KINDS: tuple[Kind, ...] = ("methods", "environments", "actors", "judges", "candidates")


class PluginError(UsageError):
    """The plugin's own code raised; the cause is chained."""


@dataclass(frozen=True, slots=True)
class Plugin:
    """One registered plugin and, when it cannot be imported, why."""

    kind: Kind
    name: str
    target: str
    package: str
    error: str | None
    summary: str


@cache
def _points(kind: Kind) -> dict[str, EntryPoint]:
    found: dict[str, EntryPoint] = {}
    for point in entry_points(group=f"cota_bench.{kind}"):
        other = found.get(point.name)
        if other is not None and other.value != point.value:
            raise UsageError(
                f"Two plugins are called {point.name!r} in cota_bench.{kind}: {other.value} and {point.value}. "
                "Uninstall one of the packages or rename one entry point."
            )
        found[point.name] = point
    return found


def names(kind: Kind) -> list[str]:
    """Registered names of a kind, sorted."""
    return sorted(_points(kind))


@cache
def _from_file(kind: Kind, name: str) -> type[Any]:
    """A class from `path/to/file.py:Class`, so that a plugin can be one file without a package around it."""
    path, _, attribute = name.rpartition(":")
    file = Path(path).resolve()
    if not file.is_file():
        raise UsageError(
            f"{kind[:-1]} plugin {name!r}: there is no file {file}. A path in a study file is relative to the file, "
            "then to the working directory."
        )
    module_name = f"cota_bench_file_{digest(str(file))[:12]}"
    spec = importlib.util.spec_from_file_location(module_name, file)
    if spec is None or spec.loader is None:
        raise UsageError(f"{kind[:-1]} plugin {name!r}: {file} is no Python file.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[module_name] = module  # dataclasses and typing look their module up there
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        del sys.modules[module_name]
        raise UsageError(
            f"The {kind[:-1]} plugin {name!r} fails to import: {type(error).__name__}: {error}. Fix {file}."
        ) from error
    target = getattr(module, attribute, None)
    if not isinstance(target, type):
        classes = [key for key, value in vars(module).items() if isinstance(value, type)]
        raise UsageError(f"{file} has no class {attribute!r}.{nearest(attribute, classes)}")
    return target


def load(kind: Kind, name: str) -> type[Any]:
    """The plugin class, by registered name or as `path/to/file.py:Class`.

    Raises:
        UsageError: the name is unknown (the nearest is named), or the plugin fails to import.
    """
    if ".py:" in name:
        return _from_file(kind, name)
    points = _points(kind)
    if name not in points:
        raise UsageError(f"Unknown {kind[:-1]} {name!r}.{nearest(name, points)}")
    try:
        target: type[Any] = points[name].load()
    except (Exception, SystemExit) as error:
        raise UsageError(
            f"The {kind[:-1]} plugin {name!r} ({points[name].value}) fails to import: "
            f"{type(error).__name__}: {error}. Install what it needs (`cota-bench doctor` lists it) or fix the plugin; "
            "the other plugins stay usable."
        ) from error
    return target


def create(kind: Kind, name: str, params: Mapping[str, Any] | None = None) -> Any:
    """An instance from parameters, after `check_params`. Raises `UsageError` whatever the constructor raises."""
    target = load(kind, name)
    check_params(kind, name, params or {})
    try:
        with explained(kind, name, "its constructor", passed=(TypeError, ValueError)):
            return target(**(params or {}))
    except (TypeError, ValueError) as error:
        raise UsageError(f"{kind[:-1]} {name!r} refuses its parameters {dict(params or {})}: {error}") from error


@contextmanager
def explained(kind: Kind, name: str, call: str, passed: tuple[type[Exception], ...] = ()) -> Iterator[None]:
    """What a plugin's code raises becomes a `PluginError` that names plugin and call; `passed` is let through."""
    through: tuple[type[Exception], ...] = (UsageError, *passed)
    try:
        yield
    except through:
        raise
    except (Exception, SystemExit) as error:
        raise PluginError(
            f"The {kind[:-1]} plugin {name!r} cannot be used: {call} raised {type(error).__name__}: {error}. "
            f"Fix the plugin; `cota-bench check {name} --kind {kind}` tries it on its own."
        ) from error


def parameters(kind: Kind, name: str) -> dict[str, inspect.Parameter]:
    """The constructor's parameters by name, with those that it passes on (`passes_on`: name to default)."""
    found = dict(inspect.signature(load(kind, name).__init__).parameters)
    found.pop("self", None)
    own = {key: p for key, p in found.items() if p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)}
    shared = getattr(load(kind, name), "passes_on", {}) if len(own) < len(found) else {}
    only = inspect.Parameter.KEYWORD_ONLY
    return own | {key: inspect.Parameter(key, only, default=v, annotation=type(v)) for key, v in shared.items()}


SIMPLE: Mapping[str, tuple[type, ...]] = {
    "int": (int,),
    "float": (int, float),
    "bool": (bool,),
    "str": (str,),
    "None": (type(None),),
}


def misfit(parameter: inspect.Parameter, value: Any) -> str | None:
    """What is wrong with the type of a value, or None; only plain annotations (int, float, bool, str, None) can say.

    An annotation is read as text, not evaluated: a plugin may name types that it imports for type checkers alone.
    """
    hint = parameter.annotation
    text = hint.__name__ if isinstance(hint, type) else str(hint)
    words = [word.strip() for word in text.strip("'\"").split("|")]
    if not all(word in SIMPLE for word in words):
        return None
    # A truth value is an int to Python, but never what a number was meant to be.
    if any(isinstance(value, SIMPLE[word]) and (word == "bool" or not isinstance(value, bool)) for word in words):
        return None
    return f"must be {' or '.join(words)}, not {value!r}"


def check_params(kind: Kind, name: str, params: Mapping[str, Any]) -> None:
    """Raises `UsageError` for a parameter that the plugin does not take, needs and does not get, or of wrong type."""
    valid = parameters(kind, name)
    for key in params:
        if key not in valid:
            raise UsageError(f"{kind[:-1]} {name!r} has no parameter {key!r}.{nearest(key, valid)}")
        wrong = misfit(valid[key], params[key])
        if wrong is not None:
            raise UsageError(f"{kind[:-1]} {name!r}: the parameter {key!r} {wrong}.")
    missing = [key for key, p in valid.items() if p.default is p.empty and key not in params]
    if missing:
        raise UsageError(f"{kind[:-1]} {name!r} needs the parameter(s) {', '.join(missing)}.")


def plugins() -> list[Plugin]:
    """All registered plugins; importing each shows which are broken."""
    rows = []
    for kind in KINDS:
        for name, point in sorted(_points(kind).items()):
            error, summary = None, ""
            try:
                summary = (inspect.getdoc(load(kind, name)) or "").split("\n")[0]
            except UsageError as failure:
                error = str(failure)
            package = point.dist.name if point.dist else "?"
            rows.append(Plugin(kind, name, point.value, package, error, summary))
    return rows
