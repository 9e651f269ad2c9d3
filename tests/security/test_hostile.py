"""Answers that a model should not give: bounded, recorded with a notice, shown without steering the terminal."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from harness.actors.chat import ChatActor
from harness.bounds import MAX_ACTION, MAX_ANSWER, MAX_OBSERVATION
from harness.codec import to_json
from harness.environments.mock import MockEnvironment
from harness.errors import EpisodeError
from harness.intake import opening, outcome, proposal
from harness.ledger import Ledger, read_episodes
from harness.models.answer import parse_completion
from harness.models.errors import Transient
from harness.records import Action, Episode, Observation, Outcome, Proposal
from harness.show import as_json, show
from methods.origin import Origin
from tests.harness.helpers import episode
from tests.models.mock_endpoint import Behaviour, Link, MockEndpoint

ROOT = Path(__file__).parents[2]
BIG = 10_000_000
STEER = "\x1b[2J\x1b]8;;http://evil\x07\x9b31m\x00\u202e\r[bold]b[/bold]<script>alert(1)</script>"


class Raw(MockEndpoint):
    """Sends these bytes as the body of every answer."""

    body = b""

    def say(self, kind: str, request: dict[str, Any], link: Link) -> None:
        link.write(200, self.body)


def run(text: str, steps: int = 2) -> Episode:
    """One episode on an endpoint that always says `text`, stored and read back."""
    with MockEndpoint(Behaviour(0.0, replies=[text] * 20)) as server:
        actor = ChatActor(server.url, "m", attempts=1, timeout_s=30, format_retries=0)
        from harness.loop import Limits

        return episode(Origin(), actor, MockEnvironment(), limits=Limits(max_steps=steps))


def shown(made: Episode, full: bool = True) -> str:
    out = io.StringIO()
    show(made, Console(file=out, width=100, force_terminal=True, color_system=None), full=full)
    return out.getvalue()


def stored(made: Episode, folder: Path) -> Episode:
    with Ledger(folder) as ledger:
        ledger.append(made)
    return next(read_episodes(folder))


def test_ten_megabytes_of_thought(tmp_path: Path) -> None:
    began = time.monotonic()
    made = stored(run("Thought: " + "a b " * (BIG // 4) + "\nAction: right"), tmp_path)
    assert time.monotonic() - began < 20
    assert (made.status, [step.executed.text for step in made.steps]) == ("truncated", ["right", "right"])
    assert len(json.dumps(to_json(made))) < 50_000
    assert "characters left out here" in made.steps[0].thought
    assert (tmp_path / "ledger.jsonl.gz").stat().st_size < 10_000


@pytest.mark.parametrize("text", ["x" * BIG, "Action: " + "y" * BIG, "<think>" * (BIG // 7), "\n" * BIG])
def test_ten_megabytes_without_an_action(text: str, tmp_path: Path) -> None:
    began = time.monotonic()
    made = stored(run(text), tmp_path)
    assert time.monotonic() - began < 20
    assert (made.status, made.boundary, made.reward) == ("unparsed", "actor", None)
    assert len(made.reason) < 1_000
    assert len(shown(made)) < 10_000


def test_what_steers_a_terminal_is_text(tmp_path: Path) -> None:
    made = stored(run(f"Thought: {STEER}\nAction: {STEER[:30]}"), tmp_path)
    assert made.steps[0].thought
    text = shown(made)
    assert not set(text) & {"\x07", "\x9b", "\x00", "\u202e", "\r"}
    assert "\x1b" not in text
    assert "[bold]b[/bold]" in text
    assert "\\x1b[2J" in text
    assert not set(as_json(made)) & {"\x1b", "\x07", "\x9b", "\x00", "\u202e"}


def test_messages_of_the_command_line_do_not_steer_either(tmp_path: Path) -> None:
    made = run("Action: right")
    evil = [replace(made, task_id=f"{STEER}{i}", cell="c" * 16) for i in range(2)]
    with Ledger(tmp_path / "results" / "demo") as ledger:
        for one in evil:
            ledger.append(one)
    command = [sys.executable, "-m", "harness.cli", "show", "demo", "nothing", "--results", str(tmp_path / "results")]
    ran = subprocess.run(command, capture_output=True, check=False, cwd=ROOT, timeout=120)
    assert ran.returncode == 2
    assert b"\\x1b[2J" in ran.stderr
    for sign in (b"\x1b", b"\x07", b"\x00", "\x9b".encode(), "\u202e".encode()):
        assert sign not in ran.stderr + ran.stdout


NESTED = ['{"a":' * 100_000, "[" * 100_000, '{"a":[' * 500 + "1" + "]}" * 500, '{"name":"f","arguments":' * 50_000]


@pytest.mark.parametrize("number", range(len(NESTED)))
@pytest.mark.parametrize("form", ["{}", "Action: {}", "Action: respond({})", "```json\n{}\n```", "<tool_call>{}</tool_call>"])
def test_nested_json_in_the_text(number: int, form: str) -> None:
    made = run(form.replace("{}", NESTED[number]), steps=1)
    assert made.status == "unparsed"
    assert made.boundary == "actor"


def deep(levels: int) -> bytes:
    """An answer whose tool call has arguments this deep."""
    start = b'{"choices":[{"message":{"content":"","tool_calls":[{"function":{"name":"f","arguments":'
    return start + b'{"a":' * levels + b"1" + b"}" * levels + b"}}]}}]}"


@pytest.mark.parametrize(
    "body",
    [
        deep(100_000), deep(950), deep(900), deep(300), b"[" * 100_000, b'{"choices":' + b"[" * 900 + b"]" * 900 + b"}",
        b'{"choices":[{"message":{"content":{"a":1}}}]}', b'{"choices":[{"message":{"content":[1]}}]}',
        b'{"choices":[{"message":{"tool_calls":{"a":1}}}]}', b'{"choices":[{"message":null}]}', b'{"choices":{"0":1}}',
        b'{"choices":[{"message":{"content":"Action: right"},"logprobs":{"content":[{"token":"A","logprob":"x"}]}}]}',
        b'{"choices":[{"message":{"content":"Action: right"},"logprobs":{"content":[{"token":"A","logprob":1' + b"0" * 400
        + b"}]}}]}", b'{"choices":[{"message":{"content":' + b"9" * 5000 + b"}}]}", b"\xff\xfe", b"",
    ],
)  # fmt: skip
def test_answers_of_no_known_shape(body: bytes) -> None:
    Raw.body = body
    with Raw(Behaviour(0.0)) as server:
        actor = ChatActor(server.url, "m", attempts=1, timeout_s=20, format_retries=0)
        made = episode(Origin(), actor, MockEnvironment())
    assert made.status in ("failed", "unparsed")
    assert made.boundary == "actor"
    assert "RecursionError: " not in made.reason
    assert len(made.reason) < 2_000


def test_claims_of_a_server_are_bounded() -> None:
    message = {"content": "c" * BIG, "reasoning": "r" * BIG}
    call = {"function": {"name": "n" * BIG, "arguments": "a" * 1_000_000}}
    usage = {"prompt_tokens": 10**40, "completion_tokens": 7, "prompt_tokens_details": {"cached_tokens": -1}}
    made = parse_completion(
        {"choices": [{"message": {**message, "tool_calls": [call] * 200}, "finish_reason": "f" * BIG}], "usage": usage}
    )
    assert max(len(made.text), len(made.reasoning), len(made.tool_calls[0].arguments)) <= MAX_ANSWER + 80
    assert "characters left out here" in made.text
    assert made.text.startswith("c")
    assert made.text.endswith("c")
    assert len(made.tool_calls) == 64
    assert max(len(made.finish), len(made.tool_calls[0].name)) <= 200
    assert (made.usage.prompt, made.usage.completion, made.usage.cached) == (None, 7, None)
    with pytest.raises(Transient):
        parse_completion({"choices": [{"message": {"content": "x"}, "logprobs": {"content": [{"token": "a"}]}}]})


def test_proposals_and_observations_are_bounded() -> None:
    with pytest.raises(EpisodeError, match="limit is") as caught:
        proposal(Proposal(Action("x" * (MAX_ACTION + 1), "x")))
    assert (caught.value.boundary, caught.value.status) == ("actor", "unparsed")
    thought = proposal(Proposal(Action("x", "x"), "t" * BIG)).thought
    assert len(thought) <= MAX_ANSWER + 80
    assert "left out here" in thought
    task, first = opening(("t" * BIG, Observation("o" * BIG)))
    last = outcome(Outcome(Observation("o" * BIG), 0.0))
    for text in (task, first.text, last.observation.text):
        assert len(text) <= MAX_OBSERVATION + 80
        assert "left out here" in text


@pytest.mark.parametrize(
    "expression",
    ["9**9**9", "9**9**9**9", "(" * 150 + "1" + ")" * 150, "9*" * 5000 + "9", "1/0", "2 ** 3 ** 999999", "__import__('os')",
     "1" * 200 + "*" + "1" * 200, "9 ** 9 ** 9", "().__class__", "1_000 << 99999999", "1e999", "9//0"],
)  # fmt: skip
def test_the_calculator_of_retail(expression: str) -> None:
    pytest.importorskip("tau2")
    from harness.environments.retail import Retail

    env = Retail()
    env.reset("0", 0)
    began = time.monotonic()
    made = env.step(env.canonical(f"calculate({json.dumps({'expression': expression})})"))
    assert time.monotonic() - began < 2
    assert made.observation.text.startswith("Error")
    assert not made.done


class Elsewhere(MockEndpoint):
    """Sends every caller to another address."""

    target = ""

    def say(self, kind: str, request: dict[str, Any], link: Link) -> None:
        link.transport.write(f"HTTP/1.1 307 X\r\nLocation: {self.target}\r\nContent-Length: 0\r\n\r\n".encode())


def test_a_redirect_does_not_take_the_key_along(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A_KEY", "sk-secret")
    with MockEndpoint(Behaviour(0.0)) as collector, Elsewhere(Behaviour(0.0)) as server:
        Elsewhere.target = f"{collector.url}/chat/completions"
        actor = ChatActor(server.url, "m", key_env="A_KEY", attempts=2, timeout_s=10)
        made = episode(Origin(), actor, MockEnvironment())
    assert (made.status, made.boundary) == ("failed", "actor")
    assert not collector.authorizations
    assert server.authorizations["sk-secret"] >= 1


def test_a_body_without_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    from harness.models import transport

    assert transport.MAX_BODY <= 64 << 20
    monkeypatch.setattr(transport, "MAX_BODY", 100_000)
    made = run("x" * 200_000, steps=1)
    assert made.status == "failed"
    assert "larger than 100000 bytes" in made.reason
