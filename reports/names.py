"""Names: what a study's labels are in the paper's words.

A study may call its methods, actors and environments as it likes; what they are is in the plan (the plugin, the model).
Reports match by that and fall back to the label.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from harness.tracking.plan import PlannedCell

ENVIRONMENTS: Final[Mapping[str, str]] = {"webshop": "WebShop", "alfworld": "ALFWorld", "retail": "tau3-Retail"}
METHODS: Final[Mapping[str, str]] = {
    "origin": "Origin",
    "cota": "COTA",
    "self-reflection": "Self-Reflection",
    "agentprm": "AgentPRM",
    "asym-ac": "Asym-AC",
    "absq-constructive": "AbsQ-Constructive",
    "pairwise-forced": "Pairwise-Forced",
}
ACTORS: Final = ("Qwen3-8B", "Qwen3.6-35B-A3B", "DeepSeek-V4-Flash")
# The 2x2 of paper table 2: plugin to (objective, intervention).
TWO_BY_TWO: Final[Mapping[str, tuple[str, str]]] = {
    "agentprm": ("absolute_q", "forced"),
    "absq-constructive": ("absolute_q", "constructive"),
    "pairwise-forced": ("pairwise", "forced"),
    "cota": ("pairwise", "constructive"),
}


def method_plugin(cell: PlannedCell) -> str:
    """The plugin behind a method's label, lower case; the label when the plan does not say."""
    return str(cell.params.get("method.plugin") or cell.method).lower()


def environment_plugin(cell: PlannedCell) -> str:
    """The plugin behind an environment's label, lower case; the label when the plan does not say."""
    return str(cell.params.get("environment.plugin") or cell.environment).lower()


def actor_model(cell: PlannedCell) -> str:
    """The model behind an actor's label, or the label when the plan names none."""
    return str(cell.params.get("actor.params.model") or cell.actor)


def published_environment(cell: PlannedCell) -> str | None:
    """The paper's name of the environment, or None when it has none."""
    return ENVIRONMENTS.get(environment_plugin(cell))


def published_method(cell: PlannedCell) -> str | None:
    """The paper's name of the method, or None when it has none."""
    return METHODS.get(method_plugin(cell))


def published_actor(cell: PlannedCell) -> str | None:
    """The paper's name of the actor, or None when it is another model."""
    model = plain(actor_model(cell).rsplit("/", 1)[-1])
    return next((name for name in ACTORS if plain(name) == model), None)


def plain(text: object) -> str:
    """Letters and digits, lower case: `Qwen3-8B` and `qwen3_8b` are the same name."""
    return "".join(c for c in str(text).lower() if c.isalnum())


def same_environment(text: object, published: str) -> bool:
    """Whether an environment named in a measure is the published one."""
    short = plain(published).removeprefix("tau3")
    return plain(text).removeprefix("tau3") == short or plain(text) == short
