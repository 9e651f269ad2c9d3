"""The chat actor through the real loop against a real socket."""

from __future__ import annotations

import logging
import time
import traceback
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from harness.actors import history, prompting
from harness.actors.chat import ChatActor
from harness.desk import Tools
from harness.environments.mock import MockEnvironment
from harness.episode import run_episode
from harness.errors import EpisodeError, UsageError
from harness.loop import Limits
from harness.protocols import Mind
from harness.records import Action, Advice, DecisionState, Episode, Observation, Proposal, Turn, Usage
from methods.origin import Origin
from methods.self_reflection import SelfReflection
from tests.harness.helpers import FakeCell, Insistent, episode
from tests.models.mock_endpoint import Behaviour, MockEndpoint


def mind(**changes: Any) -> Mind:
    base = Mind(5, (), "Walk right.", MockEnvironment().canonical, 5, MockEnvironment().legal)
    return replace(base, **changes)


def state(turns: int = 0) -> DecisionState:
    walked = tuple(Turn(Action("left", "left"), Observation(f"You see {i}.", ("left", "right"))) for i in range(turns))
    return DecisionState("mock", "test-0", "Reach the end.", Observation("Start.", ("left", "right")), walked)


def actor(server: MockEndpoint, **options: Any) -> ChatActor:
    return ChatActor(server.url, "m", **{"timeout_s": 60.0, **options})


def walk(who: ChatActor, task: str, method: Any = None) -> Episode:
    return run_episode(
        environment=MockEnvironment(),
        actor=who,
        method=method or Origin(),
        tools=Tools(),
        cell=FakeCell(),
        task_id=task,
        limits=Limits(max_steps=20),
    )


def outcome(found: Episode) -> tuple[Any, ...]:
    return found.status, found.reward, [(step.executed.text, step.thought, step.observation) for step in found.steps]


def test_faults_in_a_fifth_of_the_calls_change_no_outcome() -> None:
    tasks = [f"test-{number}" for number in range(24)]
    runs = []
    for faults in (0.0, 0.2):
        with MockEndpoint(Behaviour(0.005, faults, stall_s=6.0, retry_after=0.05)) as server:
            who = actor(server, attempts=40, timeout_s=3.0)
            with ThreadPoolExecutor(24) as pool:
                runs.append([outcome(found) for found in pool.map(walk, [who] * len(tasks), tasks)])
            faulty = sum(server.counts.values()) and server.counts["calls"] - server.counts["fine"]
            assert bool(faulty) == bool(faults)
    assert runs[0] == runs[1]
    assert all(status == "done" for status, _, _ in runs[0])


def test_usage_equals_the_servers_count() -> None:
    with MockEndpoint(Behaviour(0.0)) as server:
        found = [walk(actor(server), "test-1"), walk(actor(server), "test-2", SelfReflection())]
        total = sum((one.usage["actor"] for one in found), Usage())
        assert (total.prompt, total.completion) == (server.counts["prompt"], server.counts["completion"])
        assert total.calls == server.counts["calls"]
        assert total.reasoning is None, "the server says nothing about reasoning"


def test_no_action_is_unparsed_after_one_more_try_and_its_tokens_count() -> None:
    long = "x" * 60
    with MockEndpoint(Behaviour(0.0, replies=[f"Action: {long}", f"Action: {long}"])) as server:
        found = walk(actor(server), "test-0")
        assert (found.status, found.boundary, found.reward) == ("unparsed", "actor", None)
        assert server.counts["calls"] == 2
        assert found.usage["actor"].completion == server.counts["completion"]
        assert "No action could be read" in server.seen[1]["messages"][-1]["content"]


def test_one_more_try_can_help() -> None:
    with MockEndpoint(Behaviour(0.0, replies=["Hm.", "Action: right"])) as server:
        made = actor(server).propose(state(), mind())
        assert (made.action.text, made.usage.calls) == ("right", 2)
        assert server.seen[0]["seed"] != server.seen[1]["seed"]


def test_a_dead_endpoint_fails_the_episode_at_the_actor() -> None:
    with MockEndpoint(Behaviour(0.0, faults=1.0, kinds=("server_error",))) as server:
        found = walk(actor(server, attempts=2), "test-0")
    assert (found.status, found.boundary, found.reward) == ("failed", "actor", None)
    assert "server_error" in found.reason


def test_a_stalled_call_is_ended_by_the_client_itself() -> None:
    with MockEndpoint(Behaviour(0.0, stall_s=300.0, script=["stall"])) as server:
        with pytest.raises(EpisodeError, match="no answer before the deadline") as caught:
            actor(server).propose(state(), mind(deadline=time.monotonic() + 0.5))
        assert (caught.value.boundary, caught.value.status) == ("actor", "timeout")


