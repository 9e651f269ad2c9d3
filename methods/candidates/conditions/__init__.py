"""Decision conditions: for each environment, when two states are alike and how an action moves from one to the other.

A condition is small and pluggable: `keys` names a state from fine to coarse, `abstract` turns an executed action into
a template whose particulars are slots, `bind` fills a template with what is observed now or raises `Unbindable` with
the reason.  An environment without one of its own gets `Verbatim`: same actions, no rebinding.
"""

from __future__ import annotations

from random import Random
from typing import Protocol

from harness.records import DecisionState


class Unbindable(Exception):
    """A template needs something that is not here; the message is the reason that is counted."""


class Condition(Protocol):
    """How actions travel between states of one environment; pure functions of what the state holds."""

    def keys(self, state: DecisionState) -> tuple[str, ...]:
        """Names of the decision condition, from fine to coarse; states that share one are compatible."""

    def abstract(self, action: str, state: DecisionState) -> str:
        """The action as a template. Raises `Unbindable` for one that is about its own episode only."""

    def bind(self, template: str, state: DecisionState, chance: Random) -> str:
        """An action text with entities observed in `state`. Raises `Unbindable`."""


class Verbatim:
    """No structure known: any state is like any other, and an action is taken over as it is."""

    def keys(self, state: DecisionState) -> tuple[str, ...]:
        return (state.environment,)

    def abstract(self, action: str, state: DecisionState) -> str:
        return action

    def bind(self, template: str, state: DecisionState, chance: Random) -> str:
        return template


def condition_of(environment: str) -> Condition:
    """The condition of an environment by its name."""
    if environment == "webshop":
        from methods.candidates.conditions.webshop import WebShopCondition

        return WebShopCondition()
    if environment == "alfworld":
        from methods.candidates.conditions.alfworld import AlfWorldCondition

        return AlfWorldCondition()
    if environment == "retail":
        from methods.candidates.conditions.retail import RetailCondition

        return RetailCondition()
    return Verbatim()
