"""What a model writes is an action or an `IllegalAction`, in linear time, and an action's own text reads as itself."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from harness.actors.parsing import read, split_thinking
from harness.bounds import MAX_ANSWER
from harness.environments.alfworld.commands import parse as alfworld
from harness.environments.mock import MockEnvironment
from harness.environments.retail.actions import parse_action as retail
from harness.environments.webshop import WebShop
from harness.errors import IllegalAction
from harness.models.answer import Completion, ToolCall
from harness.records import Action

PARSERS: dict[str, Callable[[str], Action]] = {
    "alfworld": alfworld,
    "mock": MockEnvironment().canonical,
    "retail": retail,
    "webshop": WebShop().canonical,
}
WORDS = [
    *("go to", "goto", "walk to", "move", "put", "down", "take", "pick up", "from", "in/on", "to", "the", "a", "some"),
    *("mug", "mug1", "mug #1", "desk 2", "turn on", "look around", "use", "with", "heat", ".", "!", "`", '"', "*", "**"),
    *("search", "click", "[", "]", "[red]", "search[", "click[", "<r>", "<a> x", "buy now", "< prev", "action:"),
    *("respond", "(", ")", "{", "}", '{"content": "x"}', '{"name": "f", "arguments": {}}', '"', ":", ",", "null", "1e999"),
    *("NaN", "[[", "]]", "\\ud800", "\ud800", "\x00", "\x1b[31m", "\u202e", "İ", "ß", "\u2028", "\x1c", "\u00a0", "9" * 30),
    *("Action:", "**Action:**", "Action Input:", "Action 1:", "Thought:", "Observation:", "```", "```json\n", "<think>"),
    *("</think>", "<tool_call>", "</tool_call>", "\n", "\n\n", "    ", "- ", "1. ", "it is"),
]
JSONISH = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
).map(lambda value: json.dumps(value))
CALL = st.builds("{}({})".format, st.sampled_from(["respond", "f", "find_user_id_by_email", "a b", "f(x"]), JSONISH)
OBJECT = st.builds('{{"name": {}, "arguments": {}}}'.format, JSONISH | st.just('"f "') | st.just('"f(x"'), JSONISH)
PIECES = st.lists(st.sampled_from(WORDS) | st.text(max_size=4), max_size=12)
TEXTS = st.one_of(
    PIECES.map(" ".join), PIECES.map("".join), CALL, OBJECT, st.text(max_size=40), st.builds("{} {}".format, CALL, CALL)
)


@pytest.mark.parametrize("name", sorted(PARSERS))
@settings(max_examples=200)
@given(TEXTS)
@example("put down down x in y")
@example('{"name": "f ", "arguments": {}}')
@example('{"name": "f(x", "arguments": {}}')
@example("search[.<r> x]")
@example("respond(" + '{"a":' * 2000)
@example('respond({"content": "' + "\x01" * 6000 + '"})')
def test_an_action_reads_as_itself(name: str, text: str) -> None:
    parse = PARSERS[name]
    try:
        action = parse(text)
    except IllegalAction as error:
        said = str(error)
    else:
        said = ""
        assert parse(action.text) == action
    if said:
        assert len(said) < 2_000
        return
    assert action.canonical.strip()
    assert len(action.text) <= 12_100
    try:
        again = parse(action.canonical)
    except IllegalAction:
        return
    assert again.canonical == action.canonical


@pytest.mark.parametrize("name", sorted(PARSERS))
@settings(max_examples=100)
@given(PIECES, st.lists(st.tuples(st.text(max_size=8), TEXTS), max_size=2), st.booleans(), st.booleans())
def test_an_answer_is_read_or_illegal(name: str, pieces: list[str], calls: Any, talk: bool, listed: bool) -> None:
    answer = Completion(" ".join(pieces), tool_calls=tuple(ToolCall(*call) for call in calls))
    try:
        found = read(answer, PARSERS[name], (lambda action: True) if listed else None, talk=talk)
    except IllegalAction:
        return
    assert isinstance(found.action, Action)
    assert len(found.thought) <= 4_080


@given(st.lists(st.sampled_from(["<think>", "</think>", "<thinking>", "</Thinking>", "a", " b "]), max_size=8))
def test_no_text_is_lost_between_answer_and_thinking(pieces: list[str]) -> None:
    text, thinking = split_thinking(Completion("".join(pieces)))
    assert (text + thinking).count("a") == pieces.count("a")
    assert (text + thinking).count("b") == pieces.count(" b ")
    assert "<think>" not in text


LONG = MAX_ANSWER
SLOW = {
    "open thoughts": "<think>" * (LONG // 7),
    "thoughts": "<think></think>" * (LONG // 15),
    "line breaks": "\n" * LONG,
    "action and line breaks": "Action:" + "\n" * LONG + "x",
    "actions": "Action: x\n" * (LONG // 10),
    "tool call and blanks": "<tool_call>x" + " " * LONG + "x",
    "tool calls": "<tool_call>" * (LONG // 11),
    "open fence": "```" + "a" * LONG,
    "backticks": "`" * LONG,
    "stars": "*" * LONG,
    "brackets": "[" * LONG,
    "nested": "Action: respond(" + '{"a":' * (LONG // 5),
    "nested objects": '{"a":' * (LONG // 5),
    "articles": "the " * (LONG // 4),
    "put in": "put " + "x in " * (LONG // 5),
    "searches": "search[" * (LONG // 7),
    "colons": "action:" * (LONG // 7),
    "digits": "9" * LONG,
    "calls": 'f({"a": 1}) ' * (LONG // 12),
    "braces": "{" * LONG,
    "quotes": "\"'" * (LONG // 2),
    "observations": "Action: x\nObservation" + "\n" * LONG,
}


@cache
def _yes(action: Action) -> bool:
    return True


@pytest.mark.parametrize("name", sorted(PARSERS))
def test_no_answer_takes_long(name: str) -> None:
    for what, text in SLOW.items():
        began = time.process_time()
        for answer in (Completion(text), Completion("", tool_calls=(ToolCall("respond", text),))):
            with contextlib.suppress(IllegalAction):
                read(answer, PARSERS[name], _yes, talk=True)
        took = time.process_time() - began
        assert took < 2.0, f"{what}: {took:.1f} s"
