"""The episode loop: order of events, limits, classes of replans, and who is blamed."""

from __future__ import annotations

import time

import pytest

from harness.actors.mock import MockActor
from harness.actors.simulated import SimulatedActor
from harness.desk import Tools
from harness.environments.mock import MockEnvironment
from harness.loop import Limits, Rollout, Streams, classify
from harness.protocols import Desk, Mind, Verdict
from harness.records import Action, DecisionState, Proposal
from methods.origin import Origin
from tests.harness.helpers import (
    BrokenEnvironment,
    BrokenMethod,
    Fickle,
    Insistent,
    SlowEnvironment,
    SlowMethod,
    episode,
)


def test_origin_runs_to_the_end() -> None:
    result = episode(Origin())
    assert (result.status, result.reward, result.success, len(result.steps)) == ("done", 1.0, True, 5)
    assert result.steps[-1].done
    assert result.simulated == ("actor", "environment")
    assert set(result.seconds) <= {"actor", "advisor", "environment", "harness"}
    assert sum(result.seconds.values()) <= result.wall_s + 1e-6


def test_step_limit_keeps_the_score_and_says_truncated() -> None:
    result = episode(Origin(), MockActor("wait"), limits=Limits(max_steps=3))
    assert (result.status, result.reward, result.success, len(result.steps)) == ("truncated", 0.0, False, 3)


@pytest.mark.parametrize(
    ("answer", "expected", "executed"),
    [("right", "adopt", "right"), ("left", "keep", "left"), ("wait", "novel", "wait")],
)
def test_replan_classes(answer: str, expected: str, executed: str) -> None:
    result = episode(Insistent("right"), Fickle("left", answer), limits=Limits(max_steps=1, replans=1))
    first, second = result.steps[0].reviews
    assert first.response == expected
    assert result.steps[0].executed.text == executed
    assert second.fail_open == ("replan_limit",)
    assert second.proposal.text == answer


def test_classify_counts_a_recommended_repeat_as_adopt() -> None:
    a, b = Action("A", "a"), Action("b", "b")
    assert classify(a, Action("a", "a"), (a, b)) == "adopt"
    assert classify(Action(" A ", "a"), Action("a", "a"), (b,)) == "keep"


@pytest.mark.parametrize("replans", [0, 1, 3])
def test_replan_limit_bounds_reviews(replans: int) -> None:
    result = episode(Insistent(), Fickle("left", "left"), limits=Limits(max_steps=2, replans=replans))
    assert [len(step.reviews) for step in result.steps] == [replans + 1] * 2
    assert all(step.executed.text == "left" for step in result.steps)


def test_review_timeout_fails_open_and_is_counted() -> None:
    result = episode(SlowMethod(), limits=Limits(max_steps=2, call_s=0.05))
    assert [step.executed.text for step in result.steps] == ["right", "right"]
    assert [step.reviews[0].fail_open for step in result.steps] == [("timeout",)] * 2


def test_environment_timeout_is_a_status_and_keeps_the_prefix() -> None:
    result = episode(Origin(), environment=SlowEnvironment(), limits=Limits(max_steps=9, step_s=0.1))
    assert (result.status, result.boundary, len(result.steps)) == ("timeout", "environment", 2)
    assert result.reward is None


def test_episode_time_limit() -> None:
    result = episode(SlowMethod(), limits=Limits(max_steps=50, episode_s=0.2))
    assert result.status == "timeout"


def test_who_is_asked_knows_when_to_give_up() -> None:
    ends: list[float | None] = []

    class Noting(Origin):
        def review(self, state: DecisionState, proposal: Proposal, desk: Desk) -> Verdict:
            ends.append(desk.deadline)
            ends.append(desk.question().deadline)
            return super().review(state, proposal, desk)

    class Noted(MockActor):
        def propose(self, state: DecisionState, mind: Mind) -> Proposal:
            ends.append(mind.deadline)
            return super().propose(state, mind)

    began = time.monotonic()
    for limits in ({"call_s": 90.0}, {"call_s": 900.0, "episode_s": 90.0}, {"call_s": 900.0, "step_s": 90.0}):
        episode(Noting(), Noted(), limits=Limits(max_steps=1, **limits))
    assert len(ends) == 9
    assert all(end is not None and began + 88 < end <= time.monotonic() + 89 for end in ends)
    episode(Noting(), Noted(), limits=Limits(max_steps=1))
    assert ends[9:] == [None] * 3


def test_broken_parts_are_named() -> None:
    broken = episode(Origin(), environment=BrokenEnvironment())
    assert (broken.status, broken.boundary, len(broken.steps)) == ("failed", "environment", 2)
    assert "disk gone" in broken.reason
    method = episode(BrokenMethod())
    assert (method.status, method.boundary) == ("failed", "advisor")
    unparsed = episode(Origin(), MockActor(""))
    assert (unparsed.status, unparsed.boundary) == ("unparsed", "actor")
    unknown = episode(Origin(), environment=MockEnvironment(size=0))
    assert (unknown.status, unknown.boundary) == ("failed", "harness")
    assert "no task 'test-0'" in unknown.reason


def test_a_method_without_its_judge_fails_loudly() -> None:
    from methods.cota import Cota

    result = episode(Cota())
    assert result.status == "failed"
    assert "candidates" in result.reason


def test_methods_meet_the_same_first_proposal() -> None:
    actor = SimulatedActor("weak")
    first = {episode(m, actor).steps[0].reviews[0].proposal for m in (Origin(), Insistent("left"), Insistent("right"))}
    assert len(first) == 1


def test_same_seed_same_episode() -> None:
    def trace() -> list[str]:
        return [step.executed.text for step in episode(Origin(), SimulatedActor("weak")).steps]

    assert trace() == trace()


def test_a_rollout_goes_on_from_a_prefix() -> None:
    environment = MockEnvironment()
    run = Rollout(environment, MockActor(), Origin(), Tools(), Limits(20), Streams("mock", "test-0", 0))
    run.begin("test-0")
    run.advance()
    held, state = environment.snapshot(), run.state
    run.advance()
    environment.restore(held)
    branch = Rollout(
        environment, MockActor(), Origin(), Tools(), Limits(20), Streams("mock", "test-0", 0, (("branch", 1),))
    )
    assert state is not None
    branch.at(state)
    branch.advance(Action("left", "left"))
    assert branch.state is not None
    assert [turn.action.text for turn in branch.state.turns] == ["right", "left"]
    while not branch.over:
        branch.advance()
    assert branch.outcome is not None
    assert branch.outcome.reward == 1.0
