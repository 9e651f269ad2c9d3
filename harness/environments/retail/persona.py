"""Who the customer is and what the customer wants, by rule: identity from the scenario, goals from the golden writes.

Used by the scripted user and by the oracle.  Nothing here is shown to an agent before the user says it; what the user
says is built from the store's own records (item names, options, payment methods), not from the scenario's sentences.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from harness.environments.retail.actions import TRANSFER, Call
from harness.environments.retail.data import RetailData, Task

_EMAIL = re.compile(r"[\w.]+@[\w.]+\w")
_ZIP = re.compile(r"\b\d{5}\b")
_USER = re.compile(r"\b[a-z]+_[a-z]+_\d+\b")
_FORGOT_ORDER = re.compile(
    r"(forg|remember|know|sure)[^.]{0,40}order|order[^.]{0,30}(forg|don't (remember|know))", re.I
)
KINDS = {
    "cancel_pending_order": "cancel",
    "return_delivered_order_items": "return",
    "exchange_delivered_order_items": "exchange",
    "modify_pending_order_items": "modify",
    "modify_pending_order_address": "address",
    "modify_user_address": "profile",
    "modify_pending_order_payment": "payment",
}


@dataclass(frozen=True, slots=True)
class Persona:
    """The customer's identity as the customer can tell it."""

    user_id: str
    first: str
    last: str
    zip: str
    emails: tuple[str, ...]
    knows_orders: bool


@dataclass(frozen=True, slots=True)
class Goal:
    """One thing the customer wants; `call` is the golden write behind it, None for questions and vague wishes.

    `want` completes "I would like to ..."; `facts` are the answers the customer gives when asked.
    """

    kind: str  # cancel, return, exchange, modify, address, profile, payment, transfer, info or vague
    want: str
    detail: str = ""
    call: Call | None = None
    facts: tuple[tuple[str, str], ...] = ()
    things: tuple[str, ...] = ()  # names of the items it is about, in lower case

    def fact(self, name: str) -> str:
        """An answer by name ("order", "payment", "address", "reason"), or ""."""
        return dict(self.facts).get(name, "")


def persona(data: RetailData, task: Task) -> Persona:
    """Identity told by the scenario, checked against the store's records (which win where the scenario errs)."""
    known = task.scenario.known
    users: Mapping[str, Any] = data.base.tables["users"]
    emails = tuple(_EMAIL.findall(known))
    zips = set(_ZIP.findall(known))
    user = users[_identify(data, task, emails, zips)]
    usable = any(email.lower() == user.email.lower() for email in emails)
    everything = " ".join((task.scenario.reason, task.scenario.unknown, task.scenario.instructions))
    return Persona(
        user.user_id,
        user.name.first_name,
        user.name.last_name,
        user.address.zip,
        emails if usable else (),
        not _FORGOT_ORDER.search(everything),
    )


def _identify(data: RetailData, task: Task, emails: tuple[str, ...], zips: set[str]) -> str:
    users: Mapping[str, Any] = data.base.tables["users"]
    for found in _USER.findall(task.scenario.known):
        if found in users:
            return str(found)
    by_email = {user.email.lower(): key for key, user in users.items()}
    for email in emails:
        if email.lower() in by_email:
            return by_email[email.lower()]
    for key, user in users.items():
        name = f"{user.name.first_name} {user.name.last_name}"
        if user.address.zip in zips and name in task.scenario.known:
            return key
    for call in task.actions:  # the scenario says too little: whose records the golden actions touch
        order = data.base.tables["orders"].get(call.args.get("order_id", ""))
        if order is not None:
            return str(order.user_id)
        if call.args.get("user_id") in users:
            return str(call.args["user_id"])
    raise ValueError(f"retail task {task.id}: the scenario does not say who the customer is")


def goals(data: RetailData, task: Task) -> tuple[Goal, ...]:
    """The customer's goals in order: golden writes, then questions, then a wish for a human; a vague one if none."""
    found = [_goal(data, call) for call in data.golden(task.id).writes]
    if task.communicate:
        found.append(_question(task))
    if any(call.name == TRANSFER for call in task.actions):
        found.append(Goal("transfer", "speak to a human agent about the rest"))
    return tuple(found) or (Goal("vague", "ask for something that may not be possible for a recent order"),)


def _question(task: Task) -> Goal:
    asked = []
    for info in task.communicate:
        plain = info.replace(".", "").replace(",", "")
        if plain.isdigit() and len(plain) >= 10 and "." not in info:
            asked.append("the tracking number")
        elif plain.isdigit():
            asked.append("the exact amount")
        else:
            asked.append("the details of the item")
    return Goal("info", f"know {' and '.join(dict.fromkeys(asked))}", "It concerns my recent order.")


def _goal(data: RetailData, call: Call) -> Goal:
    kind, args = KINDS[call.name], call.args
    facts: dict[str, str] = {}
    order = data.base.tables["orders"].get(args.get("order_id", ""))
    user = data.base.tables["users"][order.user_id if order is not None else args["user_id"]]
    if order is not None:
        facts["order"] = f"The order number is {order.order_id}."
    if "payment_method_id" in args:
        facts["payment"] = f"Please use {_method(user.payment_methods[args['payment_method_id']])}."
    if "reason" in args:
        facts["reason"] = f"The reason: {args['reason']}."
    if "address1" in args:
        facts["address"] = f"The address is {address(args)}."
    want, detail = _want(data, kind, call, order)
    ids = args.get("item_ids", ())
    things = [item.name.lower() for item in (order.items if order is not None else ()) if item.item_id in ids]
    return Goal(kind, want, detail, call, tuple(facts.items()), tuple(things))


def _want(data: RetailData, kind: str, call: Call, order: Any) -> tuple[str, str]:
    args = call.args
    holds = _names([item.name for item in order.items]) if order is not None else ""
    if kind == "cancel":
        return "cancel an order", f"It is the order with the {holds}."
    if kind == "address":
        return "have an order sent to another address", f"It is the order with the {holds}."
    if kind == "payment":
        return "change the payment method of an order", f"It is the order with the {holds}."
    if kind == "profile":
        return "change the default address of my account", "Only my profile."
    items = [next(item for item in order.items if item.item_id == key) for key in args["item_ids"]]
    named = _names([f"{item.name} ({_options(item.options)})" for item in items])
    if kind == "return":
        return f"return the {_names([item.name for item in items])}", f"I mean the {named}."
    swaps = []
    for item, new in zip(items, args["new_item_ids"], strict=True):
        options = data.base.tables["products"][item.product_id].variants[new].options
        swaps.append(f"the {item.name} ({_options(item.options)}) for the one with {_options(options)}")
    verb = "exchange" if kind == "exchange" else "change"
    return f"{verb} the {_names([item.name for item in items])}", f"I want to {verb} {'; '.join(swaps)}."


def _names(names: list[str]) -> str:
    return " and the ".join(dict.fromkeys(names))


def _options(options: Mapping[str, str]) -> str:
    return ", ".join(f"{key} {value}" for key, value in options.items()) or "the standard version"


def _method(method: Any) -> str:
    if method.source == "credit_card":
        return f"my {method.brand} card ending in {method.last_four}"
    return {"gift_card": "my gift card", "paypal": "my PayPal account"}[method.source]


def address(args: Mapping[str, Any]) -> str:
    """One line for an address's arguments."""
    parts = [args["address1"], args["address2"], args["city"], f"{args['state']} {args['zip']}", args["country"]]
    return ", ".join(str(part) for part in parts if part)
