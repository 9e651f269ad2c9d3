"""Answer: what a chat completion says, whichever server said it.

Thinking arrives in `reasoning_content` (DeepSeek), `reasoning` (newer vLLM) or inside the text between think marks;
here only the separate fields are told apart, marks in the text are the reader's business.  Text of any size comes in
and bounded text goes out (`harness.bounds`); an answer of a shape that no server sends is a fault of that attempt.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from harness.bounds import MAX_ANSWER, MAX_CALLS, bounded
from harness.models.errors import Transient
from harness.models.usage import parse_usage
from harness.records import Usage


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A native tool call; `arguments` is JSON text as the model wrote it."""

    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Completion:
    """One answer; `top` holds (token text, log-probability) of the first answer token, best first."""

    text: str
    reasoning: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    finish: str = ""
    usage: Usage = field(default_factory=Usage)
    top: tuple[tuple[str, float], ...] = ()
    model: str = ""
    seconds: float = 0.0
    from_cache: bool = False


def parse_completion(answer: Mapping[str, Any], cached: bool = False) -> Completion:
    """The first choice of an answer.

    Raises:
        Transient: the answer has no readable choice, as from a server that was cut off.
    """
    try:
        choice = answer["choices"][0]
        message = choice["message"]
        text, calls = message.get("content") or "", (message.get("tool_calls") or ())[:MAX_CALLS]
        tools = tuple(
            ToolCall(str(c["function"]["name"])[:200], _arguments(c["function"].get("arguments"))) for c in calls
        )
        if isinstance(text, list):  # parts, as some servers send them
            text = "".join(str(part.get("text", "")) for part in text)
        text = bounded(str(text), MAX_ANSWER)
        reasoning = bounded(str(message.get("reasoning_content") or message.get("reasoning") or ""), MAX_ANSWER)
        finish, model = (str(value or "")[:200] for value in (choice.get("finish_reason"), answer.get("model")))
        top = _first_token(choice.get("logprobs"))
    except (LookupError, TypeError, AttributeError, ValueError, ArithmeticError, RecursionError) as error:
        raise Transient("truncated", f"the answer has no readable choice ({type(error).__name__}: {error})") from error
    usage = parse_usage(answer.get("usage"))
    if cached:
        usage = from_cache(usage)
    return Completion(
        text=text,
        reasoning=reasoning,
        tool_calls=tools,
        finish=finish,
        usage=usage,
        top=top,
        model=model,
        from_cache=cached,
    )


def from_cache(usage: Usage) -> Usage:
    """Usage of an answer that was not asked for again: no call was made, its tokens count as saved."""
    return replace(usage, calls=0, waited_s=0.0, saved_prompt=usage.prompt, saved_completion=usage.completion)


def _arguments(given: Any) -> str:
    text = given if isinstance(given, str) else json.dumps(given if given is not None else {}, ensure_ascii=False)
    return bounded(text, MAX_ANSWER)


def _first_token(logprobs: Any) -> tuple[tuple[str, float], ...]:
    content = logprobs.get("content") if isinstance(logprobs, Mapping) else None
    if not content:
        return ()
    listed = content[0].get("top_logprobs") or [content[0]]
    pairs = [(str(item["token"]), float(item["logprob"])) for item in listed]
    return tuple(pair for pair in pairs if math.isfinite(pair[1]))