def test_the_episodes_limit_is_named_though_the_client_ends_first() -> None:
    with MockEndpoint(Behaviour(0.0, 1.0, ("stall",), stall_s=300.0)) as server:
        found = episode(Origin(), actor=actor(server), limits=Limits(max_steps=3, episode_s=3.0))
    assert (found.status, found.boundary, len(found.steps)) == ("timeout", "actor", 0)
    assert "episode limit of 3 s" in found.reason


def test_advice_is_shown_as_a_further_turn() -> None:
    with MockEndpoint(Behaviour(0.0, replies=["Action: right"])) as server:
        made = actor(server).replan(state(2), Proposal(Action("left", "left"), "why not"), Advice("Try right."), mind())
        assert made.action.text == "right"
        roles = [message["role"] for message in server.seen[0]["messages"]]
        assert roles == ["system", "user", "assistant", "user", "assistant", "user", "assistant", "user"]
        assert server.seen[0]["messages"][-2]["content"] == "Thought: why not\nAction: left"
        assert "Try right." in server.seen[0]["messages"][-1]["content"]


def test_withheld_proposals_go_through_the_loop() -> None:
    with MockEndpoint(Behaviour(0.0)) as server:
        found = episode(Insistent(), actor=actor(server), limits=Limits(max_steps=2, replans=1))
    assert found.steps[0].reviews[0].response in ("adopt", "keep", "novel")
    assert found.usage["actor"].calls == 4


def test_the_prompt_before_the_newest_message_never_changes() -> None:
    style = history.Style()
    for turns in range(1, 6):
        before = history.build(state(turns - 1), mind(), style)
        after = history.build(state(turns), mind(), style)
        assert after[: len(before) - 1] == before[:-1]
        assert str(after[len(before) - 1]["content"]) in str(before[-1]["content"])
    assert "- left" in after[-1]["content"]
    assert "- left" not in after[-3]["content"]


def test_too_long_a_history_loses_its_oldest_steps_and_says_so() -> None:
    with MockEndpoint(Behaviour(0.0, replies=["Thought: on.\nAction: right"] * 2)) as server:
        fixed = sum(len(str(m["content"])) for m in history.build(state(0), mind(), history.Style()))
        tokens = int(fixed / history.CHARS_PER_TOKEN) + 200 + 300
        made = actor(server, context_tokens=tokens, max_tokens=200).propose(state(30), mind())
        assert made.thought.startswith("[context: steps 1 to ")
        text = str(server.seen[0]["messages"])
        assert "are left out here" in text
        assert "You see 29." in text
        assert "You see 0." not in text
        again = mind(thoughts=(made.thought,))
        actor(server).propose(state(1), again)
        assert "[context:" not in str(server.seen[1]["messages"]), "the note is for the record, not for the model"


def test_when_the_server_objects_the_history_is_cut_until_it_fits() -> None:
    fixed = sum(len(str(m["content"])) for m in history.build(state(0), mind(), history.Style()))
    with MockEndpoint(Behaviour(0.0, context_chars=fixed + 400, replies=["Action: right"])) as server:
        made = actor(server).propose(state(30), mind())
        assert made.thought.startswith("[context: steps 1 to ")
        server.behaviour.context_chars = 10
        found = walk(actor(server), "test-0")
        assert (found.status, found.boundary) == ("failed", "actor")
        assert "context" in found.reason


RETAIL = ('find({"id": string}) - finds', 'respond({"content": string})')


def test_native_tools_are_offered_and_their_history_is_native() -> None:
    style = history.Style(native=True)
    turns = (
        Turn(Action('respond({"content": "Who are you?"})', "a"), Observation("Customer: Bo", schemas=RETAIL)),
        Turn(Action('find({"id": "1"})', "b"), Observation("found", schemas=RETAIL)),
    )
    talk = DecisionState("retail", "0", "Help.", Observation("Customer: hi", schemas=RETAIL), turns)
    messages = history.build(talk, mind(thoughts=("t1", "t2")), style)
    assert [message["role"] for message in messages] == ["system", "user", "assistant", "user", "assistant", "tool"]
    assert messages[2]["content"] == "Who are you?"
    assert messages[4]["tool_calls"][0]["function"] == {"name": "find", "arguments": '{"id": "1"}'}
    assert messages[5]["tool_call_id"] == messages[4]["tool_calls"][0]["id"]
    again = history.asked_again(turns[1].action, "t", "Sure?", style, 2)
    assert [message["role"] for message in again] == ["assistant", "tool", "user"]
    with MockEndpoint(Behaviour(0.0, replies=["Hello!"])) as server:
        made = actor(server, native_tools=True).propose(talk, mind(parse=lambda text: Action(text, text)))
        assert made.action.text == 'respond({"content": "Hello!"})'
        assert [tool["function"]["name"] for tool in server.seen[0]["tools"]] == ["find"]


