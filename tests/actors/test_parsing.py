"""What models write, and the action in it; parsers of the kind that environments have."""

from __future__ import annotations

import json
import re

import pytest

from harness.actors.parsing import read, split_thinking
from harness.actors.toolschemas import native_tools
from harness.errors import IllegalAction
from harness.models.answer import Completion, ToolCall
from harness.records import Action

COMMANDS = ("go to desk 1", "take mug 1 from desk 1", "look")
CALL = re.compile(r"(\w+)\((\{.*\})?\)", re.DOTALL)


def household(text: str) -> Action:
    if not text.strip() or len(text) > 80 or "\n" in text:
        raise IllegalAction(f"{text[:30]!r} is no command")
    return Action(text.strip(), text.strip().lower())


def listed(action: Action) -> bool:
    return action.canonical in COMMANDS


def shop(text: str) -> Action:
    found = re.fullmatch(r"(search|click)\[(.+)\]", text.strip(), re.IGNORECASE)
    if not found:
        raise IllegalAction(f"{text[:30]!r} is no action")
    return Action(text.strip(), text.strip().lower())


def tools(text: str) -> Action:
    found = CALL.fullmatch(text.strip())
    if not found:
        raise IllegalAction(f"{text[:30]!r} is no call")
    try:
        args = json.loads(found.group(2) or "{}", strict=False)
    except ValueError as error:
        raise IllegalAction("broken arguments") from error
    return Action(text.strip(), f"{found.group(1)}({json.dumps(args, sort_keys=True)})")


@pytest.mark.parametrize(
    ("text", "action", "thought"),
    [
        ("Thought: there is a desk.\nAction: go to desk 1", "go to desk 1", "there is a desk."),
        ("action: go to desk 1", "go to desk 1", ""),
        ("**Thought:** hm\n**Action:** `go to desk 1`", "go to desk 1", "hm"),
        ("Thought: a\nAction 1: look\nObservation 1: nothing\nAction 2: go to desk 1", "look", "a"),
        ("Thought: a\nAction: look\nAction: go to desk 1", "look", "a"),
        ("<think>Action: look</think>\nThought: b\nAction: go to desk 1", "go to desk 1", "b"),
        ("I ponder Action: look\n</think>\nAction: go to desk 1", "go to desk 1", "I ponder Action: look"),
        ("Thought: c\nAction:\n```\ngo to desk 1\n```", "go to desk 1", "c"),
        ('{"thought": "d", "action": "go to desk 1"}', "go to desk 1", ""),
        ('```json\n{"action": "go to desk 1"}\n```', "go to desk 1", ""),
        ("The desk is near.\ngo to desk 1", "go to desk 1", ""),
        ("I will now go there.\n- go to desk 1.", "go to desk 1", ""),
        ("Thought: e\nAction: go to desk 1.", "go to desk 1", "e"),
        ("> go to desk 1", None, ""),
        ("I do not know what to do here.", None, ""),
        ("", None, ""),
        ("<think>never ends: Action: look", None, ""),
    ],
)
def test_household(text: str, action: str | None, thought: str) -> None:
    if action is None:
        with pytest.raises(IllegalAction):
            read(Completion(text), household, listed)
        return
    found = read(Completion(text), household, listed)
    assert found.action.text == action
    assert found.thought == thought


@pytest.mark.parametrize(
    ("text", "action"),
    [
        ("Thought: x\nAction: search[red shoes]", "search[red shoes]"),
        ("Action: search\nAction Input: red shoes", "search[red shoes]"),
        ("Action: click[Buy Now] because it fits", None),
        ("search[red shoes]", "search[red shoes]"),
        ("I would click[Buy Now]", None),
    ],
)
def test_shop(text: str, action: str | None) -> None:
    if action is None:
        with pytest.raises(IllegalAction):
            read(Completion(text), shop, lambda _: True)
    else:
        assert read(Completion(text), shop, lambda _: True).action.text == action


ORDER = 'get_order_details({"order_id": "#W1"})'


@pytest.mark.parametrize(
    "text",
    [
        f"Thought: look it up\nAction: {ORDER}",
        f"Action: {ORDER}\n\nThen I shall tell the customer.",
        'Action: get_order_details({\n  "order_id": "#W1"\n})',
        'Action: {"name": "get_order_details", "arguments": {"order_id": "#W1"}}',
        '<tool_call>\n{"name": "get_order_details", "arguments": {"order_id": "#W1"}}\n</tool_call>',
        '<tool_call>{"name": "get_order_details", "parameters": {"order_id": "#W1"}}',
        'Action: get_order_details\nAction Input: {"order_id": "#W1"}',
        f"```python\n{ORDER}\n```",
        ORDER,
    ],
)
def test_tool_calls_as_text(text: str) -> None:
    assert read(Completion(text), tools, lambda _: True).action.canonical == tools(ORDER).canonical


def test_a_message_keeps_its_lines() -> None:
    text = 'Action: respond({"content": "Two lines:\\n- a (b)\\n- c"})'
    assert json.loads(read(Completion(text), tools).action.text[8:-1])["content"] == "Two lines:\n- a (b)\n- c"


def test_native_calls_and_plain_talk() -> None:
    answer = Completion("thinking aloud", tool_calls=(ToolCall("get_order_details", '{"order_id": "#W1"}'),))
    assert read(answer, tools).action.canonical == tools(ORDER).canonical
    assert read(Completion("Hello there!"), tools, talk=True).action.text == 'respond({"content": "Hello there!"})'
    with pytest.raises(IllegalAction):
        read(Completion("Hello there!"), tools)
    with pytest.raises(IllegalAction):
        read(Completion("", tool_calls=(ToolCall("f", "{broken"),)), tools)


def test_thinking_of_either_kind() -> None:
    assert split_thinking(Completion("x", reasoning="r")) == ("x", "r")
    assert split_thinking(Completion("<think>a</think>b<think>c")) == ("b", "a\nc")
    assert "cut off while thinking" in str(_problem(Completion("<think>a", finish="length")))


def _problem(answer: Completion) -> IllegalAction:
    with pytest.raises(IllegalAction) as caught:
        read(answer, household, listed)
    return caught.value


@pytest.mark.parametrize("text", ["{" * 5000, "Action: f(" + "(" * 5000, "<think>" * 999, "Action:\n" * 2000, "\x00"])
def test_hostile_answers_are_quick_and_harmless(text: str) -> None:
    with pytest.raises(IllegalAction):
        read(Completion(text), tools, lambda _: True)


def test_schemas_become_native_tools() -> None:
    found = native_tools(('f({"a": string, "b": [string]}) - does f', 'respond({"content": string})', "search[words]"))
    assert [tool["function"]["name"] for tool in found] == ["f"]
    properties = found[0]["function"]["parameters"]["properties"]
    assert properties == {"a": {"type": "string"}, "b": {"type": "array", "items": {"type": "string"}}}
