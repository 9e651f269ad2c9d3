"""What a retail conversation has established so far, read from the executed prefix alone."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from harness.records import DecisionState
from methods.candidates.conditions import Unbindable

_CALL = re.compile(r"\s*([A-Za-z_]\w*)\((.*)\)\s*\Z", re.DOTALL)
_CUSTOMER = "Customer:"
_ADDRESS = ("address1", "address2", "city", "state", "country", "zip")
_WORDS = ("user_id", "email", "first_name", "last_name", *_ADDRESS)
_ORDER = re.compile(r"#W\d{7}\b")
_EMAIL = re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+")
_ZIP = re.compile(r"\b\d{5}\b")
_NAME = re.compile(r"\b(?:name is|i am|i'm|this is)\s+([A-Z][\w'-]+)\s+([A-Z][\w'-]+)", re.IGNORECASE)
_YES = re.compile(r"^\W*(?:yes|yeah|yep|sure|correct|confirmed?|please do|go ahead|ok(?:ay)?)\b", re.IGNORECASE)
_ASKED = re.compile(r"\bconfirm|\bproceed|\byes\b|shall i|should i|would you like me|do you want me", re.IGNORECASE)


@dataclass
class Facts:
    """Identifiers seen, and how far the conversation is.

    Attributes:
        identified: a user id was found, or user details were shown.
        confirmation: "none", "asked" (a proposal waits for an answer) or "confirmed" (the last word was yes to one).
        last_event: "customer", "error" or the tool that answered last.
        orders: details of orders looked up: status and item ids.
        order_ids: order ids mentioned anywhere.
        items: item id to product id.
        variants: product id to available item ids.
        payments: payment method ids.
        words: email, first_name, last_name, zip, user_id and address parts.
    """

    identified: bool = False
    confirmation: str = "none"
    last_event: str = "customer"
    orders: dict[str, dict[str, Any]] = field(default_factory=dict)
    order_ids: dict[str, None] = field(default_factory=dict)
    items: dict[str, str] = field(default_factory=dict)
    products: dict[str, None] = field(default_factory=dict)
    variants: dict[str, list[str]] = field(default_factory=dict)
    payments: dict[str, None] = field(default_factory=dict)
    words: dict[str, str] = field(default_factory=dict)


def parse_call(text: str) -> tuple[str, dict[str, Any]]:
    """(tool, arguments) of an action text. Raises `Unbindable` when it is none."""
    match = _CALL.match(text)
    if match is None:
        raise Unbindable("not a tool call")
    try:
        args = json.loads(match.group(2) or "{}")
    except (ValueError, RecursionError):
        raise Unbindable("arguments are no JSON") from None
    if not isinstance(args, dict):
        raise Unbindable("arguments are no JSON object")
    return match.group(1), args


@lru_cache(maxsize=64)
def facts_of(state: DecisionState) -> Facts:
    """The facts of a state; shared between callers, who must not change them."""
    facts = Facts()
    _customer(facts, state.opening.text)
    for turn in state.turns:
        try:
            name, args = parse_call(turn.action.text)
        except Unbindable:
            name, args = "", {}
        text = turn.observation.text
        if text.startswith("Error"):
            facts.last_event = "error"
        elif text.startswith(_CUSTOMER):
            _confirmation(facts, str(args.get("content", "")), text.removeprefix(_CUSTOMER).strip())
            facts.last_event = "customer"
            _customer(facts, text)
        else:
            facts.last_event = name
            _tool(facts, name, args, text)
    return facts


def _confirmation(facts: Facts, asked: str, answer: str) -> None:
    if _ASKED.search(asked):
        facts.confirmation = "confirmed" if _YES.match(answer) else "asked"
    else:
        facts.confirmation = "none"


def _customer(facts: Facts, text: str) -> None:
    facts.order_ids.update(dict.fromkeys(_ORDER.findall(text)))
    for key, pattern in (("email", _EMAIL), ("zip", _ZIP)):
        found = pattern.findall(text)
        if found:
            facts.words[key] = found[-1]
    name = _NAME.search(text)
    if name:
        facts.words["first_name"], facts.words["last_name"] = name.groups()


def _tool(facts: Facts, name: str, args: dict[str, Any], text: str) -> None:
    if name.startswith("find_user_id_by_"):
        facts.identified = True
        facts.words["user_id"] = text.strip().strip('"')
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return
    if name == "get_user_details":
        facts.identified = True
    if re.match(r"(?:cancel|modify|return|exchange)_", name):
        facts.confirmation = "none"  # what was confirmed is done
    for part in _dicts(value):
        _gather(facts, part)
    if name == "get_product_details" and isinstance(value, dict):
        facts.products.update(dict.fromkeys([str(args.get("product_id", ""))]))


def _gather(facts: Facts, part: dict[str, Any]) -> None:
    if isinstance(part.get("order_id"), str) and isinstance(part.get("status"), str):
        items = [item for item in part.get("items", []) if isinstance(item, dict) and "item_id" in item]
        facts.orders[part["order_id"]] = {"status": part["status"], "items": [str(item["item_id"]) for item in items]}
        facts.order_ids[part["order_id"]] = None
        for item in items:
            facts.items[str(item["item_id"])] = str(item.get("product_id", ""))
            facts.products[str(item.get("product_id", ""))] = None
    if isinstance(part.get("variants"), dict):
        variants = {str(key): value for key, value in part["variants"].items() if isinstance(value, dict)}
        product = str(part.get("product_id", ""))
        facts.variants[product] = sorted(key for key, value in variants.items() if value.get("available", True))
        facts.items.update(dict.fromkeys(variants, product))
    if isinstance(part.get("payment_methods"), dict):
        facts.payments.update(dict.fromkeys(map(str, part["payment_methods"])))
    if isinstance(part.get("orders"), list):
        facts.order_ids.update(dict.fromkeys(order for order in part["orders"] if isinstance(order, str)))
    for key in _WORDS:
        if isinstance(part.get(key), str):
            facts.words[key] = part[key]


def _dicts(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        yield value
        for inner in value.values():
            yield from _dicts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _dicts(inner)