def test_prompts_can_be_replaced_and_are_identity(tmp_path: Path) -> None:
    (tmp_path / "generic.txt").write_text("My own. $briefing")
    mine = ChatActor("http://x/v1", "m", prompts=str(tmp_path))
    assert mine.identity() != ChatActor("http://x/v1", "m").identity()
    assert history.build(state(), mind(), mine.style)[0]["content"] == "My own. Walk right."


@pytest.mark.parametrize(
    ("name", "text", "complaint"),
    [
        ("turn.txt", "nothing", r"lacks the placeholder\(s\) \$observation"),
        ("turn.txt", "$observatoin $observation", "Did you mean 'observation'"),
        ("generic.txt", "costs $ 5 $briefing", "lone"),
    ],
)
def test_wrong_prompt_files_are_messages(tmp_path: Path, name: str, text: str, complaint: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(UsageError, match=complaint):
        prompting.load(str(tmp_path))


def test_sampling_and_thinking_are_passed_on() -> None:
    with MockEndpoint(Behaviour(0.0)) as server:
        actor(server, temperature=0.7, top_p=0.8, thinking=False, extra={"top_k": 20}).propose(state(), mind())
        sent = server.seen[0]
        assert (sent["temperature"], sent["top_p"], sent["top_k"], sent["seed"]) == (0.7, 0.8, 20, 5)
        assert sent["chat_template_kwargs"] == {"enable_thinking": False}
        actor(server, thinking=True, thinking_style="deepseek").propose(state(), mind())
        assert server.seen[1]["thinking"] == {"type": "enabled"}
        assert "stop" not in server.seen[1]


def test_a_begun_answer_ends_in_a_listed_action() -> None:
    with MockEndpoint(Behaviour(0.0, replies=[" the end is there.", " right"])) as server:
        made = actor(server, choice="legal").propose(state(1), mind())
        assert (made.action.text, made.thought, made.usage.calls) == ("right", "the end is there.", 2)
        first, second = server.seen
        assert first["messages"][-1] == {"role": "assistant", "content": "Thought:"}
        assert second["messages"][-1]["content"] == "Thought: the end is there.\nAction:"
        assert second["structured_outputs"] == {"choice": [" left", " right"]}
        assert second["continue_final_message"] is True
        server.behaviour.replies = [" look for it.", "red shoes"]
        shop = DecisionState("webshop", "0", "Buy.", Observation("Search page", schemas=("search[<keywords>]",)))
        made = actor(server, choice="legal").propose(shop, mind(parse=lambda text: Action(text, text)))
        assert made.action.text == "search[red shoes]"
    with pytest.raises(UsageError, match="legal"):
        ChatActor("http://x/v1", "m", choice="leagl")


def test_a_canary_key_is_nowhere(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    canary = "sk-canary-7f3a9"
    monkeypatch.setenv("CANARY_KEY", canary)
    monkeypatch.setenv("COTA_BENCH_CACHE", str(tmp_path / "cache"))
    texts: list[str] = []
    with caplog.at_level(logging.DEBUG):
        for behaviour in (
            Behaviour(0.0),
            Behaviour(0.0, 0.3, retry_after=0.01, stall_s=0.5),
            Behaviour(0.0, refusal=(401, f"Incorrect API key provided: {canary}")),
            Behaviour(0.0, refusal=(400, f"bad {canary}")),
            Behaviour(0.0, refusal=(500, f"oops {canary}")),
        ):
            with MockEndpoint(behaviour) as server:
                who = actor(server, key_env="CANARY_KEY", cache=behaviour.faults == 0, attempts=3, revision=server.url)
                texts += [str(asdict(walk(who, "test-0"))), repr(vars(who))]
                try:
                    who.endpoint.complete({"messages": [{"role": "user", "content": "?"}]})
                except Exception:
                    texts.append(traceback.format_exc())
                assert server.authorizations[canary], "the key was never sent, so this shows nothing"
    files = [path.read_bytes().decode("latin1") for path in tmp_path.rglob("*") if path.is_file()]
    assert files
    captured = capfd.readouterr()
    for text in (*texts, *files, caplog.text, captured.out, captured.err):
        assert canary not in text
