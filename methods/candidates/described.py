"""Candidate sources of a study by environment and actor, in the words of the published Table 6."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness.measures import Cell
from harness.study import Change, Study

WORDS = {"served-small-lm": "small_lm"}  # the same source behind an endpoint
ALL = "all actors"


def source_name(part: Change) -> str:
    """`environment`, `small_lm + offline`: a plugin, or the parts of a mixture in their order."""
    if part.plugin == "mixture":
        sources: Any = part.params.get("sources", [])
        return " + ".join(_word(str(entry["plugin"])) for entry in sources)
    return _word(str(part.plugin))


def _word(plugin: str) -> str:
    return WORDS.get(plugin, plugin.replace("-", "_"))


def table6(study: Study) -> list[dict[str, Cell]]:
    """One row an environment and source; `actor_condition` says for which actors, `methods` for which methods."""
    rows: list[dict[str, Cell]] = []
    for environment in study.environments:
        actors = [actor for actor in study.actors if not _left_out(study, environment, actor)]
        held: dict[tuple[str, str], list[str]] = {}
        for actor in actors:
            for source, methods in _sources(study, environment, actor).items():
                held.setdefault((source, ", ".join(methods)), []).append(actor)
        for (source, named), these in held.items():
            who = ALL if these == actors else ", ".join(these)
            rows.append(
                {"environment": environment, "actor_condition": who, "candidate_source": source, "methods": named}
            )
    return rows


def _sources(study: Study, environment: str, actor: str) -> Mapping[str, list[str]]:
    found: dict[str, list[str]] = {}
    for label, method in study.methods.items():
        named = method.resolved(environment, actor).candidates
        if named is not None:
            part = study.candidates[named].resolved(environment, actor)
            found.setdefault(source_name(part), []).append(label)
    return found


def _left_out(study: Study, environment: str, actor: str) -> bool:
    """Whether the study skips this actor here altogether."""
    return any(
        rule.method is None
        and rule.seed is None
        and rule.environment in (None, environment)
        and rule.actor in (None, actor)
        for rule in study.skip
    )
