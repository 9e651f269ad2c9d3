"""What plugins hand in: nonsense fails its own episode, with its owner as the boundary and a sentence about it."""

from __future__ import annotations

import math
import time
from typing import Any

import numpy as np
import pytest

from harness.actors.mock import MockActor
from harness.codec import dump, from_json, parse, to_json
from harness.environments.mock import MockEnvironment
from harness.loop import Limits
from harness.protocols import Execute, Withhold
from harness.records import Action, Advice, Episode, Observation, Outcome, Proposal, Review, Usage, Vote
from methods.origin import Origin
from tests.harness.helpers import Insistent, SlowEnvironment, SlowMethod, episode

RIGHT = Action("right", "right")
SEEN = Observation("you see a wall")
ANY: Any = None


class Answers(MockActor):
    def __init__(self, answer: Any, second: Any = None) -> None:
        super().__init__()
        self.given, self.second = answer, second

    def propose(self, state: Any, mind: Any) -> Any:
        return self.given

    def replan(self, state: Any, proposal: Any, advice: Any, mind: Any) -> Any:
        return self.second


class Says:
    needs: frozenset[str] = frozenset()

    def __init__(self, verdict: Any, count: Any = None) -> None:
        self.verdict, self.counted = verdict, count

    def review(self, state: Any, proposal: Any, desk: Any) -> Any:
        if self.counted is not None:
            desk.count(self.counted)
        return self.verdict


class Gives(MockEnvironment):
    def __init__(self, outcome: Any) -> None:
        super().__init__()
        self.given = outcome

    def step(self, action: Action) -> Any:
        return self.given


class Opens(MockEnvironment):
    def __init__(self, opening: Any) -> None:
        super().__init__()
        self.opening = opening

    def reset(self, task_id: str, seed: int) -> Any:
        return self.opening


class Mute(MockEnvironment):
    def briefing(self) -> str:
        raise RuntimeError("no rules")


def failed(result: Episode, boundary: str, said: str) -> None:
    assert (result.status, result.boundary, result.reward) == ("failed", boundary, None)
    assert said in result.reason
    assert from_json(parse(dump(to_json(result)))) == result


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (None, "propose() returned None where a Proposal belongs"),
        ("right", "propose() returned str 'right'"),
        (Proposal("right", "t"), "str where Action belongs"),  # type: ignore[arg-type]
        (Proposal(Action("right", 3)), "Action.canonical: int where str belongs"),  # type: ignore[arg-type]
        (Proposal(RIGHT, 42), "Proposal.thought: int where str belongs"),  # type: ignore[arg-type]
        (Proposal(RIGHT, "", Usage(calls=np.int64(1))), "Usage.calls: int64 where int belongs; convert it"),  # type: ignore[arg-type]
        (Proposal(RIGHT, "", Usage(waited_s=math.nan)), "Usage.waited_s: nan is not finite"),
        (Proposal(RIGHT, "", None), "NoneType where Usage belongs"),  # type: ignore[arg-type]
    ],
)
def test_nonsense_of_an_actor(answer: Any, said: str) -> None:
    failed(episode(Origin(), Answers(answer)), "actor", said)


def test_nonsense_after_advice_is_the_actors() -> None:
    failed(episode(Insistent("left"), Answers(Proposal(RIGHT))), "actor", "replan() returned None")

    class Asks(Says):
        def review(self, state: Any, proposal: Any, desk: Any) -> Any:
            desk.ask_actor(Advice("look again", kind="self_check"))

    failed(episode(Asks(None), Answers(Proposal(RIGHT))), "actor", "replan() returned None")


@pytest.mark.parametrize(
    ("verdict", "said"),
    [
        (None, "review() returned None where Execute or Withhold belongs"),
        ("yes", "review() returned str 'yes'"),
        (Execute(ANY, Review(RIGHT)), "Execute with an action that is none: NoneType where Action belongs"),
        (Execute(RIGHT, ANY), "NoneType where Review belongs"),
        (Withhold(ANY, Review(RIGHT)), "NoneType where Advice belongs"),
        (Withhold(Advice("no", kind="shout"), Review(RIGHT)), "Advice.kind: 'shout' is none of"),  # type: ignore[arg-type]
        (Execute(RIGHT, Review(RIGHT, scores=(math.nan,))), "Review.scores: nan is not finite"),
        (Execute(RIGHT, Review(RIGHT, votes="nonsense")), "Review.votes: str where a list belongs"),  # type: ignore[arg-type]
        (Execute(RIGHT, Review(RIGHT, votes=(Vote(0, "Q", None, True),))), "Vote.forward"),  # type: ignore[arg-type]
        (Execute(RIGHT, Review(RIGHT, scores=np.zeros(3))), "Review: ValueError"),  # type: ignore[arg-type]
        (Execute(RIGHT, Review(RIGHT, usage=Usage(prompt="x"))), "Usage.prompt"),  # type: ignore[arg-type]
    ],
)
def test_nonsense_of_a_method(verdict: Any, said: str) -> None:
    failed(episode(Says(verdict)), "advisor", said)


def test_nonsense_counted_at_the_desk_is_the_advisors() -> None:
    counted = Usage(calls=np.int64(2))  # type: ignore[arg-type]
    failed(episode(Says(Execute(RIGHT, Review(RIGHT)), counted)), "advisor", "Usage.calls: int64")


