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
from harness.panels import task_ids
from harness.registry import KINDS, Kind, check_params, load, names


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
    """Run the suite of one plugin. Raises `UsageError` when it cannot be imported or takes no such parameters."""
    target = load(kind, name)  # the import is not part of what the constructor does
    check_params(kind, name, params or {})
    built: list[Any] = []

    def constructor_only_stores(_: Any) -> None:
        """The constructor only stores parameters."""
        began = time.perf_counter()
        built.append(target(**(params or {})))
        took = time.perf_counter() - began
        require(took < 0.25, f"it takes {took:.2f} s; work belongs into the first use")

    first = run_checks(kind, name, (constructor_only_stores,), None)
    if not built:
        return first
    plugin = built[0]
    if kind == "environments":
        return first + _environment(name, plugin, split)
    if kind == "candidates":
        return first + run_checks(kind, name, SOURCE_CHECKS, SourceSubject(plugin))
    checks: Any = {"methods": METHOD_CHECKS, "judges": JUDGE_CHECKS, "actors": ACTOR_CHECKS}[kind]
    return first + run_checks(kind, name, checks, plugin)


def _environment(name: str, plugin: Any, split: str | None) -> list[Finding]:
    wanted = split or "test"
    tasks: list[str] = []

    def names_its_tasks(_: Any) -> None:
        """It lists the tasks of a split."""
        tasks.extend(task_ids(name, plugin, wanted))
        require(bool(tasks), f"the split {wanted!r} has no tasks to check on")

    def closes(_: Any) -> None:
        """It can be closed."""
        plugin.close()

    findings = run_checks("environments", name, (names_its_tasks,), None)
    if tasks:
        findings += run_checks("environments", name, CHECKS, EnvironmentSubject(plugin, wanted, tasks[0]))
    return findings + run_checks("environments", name, (closes,), None)
