"""Simulated actors: competence orders them, advice moves them, seeds fix them."""

from __future__ import annotations

from collections import Counter

import pytest

from harness.actors.simulated import LEVELS, SimulatedActor
from harness.environments.mock import MockEnvironment
from harness.errors import UsageError
from harness.loop import Limits
from harness.protocols import Mind
from harness.records import Action, Advice, DecisionState, Proposal
from methods.origin import Origin
from tests.harness.helpers import episode


def decide(competence: str, seed: int, advice: Advice | None = None, proposal: str = "left") -> str:
    environment = MockEnvironment()
    task, opening = environment.reset("test-0", 0)
    state = DecisionState("mock", "test-0", task, opening)
    mind = Mind(seed, (), "", environment.canonical, seed + 1, environment.legal, None, environment.oracle())
    actor = SimulatedActor(competence)
    if advice is None:
        return actor.propose(state, mind).action.text
    return actor.replan(state, Proposal(Action(proposal, proposal)), advice, mind).action.text


def test_competence_orders_actors() -> None:
    right = {level: sum(decide(level, seed) == "right" for seed in range(400)) for level in LEVELS}
    assert right["weak"] + 20 < right["medium"]
    assert right["medium"] + 20 < right["strong"] <= 400


def test_advice_is_adopted_kept_or_answered_with_something_else() -> None:
    advice = Advice("wait is better", (Action("wait", "wait"),))
    answers = Counter(decide("weak", seed, advice) for seed in range(400))
    assert all(answers[word] > 15 for word in ("left", "right", "wait"))


def test_good_advice_helps_more_than_bad_advice_hurts() -> None:
    good = Advice("-", (Action("right", "right"),))
    bad = Advice("-", (Action("left", "left"),))
    with_good = sum(decide("weak", s, good, "wait") == "right" for s in range(300))
    with_bad = sum(decide("weak", s, bad, "right") == "right" for s in range(300))
    plain = sum(decide("weak", s) == "right" for s in range(300))
    assert with_good > plain
    assert with_bad > 0.5 * plain


def test_a_self_check_mostly_keeps() -> None:
    check = Advice("check yourself", kind="self_check")
    kept = sum(decide("strong", seed, check, "right") == "right" for seed in range(200))
    assert kept > 180


def test_misconceptions_last_for_the_episode() -> None:
    result = [
        episode(Origin(), SimulatedActor("weak"), MockEnvironment(length=12), limits=Limits(max_steps=40)).steps
        for _ in range(2)
    ]
    assert [s.executed for s in result[0]] == [s.executed for s in result[1]]


def test_an_unknown_competence_is_refused_with_the_nearest() -> None:
    with pytest.raises(UsageError, match="strong"):
        decide("stronk", 1)
