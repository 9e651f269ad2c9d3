"""Parsing: from what a model wrote to one action, tolerant of form and strict about content.

The environment's own parser decides what an action is; here only the places where one may stand are listed, most
explicit first: a native tool call, a tool call written as text, an `Action:` line, a code fence, a JSON object, the
last line.  A model that goes on to invent observations and further actions is cut at the first of them.  The last line
is believed only when it is legal there, so that prose does not become an action.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from harness.bounds import bounded
from harness.errors import IllegalAction
from harness.models.answer import Completion
from harness.records import Action

MAX_THOUGHT = 4_000
MAX_WRAPS = 8  # pairs of one kind of quotes around an action that are taken off
_THINK = re.compile(r"</?think(?:ing)?>", re.IGNORECASE)
_OBSERVATION = re.compile(r"^[ \t]*(?:\*\*)?(?:Observation|Obs|Result)(?:\s*\d+)?\s*:", re.MULTILINE | re.IGNORECASE)
_ACTION = re.compile(
    r"^[ \t>*#-]*(?:next |final )?Action(?:\s*\d+)?(?:\*\*)?\s*:(?:\*\*)?[ \t]*", re.MULTILINE | re.IGNORECASE
)
_INPUT = re.compile(r"^[ \t]*Action[ \t]+Input\s*:\s*(.*)", re.MULTILINE | re.IGNORECASE | re.DOTALL)
_THOUGHT = re.compile(
    r"\A\s*(?:\*\*)?(?:Thought|Reasoning|Rationale)(?:\s*\d+)?(?:\*\*)?\s*:(?:\*\*)?\s*", re.IGNORECASE
)
_TOOL = re.compile(r"<tool_call>(.*?)(?:</tool_call>|\Z)", re.DOTALL)
_FENCE = re.compile(r"```(?:[a-zA-Z_]{0,20}(?=[^a-zA-Z_]))?(.*?)```", re.DOTALL)
_NAME = re.compile(r"[A-Za-z_]\w*\Z")
_QUOTES = ("`", '"', "'", "**", "*")


@dataclass(frozen=True, slots=True)
class Reading:
    """What was read from an answer."""

    action: Action
    thought: str


def read(
    answer: Completion,
    parse: Callable[[str], Action],
    legal: Callable[[Action], bool] | None = None,
    talk: bool = False,
) -> Reading:
    """The one action of an answer, and the thought before it.

    Args:
        answer: the completion.
        parse: the environment's parser; raises `IllegalAction`.
        legal: whether an action can be executed now; the last-line fallback needs it.
        talk: plain text without any action is a message to the customer (native tool calling).

    Raises:
        IllegalAction: nothing in the answer is an action; the message says why.
    """
    text, thinking = split_thinking(answer)
    thought = _thought(text, thinking)
    if answer.tool_calls:
        call = answer.tool_calls[0]
        return Reading(parse(f"{call.name}({call.arguments.strip() or '{}'})"), thought)
    if not text.strip():
        cut = " (cut off while thinking)" if answer.finish == "length" else ""
        raise IllegalAction(f"the answer is empty{cut}")
    problem: IllegalAction | None = None
    for place in places(text):
        try:
            return Reading(_full_stop(parse(place), parse, legal), thought)
        except IllegalAction as error:
            problem = problem or error
    fallback = _last_line(text, parse, legal)
    if fallback is not None:
        return Reading(fallback, thought)
    if talk and problem is None:
        return Reading(parse(f"respond({json.dumps({'content': text.strip()}, ensure_ascii=False)})"), "")
    cut = "; the answer was cut off" if answer.finish == "length" else ""
    raise IllegalAction(f"{problem or 'there is no line that begins with Action:'}{cut}")


def split_thinking(answer: Completion) -> tuple[str, str]:
    """(text without think blocks, thinking); a block that never ends is all thinking."""
    text, at, opened = answer.text, 0, -1
    thinking, kept, stray = [answer.reasoning] if answer.reasoning else [], "", False
    for mark in _THINK.finditer(text):  # one pass: a search for each opening mark's end would be quadratic
        closes = mark.group().startswith("</")
        if opened < 0 and not closes:
            kept, opened = kept + text[at : mark.start()], mark.end()
        elif opened >= 0 and closes:
            thinking.append(text[opened : mark.start()].strip())
            at, opened = mark.end(), -1
        elif closes and not stray:
            thinking.append((kept + text[at : mark.start()]).strip())  # the opening mark was part of the prompt
            kept, at, stray = "", mark.end(), True
    if opened >= 0:
        return kept, "\n".join(part for part in [*thinking, text[opened:].strip()] if part)
    return kept + text[at:], "\n".join(part for part in thinking if part)


def places(text: str) -> Iterator[str]:
    """Texts that explicitly claim to be the action, most explicit first."""
    for call in _TOOL.findall(text):
        yield from _object(call)
    end = _OBSERVATION.search(text, _ACTION.search(text).end()) if _ACTION.search(text) else None  # type: ignore[union-attr]
    text = text[: end.start()] if end else text
    starts = list(_ACTION.finditer(text))
    for number, start in enumerate(starts):
        stop = starts[number + 1].start() if number + 1 < len(starts) else len(text)
        yield from _spoken(text[start.end() : stop])
    for block in _FENCE.findall(text):
        yield from _object(block)
        yield from _spoken(block)
    yield from _object(text)


def _spoken(text: str) -> Iterator[str]:
    """Readings of what follows `Action:`, from the whole to its first line."""
    text = text.strip()
    given = _INPUT.search(text)
    if given:
        name = bare(text[: given.start()])
        if _NAME.match(name):
            value = bare(given.group(1))
            yield f"{name}({value})" if value.startswith("{") else f"{name}[{value}]"
    fenced = _FENCE.search(text)
    if fenced:
        yield from _object(fenced.group(1))
        yield bare(fenced.group(1))
    yield from _object(text)
    if "(" in text:  # arguments may go over several lines, and prose may follow them
        yield bare(text)
        closed = _balanced(text)
        if closed:
            yield closed
    first = next((line for line in text.splitlines() if line.strip()), "")
    if first:
        yield bare(first)


def _object(text: str) -> Iterator[str]:
    """Readings of a JSON object: `{"action": ...}` or `{"name": ..., "arguments": ...}`."""
    start = text.find("{")
    if start < 0 or text[:start].strip() not in ("", "json", "JSON"):
        return
    try:
        value: Any = json.JSONDecoder(strict=False).raw_decode(text[start:])[0]
    except (ValueError, RecursionError):
        return
    if isinstance(value.get("action"), dict):
        value = value["action"]
    name = value.get("name") or value.get("tool") or value.get("function")
    if isinstance(name, str) and _NAME.match(name):
        arguments: Any = next((value[key] for key in ("arguments", "parameters", "args") if key in value), {})
        try:
            written = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
        except RecursionError:
            return
        yield f"{name}({written or '{}'})"
    elif isinstance(value.get("action"), str):
        yield value["action"].strip()


def _balanced(text: str) -> str | None:
    """`name({...})` at the start of the text, whatever follows; None when it never closes."""
    head = re.match(r"\s*([A-Za-z_]\w*)\s*\(\s*(?=\{)", text)
    if head is None:
        return None
    try:
        _, end = json.JSONDecoder(strict=False).raw_decode(text[head.end() :])
    except (ValueError, RecursionError):
        return None
    return f"{head.group(1)}({text[head.end() : head.end() + end]})"


def bare(text: str) -> str:
    """The text without quotes, emphasis and list marks around it."""
    text = re.sub(r"\A(?:[-*•]|\d+[.)])\s+", "", text.strip()).strip()
    for mark in _QUOTES:
        for _ in range(MAX_WRAPS):
            if len(text) <= 2 * len(mark) or not (text.startswith(mark) and text.endswith(mark)):
                break
            text = text[len(mark) : -len(mark)].strip()
    return text


def _last_line(text: str, parse: Callable[[str], Action], legal: Callable[[Action], bool] | None) -> Action | None:
    if legal is None:
        return None
    lines = [bare(line) for line in text.splitlines() if line.strip()]
    for line in (lines[-1:] + lines[:1]) if lines else ():
        for form in (line, line.rstrip(".! "), line.rpartition(":")[2].strip()):
            try:
                action = parse(form)
            except IllegalAction:
                continue
            if legal(action):
                return action
    return None


def _full_stop(action: Action, parse: Callable[[str], Action], legal: Callable[[Action], bool] | None) -> Action:
    """The action without a full stop, where only that one is legal."""
    if legal is None or not action.text.endswith((".", "!")) or legal(action):
        return action
    try:
        without = parse(action.text.rstrip(".! "))
    except IllegalAction:
        return action
    return without if legal(without) else action


def _thought(text: str, thinking: str) -> str:
    """The visible rationale before the action, else the end of the hidden thinking."""
    start = _ACTION.search(text) or _TOOL.search(text) or _FENCE.search(text)
    visible = _THOUGHT.sub("", text[: start.start()] if start else "").strip()
    if visible:
        return bounded(visible, MAX_THOUGHT)
    return thinking.strip()[-600:]
