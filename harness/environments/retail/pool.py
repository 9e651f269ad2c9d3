"""Concrete actions that can be executed here, made from what the conversation has grounded, without any oracle.

Look-ups for every id seen and not yet looked up, the messages an agent typically sends, and, once the customer has
said yes, the change that the agent's own proposal names.  The same state gives the same list in the same order.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from harness.environments.retail.actions import TRANSFER, make, say
from harness.environments.retail.facts import Facts, read
from harness.environments.retail.reading import ITEM, METHOD, ORDER
from harness.errors import IllegalAction
from harness.records import Action, DecisionState

ASK_EMAIL = "Could you please tell me the email address of your account?"
ASK_NAME = "Could you please tell me your first and last name and your zip code?"
ASK_ORDER = "Which order is this about? Please tell me the order number or what is in it."
ASK_DETAIL = "Which item do you mean, and what exactly would you like instead?"
ASK_PAYMENT = "Which payment method would you like to use?"
ASK_REASON = "What is the reason: no longer needed, or ordered by mistake?"
ASK_ADDRESS = "What is the full new address, please?"
ASK_MORE = "Is there anything else I can help you with?"
_PAIR = re.compile(r"\b(\d{10}) (?:to|for|with) (\d{10})\b")
REFUSE = "I am sorry, that is not possible under our policy. Is there anything else I can help you with?"


def pool(state: DecisionState, item_tool: bool) -> list[Action]:
    """Distinct executable actions; `item_tool` says whether `get_item_details` exists."""
    facts = read(state)
    found: dict[str, Action] = {}
    for action in _all(facts, item_tool):
        if action.canonical not in facts.looked:
            found.setdefault(action.canonical, action)
    return list(found.values())


def _all(facts: Facts, item_tool: bool) -> Iterator[Action]:
    yield from _identity(facts)
    if facts.user_id:
        yield make("get_user_details", {"user_id": facts.user_id})
        yield from (say(text) for text in (ASK_ORDER, ASK_DETAIL, ASK_PAYMENT, ASK_REASON, ASK_ADDRESS, ASK_MORE))
        yield say(REFUSE)
    yield from (make("get_order_details", {"order_id": key}) for key in facts.orders)
    yield from (make("get_product_details", {"product_id": key}) for key in facts.products)
    if item_tool:
        yield from (make("get_item_details", {"item_id": key}) for key in facts.items)
    yield make("list_all_product_types", {})
    if facts.user_id:
        yield from _proposals(facts)
    if facts.answer == "yes":
        yield from _agreed(facts)
    yield make(TRANSFER, {"summary": "The customer needs help beyond what I can do."})


def _identity(facts: Facts) -> Iterator[Action]:
    if facts.user_id:
        return
    yield say(ASK_EMAIL)
    yield say(ASK_NAME)
    yield from (make("find_user_id_by_email", {"email": email}) for email in facts.emails)
    for first, last in facts.names:
        for code in facts.zips:
            yield make("find_user_id_by_name_zip", {"first_name": first, "last_name": last, "zip": code})


def _proposals(facts: Facts) -> Iterator[Action]:
    for key, order in facts.orders.items():
        if order is None:
            continue
        if order["status"] == "pending":
            yield say(f"I can cancel order {key} as no longer needed. Do you confirm (yes/no)?")
        if order["status"] == "delivered":
            items = " and ".join(item["name"] for item in order["items"])
            yield say(f"I can return the {items} of order {key}. Do you confirm (yes/no)?")


def _agreed(facts: Facts) -> Iterator[Action]:
    """The change named by the confirmed proposal, when its ids say enough to make the call."""
    text = facts.proposal
    orders = [key if key.startswith("#") else f"#{key}" for key in ORDER.findall(text)]
    order = facts.orders.get(orders[0]) if orders else None
    if order is None:
        return
    old, new = _items(text, order)
    method = next(iter(METHOD.findall(text)), str(order["payment_history"][0]["payment_method_id"]))
    low = text.lower()
    base: dict[str, Any] = {"order_id": orders[0]}
    try:
        if "cancel" in low:
            reason = "ordered by mistake" if "mistake" in low else "no longer needed"
            yield make("cancel_pending_order", {**base, "reason": reason})
        elif "return" in low and old:
            yield make("return_delivered_order_items", {**base, "item_ids": old, "payment_method_id": method})
        elif old and len(old) == len(new):
            pending = str(order["status"]).startswith("pending")
            name = "modify_pending_order_items" if pending else "exchange_delivered_order_items"
            swap = {"item_ids": old, "new_item_ids": new, "payment_method_id": method}
            yield make(name, {**base, **swap})
        elif "payment" in low and METHOD.search(text):
            yield make("modify_pending_order_payment", {**base, "payment_method_id": method})
    except IllegalAction:
        return


def _items(text: str, order: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    """(items, new items) that a text names, in its order: as pairs, by id, or by name when it gives no ids."""
    pairs = _PAIR.findall(text)
    if pairs:
        return [old for old, _ in pairs], [new for _, new in pairs]
    has = {item["item_id"] for item in order["items"]}
    named = list(dict.fromkeys(ITEM.findall(text)))
    old = [key for key in named if key in has]
    if not named:
        old = [item["item_id"] for item in order["items"] if item["name"].lower() in text.lower()]
    return old, [key for key in named if key not in has]
