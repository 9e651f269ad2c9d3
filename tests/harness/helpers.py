"""Small parts for tests: a cell, limits, and ways to misbehave."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from harness.actors.mock import MockActor
from harness.desk import Tools
from harness.environments.mock import MockEnvironment
from harness.episode import run_episode
from harness.loop import Limits
from harness.protocols import Desk, Execute, Mind, Verdict, Withhold
from harness.records import Action, Advice, DecisionState, Episode, Outcome, Proposal, Review


@dataclass(frozen=True)
class FakeCell:
    key: str = "0" * 16
    study: str = "s"
    method: str = "m"
    actor: str = "a"
    environment: str = "mock"
    seed: int = 0
    split: str = "test"


class Insistent:
    """Withholds always, recommending one action."""

    paper: ClassVar[Mapping[str, str]] = {"title": "-", "section": "-", "defaults": "-"}
    needs: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, recommend: str = "right") -> None:
        self.recommend = Action(recommend, recommend)

    def review(self, state: DecisionState, proposal: Proposal, desk: Desk) -> Verdict:
        advice = Advice("no", (self.recommend,))
        return Withhold(advice, Review(proposal.action, fired=True, recommended=advice.recommended))


class SlowMethod(Insistent):
    def review(self, state: DecisionState, proposal: Proposal, desk: Desk) -> Verdict:
        time.sleep(0.4)
        return Execute(Action("left", "left"), Review(proposal.action))


class BrokenMethod(Insistent):
    def review(self, state: DecisionState, proposal: Proposal, desk: Desk) -> Verdict:
        raise KeyError("oops")


class Fickle(MockActor):
    """Proposes one thing and answers advice with another."""

    def __init__(self, action: str = "left", answer: str = "right") -> None:
        super().__init__(action)
        self.answer = answer

    def replan(self, state: DecisionState, proposal: Proposal, advice: Advice, mind: Mind) -> Proposal:
        return Proposal(mind.parse(self.answer), "second thoughts")


class SlowEnvironment(MockEnvironment):
    def step(self, action: Action) -> Outcome:
        if self._at == 2:
            time.sleep(0.5)
        return super().step(action)


class BrokenEnvironment(MockEnvironment):
    def step(self, action: Action) -> Outcome:
        if self._at == 2:
            raise OSError("disk gone")
        return super().step(action)


def episode(method: object, actor: object = None, environment: object = None, **options: object) -> Episode:
    """One episode of the mock corridor with parts replaced."""
    tools = options.pop("tools", Tools())
    limits = options.pop("limits", Limits(max_steps=20))
    return run_episode(
        environment=environment or MockEnvironment(),  # type: ignore[arg-type]
        actor=actor or MockActor(),  # type: ignore[arg-type]
        method=method,  # type: ignore[arg-type]
        tools=tools,  # type: ignore[arg-type]
        cell=FakeCell(),
        task_id="test-0",
        limits=limits,  # type: ignore[arg-type]
    )
