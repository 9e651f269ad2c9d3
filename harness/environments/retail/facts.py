"""What a conversation has grounded so far, read from the executed prefix alone.

Everything the advisor's view and the candidate pool use comes from here, so neither can know more than the agent has
seen: identity pieces that the customer told, records that tools returned, the last proposal and its answer.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from harness.environments.retail import reading
from harness.environments.retail.actions import RESPOND, Call, parse
from harness.errors import IllegalAction
from harness.records import DecisionState, Observation, Turn

CUSTOMER = "Customer: "
_EMAIL = re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)*\.\w+")
_NAME = re.compile(r"(?:[Nn]ame is|I am|I'm|[Tt]his is)\s+([A-Z][a-z]+)\s+([A-Z][a-z]+)")
_ZIP = re.compile(r"\b\d{5}\b")
_YES = re.compile(r"\b(yes|yeah|sure|correct|go ahead|please do|that is right|proceed)\b", re.I)
_NO = re.compile(r"\b(no|nope|don't|do not|stop|wait|rather not|isn't right|not what)\b", re.I)


@dataclass
class Facts:
    """Grounded entities and the state of confirmation; `orders` and `products` hold None until looked up."""

    emails: list[str] = field(default_factory=list)
    names: list[tuple[str, str]] = field(default_factory=list)
    zips: list[str] = field(default_factory=list)
    user_id: str = ""
    user: Mapping[str, Any] | None = None
    orders: dict[str, Mapping[str, Any] | None] = field(default_factory=dict)
    products: dict[str, Mapping[str, Any] | None] = field(default_factory=dict)
    items: dict[str, str] = field(default_factory=dict)  # item id -> product name
    looked: set[str] = field(default_factory=set)  # canonical texts of successful calls
    writes: list[Call] = field(default_factory=list)
    errors: int = 0
    proposal: str = ""
    answer: str = ""  # "", "waiting", "yes", "no"


def is_customer(observation: Observation) -> bool:
    """Whether the observation is a message of the customer (else a tool's answer)."""
    return observation.text.startswith(CUSTOMER)


def read(state: DecisionState) -> Facts:
    """Facts of a state; read-only for callers (shared through a cache)."""
    return _read(state.opening, state.turns)


@lru_cache(maxsize=64)
def _read(opening: Observation, turns: tuple[Turn, ...]) -> Facts:
    facts = Facts()
    _customer(facts, opening.text)
    for turn in turns:
        try:
            call = parse(turn.action.text)
        except IllegalAction:
            facts.errors += 1
            continue
        if call.name == RESPOND:
            content = str(call.args.get("content", ""))
            if reading.proposes(content) and not reading.asks_identity(content):
                facts.proposal, facts.answer = content, "waiting"
        if is_customer(turn.observation):
            _customer(facts, turn.observation.text)
        elif turn.observation.text.startswith("Error"):
            facts.errors += 1
        else:
            _tool(facts, call, turn)
    return facts


def _customer(facts: Facts, text: str) -> None:
    for found, into in ((_EMAIL.findall(text), facts.emails), (_ZIP.findall(text), facts.zips)):
        into.extend(item for item in found if item not in into)
    facts.names.extend(name for name in _NAME.findall(text) if name not in facts.names)
    for order in reading.ORDER.findall(text):
        facts.orders.setdefault(order if order.startswith("#") else f"#{order}", None)
    if facts.answer == "waiting":
        facts.answer = "no" if _NO.search(text) else "yes" if _YES.search(text) else "waiting"


def _tool(facts: Facts, call: Call, turn: Turn) -> None:
    facts.looked.add(turn.action.canonical)
    if call.name.startswith("find_user_id_by_"):
        facts.user_id = turn.observation.text
    record = loads(turn.observation.text)
    if record is None:
        return
    if "payment_methods" in record:
        facts.user_id, facts.user = str(record["user_id"]), record
        for order in record["orders"]:
            facts.orders.setdefault(order, None)
    elif "order_id" in record:
        facts.orders[record["order_id"]] = record
        for item in record["items"]:
            facts.products.setdefault(item["product_id"], None)
            facts.items[item["item_id"]] = item["name"]
    elif "variants" in record:
        facts.products[record["product_id"]] = record
    if call.name.startswith(("cancel_", "return_", "exchange_", "modify_")):
        facts.writes.append(call)
        facts.proposal, facts.answer = "", ""


@lru_cache(maxsize=512)
def loads(text: str) -> Mapping[str, Any] | None:
    """A tool's JSON object, or None for any other answer. Shared: do not change it."""
    if not text.startswith("{"):
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
