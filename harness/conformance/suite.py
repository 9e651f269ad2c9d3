"""The suite: which checks go with which kind of plugin."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from harness.conformance.advisors import (
    ACTOR_CHECKS,
    JUDGE_CHECKS,
    METHOD_CHECKS,
    SOURCE_CHECKS,
    SourceSubject,
)
from harness.conformance.base import Finding, require, run_checks
from harness.conformance.environments import CHECKS, EnvironmentSubject
from harness.errors import UsageError, nearest
from harness.registry import KINDS, Kind, create, load, names


def find(name: str, kind: str | None = None) -> list[Kind]:
    """Kinds under which a plugin of this name is registered. Raises `UsageError` when there is none."""
    if ".py:" in name:
        if kind not in KINDS:
            raise UsageError(f"For a plugin in a file, say its kind: --kind {'|'.join(KINDS)}.")
        return [kind]
    if kind is not None and kind not in KINDS:
        raise UsageError(f"Unknown kind {kind!r}.{nearest(kind, KINDS)}")
    kinds = [k for k in KINDS if (kind is None or k == kind) and name in names(k)]
    if not kinds:
        known = [n for k in KINDS for n in names(k)]
        raise UsageError(f"No plugin is called {name!r}.{nearest(name, known)}")
    return kinds


def check(kind: Kind, name: str, params: Mapping[str, Any] | None = None, split: str | None = None) -> list[Finding]:
    """Run the suite of one plugin. Raises `UsageError` when the plugin cannot be imported or built."""
    load(kind, name)  # the import is not part of what the constructor does
    began = time.perf_counter()
    plugin = create(kind, name, params)
    took = time.perf_counter() - began

    def constructor_only_stores(_: Any) -> None:
        """The constructor only stores parameters."""
        require(took < 0.25, f"it takes {took:.2f} s; work belongs into the first use")

    first = run_checks(kind, name, (constructor_only_stores,), plugin)
    if kind == "environments":
        return first + _environment(name, plugin, split)
    if kind == "candidates":
        return first + run_checks(kind, name, SOURCE_CHECKS, SourceSubject(plugin))
    checks: Any = {"methods": METHOD_CHECKS, "judges": JUDGE_CHECKS, "actors": ACTOR_CHECKS}[kind]
    return first + run_checks(kind, name, checks, plugin)


def _environment(name: str, plugin: Any, split: str | None) -> list[Finding]:
    wanted = split or "test"
    tasks = plugin.tasks(wanted)
    if not tasks:
        raise UsageError(f"The split {wanted!r} of {name!r} has no tasks to check on.")
    try:
        return run_checks("environments", name, CHECKS, EnvironmentSubject(plugin, wanted, tasks[0]))
    finally:
        plugin.close()