@pytest.mark.parametrize(
    ("outcome", "said"),
    [
        (None, "step() returned None where an Outcome belongs"),
        (("seen", 1.0, True), "step() returned tuple"),
        (Outcome(SEEN, math.nan), "Outcome.reward: nan is not finite"),
        (Outcome(SEEN, math.inf), "Outcome.reward: inf is not finite"),
        (Outcome(SEEN, True), "Outcome.reward: True is no float"),
        (Outcome(SEEN, "good"), "Outcome.reward: str where"),  # type: ignore[arg-type]
        (Outcome(SEEN, 7), "a reward of 7, outside [0, 1]"),
        (Outcome(SEEN, -3.0), "a reward of -3.0, outside [0, 1]"),
        (Outcome(SEEN, 0.5, 1), "Outcome.done: int where bool belongs"),  # type: ignore[arg-type]
        (Outcome(ANY, 1.0, True), "NoneType where Observation belongs"),
        (Outcome("text", 1.0, True), "str where Observation belongs"),  # type: ignore[arg-type]
        (Outcome(Observation(3), 1.0, True), "Observation.text: int where str belongs"),  # type: ignore[arg-type]
        (Outcome(SEEN, 1.0, True, {"a": math.nan}), "Outcome.info: nan is not finite"),
        (Outcome(SEEN, 1.0, True, {"a": [1]}), "Outcome.info: list where"),  # type: ignore[dict-item]
        (Outcome(SEEN, simulator_s=math.nan), "Outcome.simulator_s"),
    ],
)
def test_nonsense_of_an_environment(outcome: Any, said: str) -> None:
    failed(episode(Origin(), environment=Gives(outcome)), "environment", said)


def test_nonsense_before_the_first_step_is_the_environments() -> None:
    failed(episode(Origin(), environment=Opens(None)), "environment", "reset() returned None")
    failed(episode(Origin(), environment=Opens(("task", "text"))), "environment", "str where Observation belongs")
    failed(episode(Origin(), environment=Mute()), "environment", "no rules")


def test_numpy_floats_and_whole_rewards_are_fine() -> None:
    for reward in (np.float64(0.5), 1, 0, None):
        result = episode(Origin(), environment=Gives(Outcome(SEEN, reward, True)))  # type: ignore[arg-type]
        assert (result.status, result.reward) == ("done", reward)
        assert from_json(parse(dump(to_json(result)))) == result


def test_a_plugin_that_exits_is_named() -> None:
    class Leaves(Says):
        def review(self, state: Any, proposal: Any, desk: Any) -> Any:
            raise SystemExit(3)

    failed(episode(Leaves(None)), "advisor", "SystemExit: 3")


def test_text_that_utf8_cannot_hold_is_written_out() -> None:
    bad = "lone \ud800 é"
    outcome = Outcome(Observation(bad), 1.0, True, {bad: bad})
    result = episode(Says(Execute(RIGHT, Review(RIGHT, message=bad))), Answers(Proposal(RIGHT, bad)), Gives(outcome))
    assert result.final_observation == result.steps[0].thought == "lone \\ud800 é"
    stored = from_json(parse(dump(to_json(result))))
    assert stored.info == {"lone \\ud800 é": "lone \\ud800 é"}
    assert stored.steps[0].reviews[0].message == "lone \\ud800 é"
    dump(to_json(stored)).decode("utf-8").encode("utf-8")

    class Raises(Says):
        def review(self, state: Any, proposal: Any, desk: Any) -> Any:
            raise RuntimeError(bad)

    reason = from_json(to_json(episode(Raises(None)))).reason
    assert reason == "review raised RuntimeError: lone \\ud800 é"


def test_a_shared_limit_is_charged_to_who_used_it_up() -> None:
    limits = Limits(max_steps=50, call_s=0.3, episode_s=0.75)
    hung = episode(SlowMethod(), limits=limits)
    assert (hung.status, hung.boundary, len(hung.steps)) == ("timeout", "advisor", 2)
    assert "episode limit of 0.75 s reached in the environment's turn" in hung.reason
    step = episode(SlowMethod(), limits=Limits(max_steps=5, step_s=0.2))
    assert (step.status, step.boundary) == ("timeout", "advisor")
    assert "step limit of 0.2 s" in step.reason


def test_a_limit_of_ones_own_is_ones_own() -> None:
    slow = episode(Origin(), environment=SlowEnvironment(), limits=Limits(max_steps=9, call_s=0.1, episode_s=60))
    assert (slow.status, slow.boundary, slow.reason) == ("timeout", "environment", "no answer within 0.1 s")
    shared = episode(Origin(), environment=SlowEnvironment(), limits=Limits(max_steps=9, episode_s=0.3))
    assert (shared.status, shared.boundary) == ("timeout", "environment")


def test_a_slow_actor_is_not_blamed_on_the_environment() -> None:
    class Slow(MockActor):
        def propose(self, state: Any, mind: Any) -> Proposal:
            time.sleep(0.15)
            return super().propose(state, mind)

    class Slower(SlowEnvironment):
        def step(self, action: Action) -> Outcome:
            time.sleep(0.1)
            return super().step(action)

    result = episode(Origin(), Slow(), Slower(), limits=Limits(max_steps=9, step_s=0.2))
    assert (result.status, result.boundary) == ("timeout", "actor")
