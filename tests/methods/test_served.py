"""Judge and adviser behind an endpoint, in whole episodes against a real socket."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from pathlib import Path

import pytest

from harness.conformance.advisors import mock_desk
from harness.desk import Tools
from harness.errors import UsageError
from harness.loop import Limits
from harness.models.answer import Completion
from harness.models.errors import Unavailable
from harness.protocols import Question
from harness.records import Action, DecisionState, Observation, Usage
from methods.advisers.chat import ChatAdviser
from methods.asym_ac import AsymAC
from methods.candidates.environment import EnvironmentCandidates
from methods.candidates.served import ServedSmallLMCandidates
from methods.cota import Cota
from methods.judges.served import ServedComparator, ballot
from tests.harness.helpers import Fickle, episode
from tests.models.mock_endpoint import Behaviour, MockEndpoint

LEFT, RIGHT = Action("left", "left"), Action("right", "right")
QUESTION = Question(DecisionState("mock", "t", "go", Observation("o")), "the state of things")


def test_ballots_by_letter_and_order() -> None:
    with MockEndpoint(Behaviour(0.01)) as server:
        judge = ServedComparator(server.url, "judge", token_ids=[49, 50, 68])
        ballots = judge.compare(QUESTION, [(RIGHT, LEFT), (LEFT, RIGHT), (LEFT, LEFT)])
        assert [one.label for one in ballots] == ["A", "B", "T"]
        assert sum((one.usage for one in ballots), Usage()).prompt == server.counts["prompt"]
        sent = server.seen[0]
        assert (sent["max_tokens"], sent["temperature"], sent["logprob_token_ids"]) == (1, 0.0, [49, 50, 68])
        heads = {request["messages"][1]["content"].split("\nA: ")[0] for request in server.seen}
        assert len(heads) == 1, "the state is one shared prefix"
        assert judge.compare(QUESTION, []) == []


def test_a_failing_judge_gives_empty_ballots_with_a_cause() -> None:
    with MockEndpoint(Behaviour(0.0, 1.0, ("server_error",))) as server:
        ballots = ServedComparator(server.url, "judge", attempts=2).compare(QUESTION, [(RIGHT, LEFT)])
        assert [(one.label, one.cause) for one in ballots] == [(None, "unavailable")]
        found = episode(
            Cota(k=2, r=1),
            actor=Fickle(),
            limits=Limits(max_steps=2),
            tools=Tools(comparator=ServedComparator(server.url, "j", attempts=1), candidates=EnvironmentCandidates()),
        )
        assert found.status == "truncated"
        assert "judge:unavailable" in found.steps[0].reviews[0].fail_open
        assert found.steps[0].executed.text == "left", "it fails open"


def test_a_stalled_judge_ends_by_itself() -> None:
    with MockEndpoint(Behaviour(0.0, 1.0, ("stall",), stall_s=300.0)) as server:
        late = replace(QUESTION, deadline=time.monotonic() + 0.5)
        ballots = ServedComparator(server.url, "j").compare(late, [(RIGHT, LEFT), (LEFT, RIGHT)])
    assert [(one.label, one.cause) for one in ballots] == [(None, "timeout")] * 2


def test_reading_of_first_tokens() -> None:
    top = ((" A", math.log(0.3)), ("B", math.log(0.4)), ("A", math.log(0.25)), ("x", math.log(0.05)))
    assert ballot(Completion("B", top=top)).label == "A", "both spellings of a letter count for it"
    assert ballot(Completion("x", top=(("x", -0.1), ("B", -3.0)))).label == "B"
    assert ballot(Completion("x", top=(("x", -0.1), ("B", -3.0))), "token").cause == "invalid_output"
    assert ballot(Completion("T"), "token").label == "T"
    assert ballot(Completion("hm")).cause == "invalid_output"


def test_cota_with_a_served_judge_ends_well() -> None:
    with MockEndpoint(Behaviour(0.0)) as server:
        tools = Tools(comparator=ServedComparator(server.url, "judge"), candidates=EnvironmentCandidates())
        found = episode(Cota(k=2, r=1), actor=Fickle(), tools=tools)
        assert (found.status, found.reward, len(found.steps)) == ("done", 1.0, 5)
        assert found.steps[0].reviews[0].response == "adopt"
        assert found.usage["advisor"].prompt == server.counts["prompt"]


def test_asym_ac_with_a_served_critic() -> None:
    with MockEndpoint(Behaviour(0.0)) as server:
        tools = Tools(adviser=ChatAdviser(server.url, "critic"))
        found = episode(AsymAC(), actor=Fickle(), tools=tools, limits=Limits(max_steps=2))
        assert "look at where the end is" in found.steps[0].reviews[0].message
        assert found.steps[0].executed.text == "right"
        assert found.usage["advisor"].calls == server.counts["calls"]
        assert "seed" in server.seen[0]
    with MockEndpoint(Behaviour(0.0, replies=["<think>hm</think> Fine."])) as server:
        assert ChatAdviser(server.url, "critic").feedback("s", "u", 1, None)[0] == "Fine."


def test_served_candidates_are_sifted_and_seeded() -> None:
    with MockEndpoint(Behaviour(0.0)) as server:
        server.behaviour.replies = [" right\nwait", " fly away", " wait", " right"]
        found = ServedSmallLMCandidates(server.url, "gen", rounds=1).draw(mock_desk(), 3)
        assert sorted(candidate.action.text for candidate in found) == ["right", "wait"]
        sent = server.seen[0]
        assert (sent["continue_final_message"], sent["add_generation_prompt"]) == (True, False)
        assert sent["messages"][-1]["content"].endswith("-")
        assert len({request["seed"] for request in server.seen}) == len(server.seen) == 4
    with MockEndpoint(Behaviour(0.0, 1.0, ("server_error",))) as server, pytest.raises(Unavailable):
        ServedSmallLMCandidates(server.url, "gen", attempts=1).draw(mock_desk(), 3)


def test_wrong_parameters_are_messages() -> None:
    with pytest.raises(UsageError, match="three numbers"):
        ServedComparator("http://x/v1", "m", token_ids=[1])
    with pytest.raises(UsageError, match="letters"):
        ServedComparator("http://x/v1", "m", reading="leters")


def test_the_prompt_can_be_replaced_and_is_identity(tmp_path: Path) -> None:
    mine = tmp_path / "mine.yaml"
    mine.write_text('system: ""\nstate: "{state}"\ncandidates: "| {first} | {second} |"\n')
    judge = ServedComparator("http://x/v1", "m", prompt=str(mine))
    assert judge.identity() != ServedComparator("http://x/v1", "m").identity()
    with MockEndpoint(Behaviour(0.0, replies=["A"])) as server:
        ServedComparator(server.url, "m", prompt=str(mine)).compare(QUESTION, [(Action("a\n| b |", "a"), LEFT)])
        assert [m["content"] for m in server.seen[0]["messages"]] == [f"{QUESTION.view}| a | b | | left |"]
