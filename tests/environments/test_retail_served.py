"""The retail customer and judge as language models behind a real socket."""

from __future__ import annotations

import pytest

from harness.environments.retail.endpoint import Endpoint, endpoint
from harness.environments.retail.llm import LLMJudge
from harness.errors import EpisodeError, UsageError
from harness.guard import Guard
from tests.models.mock_endpoint import Behaviour, MockEndpoint


def test_a_customer_turn_is_counted_and_survives_faults() -> None:
    with MockEndpoint(Behaviour(0.0, 0.3, ("server_error", "truncated_json"), seed=1)) as server:
        server.behaviour.replies = ["<think>who am I</think>Hello, I am Bo."] * 20
        text, usage, seconds = Endpoint("m", server.url).complete([{"role": "user", "content": "hi"}], 1, "simulator")
        assert text == "Hello, I am Bo."
        assert usage.prompt == server.counts["prompt"]
        assert seconds >= usage.waited_s


def test_trouble_is_put_down_to_who_was_asked() -> None:
    with MockEndpoint(Behaviour(0.0, 1.0, ("server_error",))) as server:
        with pytest.raises(EpisodeError) as caught:
            Endpoint("m", server.url, attempts=1).complete([{"role": "user", "content": "hi"}], 1, "simulator")
        assert (caught.value.boundary, caught.value.status) == ("simulator", "failed")
    with pytest.raises(UsageError, match="key_env"):
        endpoint({"model": "m", "key_evn": "K"}, "user")


def test_a_customer_that_does_not_answer_knows_when_the_step_ends() -> None:
    with MockEndpoint(Behaviour(0.0, 1.0, ("stall",), stall_s=300.0)) as server:
        asked = Endpoint("m", server.url)
        with pytest.raises(EpisodeError) as caught:
            Guard().call(lambda: asked.complete([{"role": "user", "content": "hi"}], 1, "simulator"), 2.0)
        assert (caught.value.boundary, caught.value.status) == ("simulator", "timeout")


def test_the_judge_reads_verdicts() -> None:
    with MockEndpoint(Behaviour(0.0, replies=['{"met": [true, false]}'])) as server:
        ruling = LLMJudge(Endpoint("m", server.url)).rule([("user", "hi")], ["a", "b"])
        assert ruling.met == (True, False)
        assert ruling.usage.calls == 1
