"""Grid: a study's cells and their keys.  A cell is method x actor x environment x seed; it has the panel's tasks.

The key is a hash over the cell's identity: plugins with versions and all parameters (defaults filled in), judges and
candidates, split, panel, step limit, rules, seed, record schema.  Labels, order, policy and throughput are not in it.
A plugin takes part through three optional class attributes or methods: `version` (bumped by hand when outcomes change),
`throughput` (names of parameters that never change outcomes, such as a device or a folder whose content is in the
fingerprints) and `identity()` (more that decides outcomes, such as the revision of loaded weights).

Randomness: `harness.loop.Streams` names every draw by (environment plugin, task, seed, consumer, step, attempt).
Neither method nor actor is among the names, so adding a method never shifts another's draws, and methods meet the same.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from harness import registry
from harness.errors import UsageError
from harness.loop import Limits
from harness.panels import Panel, panels
from harness.records import SCHEMA_VERSION
from harness.seeds import digest
from harness.study import TOOLS, Change, Study

KEY_LENGTH = 16


@dataclass(frozen=True)
class Cell:
    """One cell; `identity` is what `key` hashes, `spec` what a worker builds it from (identity plus throughput)."""

    key: str
    study: str
    method: str
    actor: str
    environment: str
    seed: int
    split: str
    tasks: tuple[str, ...]
    identity: Mapping[str, Any] = field(repr=False)
    spec: Mapping[str, Any] = field(repr=False)

    @property
    def labels(self) -> tuple[str, str, str, int]:
        """(method, actor, environment, seed) as the study calls them."""
        return self.method, self.actor, self.environment, self.seed

    def __str__(self) -> str:
        return f"{self.method} x {self.actor} x {self.environment} x seed {self.seed}"


@dataclass(frozen=True)
class Plan:
    """Everything a study would run; `skipped` are cells that it leaves out, with the reason."""

    study: str
    cells: tuple[Cell, ...]
    panels: Mapping[str, Panel]
    skipped: tuple[tuple[Cell, str], ...] = ()

    @property
    def episodes(self) -> int:
        """Planned episodes, those of skipped cells included."""
        return sum(len(cell.tasks) for cell in (*self.cells, *(cell for cell, _ in self.skipped)))


def plan_cells(study: Study, known: Mapping[str, Panel] | None = None) -> Plan:
    """The cells of a study; `known` are panels to use instead of building environments. Raises `UsageError`."""
    made = dict(known) if known is not None else panels(study)
    cells, skipped = [], []
    for cell in _cells(study, made):
        reason = _skip(study, cell)
        if reason is None:
            cells.append(cell)
        else:
            skipped.append((cell, reason))
    _distinct(cells)
    return Plan(study.study, tuple(cells), made, tuple(skipped))


def limits(study: Study, cell: Cell) -> Limits:
    """Limits of one episode: steps and replans from the identity, seconds from the policy."""
    policy = study.policy
    return Limits(
        max_steps=cell.identity["environment"]["max_steps"],
        replans=cell.identity["rules"]["replans"],
        call_s=policy.call_timeout_s,
        step_s=policy.step_timeout_s,
        episode_s=policy.episode_timeout_s,
    )


def explain(cell: Cell) -> str:
    """The parts of a key, one a line, in the order they are hashed."""
    parts = [f"{path} = {json.dumps(value, ensure_ascii=False)}" for path, value in flat(cell.identity)]
    return "\n".join([f"cell {cell.key}: {cell}", *(f"  {part}" for part in parts)])


def flat(value: Any, path: str = "") -> list[tuple[str, Any]]:
    """(dotted path, leaf) of a JSON value, sorted by path."""
    if isinstance(value, Mapping) and value:
        return [leaf for key in sorted(value) for leaf in flat(value[key], f"{path}.{key}" if path else str(key))]
    return [(path, value)]


def difference(old: Any, new: Any) -> list[str]:
    """What differs between two identities, as `path: old -> new`."""
    before, after = dict(flat(old)), dict(flat(new))
    gone = object()
    lines = []
    for path in sorted(before.keys() | after.keys()):
        a, b = before.get(path, gone), after.get(path, gone)
        if a is gone or b is gone or digest(a) != digest(b):
            shown = ["(absent)" if x is gone else json.dumps(x, ensure_ascii=False) for x in (a, b)]
            lines.append(f"{path}: {shown[0]} -> {shown[1]}")
    return lines


def _cells(study: Study, made: Mapping[str, Panel]) -> Iterator[Cell]:
    for environment in study.environments:
        panel = made[environment]
        for actor in study.actors:
            for method in study.methods:
                spec, identity = _describe(study, method, actor, environment, panel)
                for seed in study.seeds:
                    own = identity | {"seed": seed}
                    yield Cell(
                        key=digest(own)[:KEY_LENGTH],
                        study=study.study,
                        method=method,
                        actor=actor,
                        environment=environment,
                        seed=seed,
                        split=study.environments[environment].split,
                        tasks=panel.ids,
                        identity=own,
                        spec=spec,
                    )


def _describe(
    study: Study, method: str, actor: str, environment: str, panel: Panel
) -> tuple[dict[str, Any], dict[str, Any]]:
    """(what to build, what decides outcomes) of a cell, without the seed."""
    place = study.environments[environment]
    chosen = study.methods[method].resolved(environment, actor)
    parts: dict[str, tuple[registry.Kind, Change]] = {
        "environment": ("environments", place),
        "actor": ("actors", study.actors[actor].resolved(environment, actor)),
        "method": ("methods", chosen),
    }
    for tool in TOOLS:
        label = getattr(chosen, tool)
        if label is not None:
            kind: registry.Kind = "candidates" if tool == "candidates" else "judges"
            source = study.candidates if tool == "candidates" else study.judges
            parts[tool] = (kind, source[label].resolved(environment, actor))
    spec = {role: {"plugin": part.plugin, "params": dict(part.params)} for role, (_, part) in parts.items()}
    identity: dict[str, Any] = {
        role: _identity(kind, part, study.written(part.plugin)) for role, (kind, part) in parts.items()
    }
    steps = place.max_steps or getattr(registry.load("environments", place.plugin or ""), "max_steps", None)
    if not isinstance(steps, int) or steps < 1:
        raise UsageError(
            f"Environment plugin {place.plugin!r} has max_steps {steps!r}: give its class a positive whole number, "
            f"or set `max_steps` at environments.{environment}."
        )
    identity["environment"] |= {"split": place.split, "max_steps": steps, "panel": panel.digest}
    identity |= {"schema": SCHEMA_VERSION, "rules": study.rules.model_dump()}
    return spec, identity


def _identity(kind: registry.Kind, part: Change, written: str | None) -> dict[str, Any]:
    name = part.plugin or ""
    target = registry.load(kind, name)
    defaults = {key: p.default for key, p in registry.parameters(kind, name).items() if p.default is not p.empty}
    silent = set(getattr(target, "throughput", ()))
    params = {key: value for key, value in (defaults | part.params).items() if key not in silent}
    declared = str(getattr(target, "version", "1"))
    found: dict[str, Any] = {"plugin": written or name, "version": declared, "params": params}
    try:
        # Through JSON, so that a default written as a tuple hashes like the list in a study file.
        found = json.loads(json.dumps(found, allow_nan=False))
        if hasattr(target, "identity"):
            plugin = registry.create(kind, name, part.params)
            with registry.explained(kind, name, "identity()", passed=(TypeError, ValueError)):
                found["more"] = plugin.identity()
            digest(found["more"])
    except (TypeError, ValueError) as error:
        raise UsageError(
            f"{kind[:-1]} plugin {name!r}: its parameters or identity() are no JSON values ({error}); "
            "a cell key cannot be made. Parameters must be text, numbers, booleans, lists or mappings."
        ) from error
    return found


def _skip(study: Study, cell: Cell) -> str | None:
    for rule in study.skip:
        wanted = (
            (rule.method, cell.method),
            (rule.actor, cell.actor),
            (rule.environment, cell.environment),
            (rule.seed, cell.seed),
        )
        if all(asked is None or asked == has for asked, has in wanted):
            return rule.reason
    return None


def _distinct(cells: list[Cell]) -> None:
    seen: dict[str, Cell] = {}
    for cell in cells:
        other = seen.setdefault(cell.key, cell)
        if other is not cell:
            raise UsageError(
                f"Two labels mean the same thing: {other} and {cell} have one identity ({cell.key}). "
                "Remove one of them, or change a parameter."
            )
