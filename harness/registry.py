"""Registry: plugins are found through entry points, never by a list kept by hand or by importing `methods`.

A plugin that fails to import is a message about that plugin; all others stay usable.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Literal

from harness.errors import UsageError, nearest

Kind = Literal["methods", "environments", "actors", "judges", "candidates"]
KINDS: tuple[Kind, ...] = ("methods", "environments", "actors", "judges", "candidates")


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


def load(kind: Kind, name: str) -> type[Any]:
    """The plugin class. Raises `UsageError` for an unknown name (with the nearest) or a plugin that fails to import."""
    points = _points(kind)
    if name not in points:
        raise UsageError(f"Unknown {kind[:-1]} {name!r}.{nearest(name, points)}")
    try:
        target: type[Any] = points[name].load()
    except Exception as error:
        raise UsageError(
            f"The {kind[:-1]} plugin {name!r} ({points[name].value}) fails to import: "
            f"{type(error).__name__}: {error}. Install what it needs (`cota-bench doctor` lists it) or fix the plugin; "
            "the other plugins stay usable."
        ) from error
    return target


def create(kind: Kind, name: str, params: Mapping[str, Any] | None = None) -> Any:
    """An instance from parameters, after `check_params`."""
    target = load(kind, name)
    check_params(kind, name, params or {})
    try:
        return target(**(params or {}))
    except (TypeError, ValueError) as error:
        raise UsageError(f"{kind[:-1]} {name!r} refuses its parameters {dict(params or {})}: {error}") from error


def parameters(kind: Kind, name: str) -> dict[str, inspect.Parameter]:
    """The constructor's parameters by name."""
    found = dict(inspect.signature(load(kind, name).__init__).parameters)
    found.pop("self", None)
    return {key: p for key, p in found.items() if p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)}


def check_params(kind: Kind, name: str, params: Mapping[str, Any]) -> None:
    """Raises `UsageError` for a parameter the plugin does not take, or one it needs and does not get."""
    valid = parameters(kind, name)
    for key in params:
        if key not in valid:
            raise UsageError(f"{kind[:-1]} {name!r} has no parameter {key!r}.{nearest(key, valid)}")
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
