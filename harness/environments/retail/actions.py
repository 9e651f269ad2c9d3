"""The text grammar of an agent action: `name({json object})`, one call and nothing else.

A message to the customer is the call `respond({"content": "..."})`, a tool call is the tool's own name, so both kinds
of action share one grammar that is lossless in both directions: `parse(make(name, args).text)` gives `name` and `args`
back.  The canonical form sorts keys and irons out only what the engine itself does not tell apart: case of e-mails and
names, white space of free text, order of returned items and of exchanged pairs.  Order numbers keep their case and the
items of a pending order their order, because the engine does tell those apart.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NoReturn

from harness.errors import IllegalAction
from harness.records import Action

RESPOND = "respond"
TRANSFER = "transfer_to_human_agents"
MAX_TEXT = 12_000
FORMAT = 'Write one action as name({json object}), such as respond({"content": "..."}) or a tool call.'

_HEAD = re.compile(r"\s*([A-Za-z_][A-Za-z0-9_]*)\s*\(\s*")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_FENCE = re.compile(r"\A\s*```[a-z]*\s*\n?(.*?)\n?\s*```\s*\Z", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Call:
    """A parsed action; `args` is shared between callers and must not be changed."""

    name: str
    args: Mapping[str, Any]

    def action(self) -> Action:
        """The call as an action."""
        return make(self.name, self.args)


def make(name: str, args: Mapping[str, Any]) -> Action:
    """The action of a call. Raises `IllegalAction` when JSON cannot hold the arguments."""
    try:
        body = json.dumps(dict(args), ensure_ascii=False, allow_nan=False)
        canonical = json.dumps(
            _normal(name, args), ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":")
        )
        body.encode()
    except (ValueError, TypeError, RecursionError) as error:
        raise IllegalAction(f"The arguments of {name} are no plain JSON ({error}). {FORMAT}") from error
    return Action(f"{name}({body})", f"{name}({canonical})")


def say(content: str) -> Action:
    """A message to the customer."""
    return make(RESPOND, {"content": content})


@lru_cache(maxsize=4096)
def parse(text: str) -> Call:
    """Parse one action; also takes a code fence around it and the `{"name":, "arguments":}` form of tool calls.

    Raises:
        IllegalAction: when the text is not exactly one action; the message says what is wrong.
    """
    if len(text) > MAX_TEXT:
        raise IllegalAction(f"The action is {len(text)} characters long; the limit is {MAX_TEXT}.")
    fenced = _FENCE.match(text)
    bare = fenced.group(1).strip() if fenced else text.strip()
    if bare.startswith("{"):
        return _object_form(bare)
    head = _HEAD.match(bare)
    if head is None:
        raise IllegalAction(f"{bare[:60]!r} is no action. {FORMAT}")
    name, rest = head.group(1), bare[head.end() :]
    if rest.strip() == ")":
        return Call(name, {})
    args, end = _json(rest, name)
    if rest[end:].strip() != ")":
        raise IllegalAction(f"After {name}({{...}}) comes {rest[end:].strip()[:40]!r}. {FORMAT}")
    return Call(name, args)


def parse_action(text: str) -> Action:
    """The `Action` of a text. Raises `IllegalAction` as `parse` and `make` do."""
    call = parse(text)
    made = make(call.name, call.args)
    if len(made.text) > MAX_TEXT:  # control characters are longer once escaped
        raise IllegalAction(f"The action is {len(made.text)} characters long; the limit is {MAX_TEXT}.")
    return made


def _object_form(text: str) -> Call:
    body, end = _json(text, "the call")
    name, args = body.get("name"), body.get("arguments", {})
    if isinstance(args, str):
        args, _ = _json(args, str(name))
    if text[end:].strip() or not isinstance(name, str) or not isinstance(args, dict) or not _NAME.fullmatch(name):
        raise IllegalAction(f"{text[:60]!r} is no action. {FORMAT}")
    return Call(name, args)


def _json(text: str, name: str) -> tuple[dict[str, Any], int]:
    try:
        value, end = json.JSONDecoder(strict=False, parse_constant=_refuse).raw_decode(text)
    except (ValueError, RecursionError) as error:
        raise IllegalAction(f"The arguments of {name} are no JSON object ({error}). {FORMAT}") from error
    if not isinstance(value, dict):
        raise IllegalAction(f"The arguments of {name} must be one JSON object. {FORMAT}")
    return value, end


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON value")


def _normal(name: str, args: Mapping[str, Any]) -> dict[str, Any]:
    out = dict(args)
    for key in ("content", "summary", "expression"):
        if isinstance(out.get(key), str):
            out[key] = " ".join(out[key].split())
    if name.startswith("find_user_id_by_"):
        for key in ("email", "first_name", "last_name"):
            if isinstance(out.get(key), str):
                out[key] = out[key].lower()
    if name == "return_delivered_order_items" and _texts(out.get("item_ids")):
        out["item_ids"] = sorted(out["item_ids"])
    if name == "exchange_delivered_order_items":
        old, new = out.get("item_ids"), out.get("new_item_ids")
        if _texts(old) and _texts(new) and len(out["item_ids"]) == len(out["new_item_ids"]):
            pairs = sorted(zip(out["item_ids"], out["new_item_ids"], strict=True))
            out["item_ids"], out["new_item_ids"] = [a for a, _ in pairs], [b for _, b in pairs]
    return out


def _texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)
