"""Retail: states are alike when the customer is as far identified and has as far confirmed, after the same event.

Templates keep the tool and replace identifiers by slots; slots are filled from what tools and customer have said so
far.  Policy prerequisites are checked before binding: no look at customer data before the customer is identified, no
write before the customer has said yes to what was proposed, no write on an order in the wrong status.
"""

from __future__ import annotations

import json
import re
from random import Random
from typing import Any

from harness.records import DecisionState
from methods.candidates.conditions import Unbindable
from methods.candidates.conditions.retail_facts import Facts, facts_of, parse_call

WRITES = re.compile(r"^(?:cancel|modify|return|exchange)_")
PERSONAL = frozenset({"get_user_details", "get_order_details"})
OPEN_TEXT = frozenset({"respond", "transfer_to_human_agents", "calculate"})
_PARTICULAR = re.compile(r"\d|@|\b(?:mr|mrs|ms)\b", re.IGNORECASE)
_STATUS = {
    "cancel_pending_order": "pending",
    "modify_pending_order_address": "pending",
    "modify_pending_order_items": "pending",
    "modify_pending_order_payment": "pending",
    "return_delivered_order_items": "delivered",
    "exchange_delivered_order_items": "delivered",
}


class RetailCondition:
    """Identification, confirmation and last event; slots by kind of identifier."""

    def keys(self, state: DecisionState) -> tuple[str, ...]:
        facts = facts_of(state)
        phase = f"{'known' if facts.identified else 'unknown'}/{facts.confirmation}"
        return f"{phase}/{facts.last_event}", phase

    def abstract(self, action: str, state: DecisionState) -> str:
        name, args = parse_call(action)
        if name in OPEN_TEXT:
            if any(_PARTICULAR.search(str(value)) for value in args.values()):
                raise Unbindable("text about one episode's particulars")
            return action
        slots = {key: len(value) if isinstance(value, list) else _slot(key, value) for key, value in args.items()}
        return json.dumps([name, slots], sort_keys=True)

    def bind(self, template: str, state: DecisionState, chance: Random) -> str:
        if not template.startswith("["):
            return template
        name, slots = json.loads(template)
        facts = facts_of(state)
        if name in PERSONAL and not facts.identified:
            raise Unbindable("the customer is not identified")
        if WRITES.match(name):
            _permit(name, facts)
        args = _Binder(name, facts, chance).fill(slots)
        return f"{name}({json.dumps(args, ensure_ascii=False)})"


def _slot(key: str, value: Any) -> Any:
    """A choice from a closed list stays as it is; all else is a slot."""
    return {"keep": value} if key == "reason" else None


def _permit(name: str, facts: Facts) -> None:
    if not facts.identified:
        raise Unbindable("the customer is not identified")
    if facts.confirmation != "confirmed":
        raise Unbindable("the customer has not confirmed")
    needed = _STATUS.get(name)
    if needed and not any(order["status"].startswith(needed) for order in facts.orders.values()):
        raise Unbindable(f"no {needed} order seen")


class _Binder:
    """Fills the slots of one call consistently: items belong to the order, new items to the products of the old."""

    def __init__(self, name: str, facts: Facts, chance: Random) -> None:
        self.name, self.facts, self.chance = name, facts, chance
        self.order = ""
        self.items: list[str] = []

    def fill(self, slots: dict[str, Any]) -> dict[str, Any]:
        """Arguments in the template's order, the order id first because items depend on it."""
        if "order_id" in slots:
            self.order = self._order()
        if "item_ids" in slots:
            self.items = self._some(self._order_items(), int(slots["item_ids"]), "item of the order")
        return {key: self._value(key, slot) for key, slot in slots.items()}

    def _value(self, key: str, slot: Any) -> Any:
        if isinstance(slot, dict):
            return slot["keep"]
        if key == "order_id":
            return self.order
        if key == "item_ids":
            return self.items
        if key == "new_item_ids":
            return [self._variant(item) for item in self.items]
        if key == "item_id":
            return self._one(sorted(self.facts.items), "item")
        if key == "product_id":
            return self._one(sorted(self.facts.products), "product")
        if key == "payment_method_id":
            return self._one(self.facts.payments, "payment method")
        found = self.facts.words.get(key)
        if not found:
            raise Unbindable(f"no {key.replace('_', ' ')} known")
        return found

    def _order(self) -> str:
        needed = _STATUS.get(self.name)
        if needed:
            orders = [name for name, order in self.facts.orders.items() if order["status"].startswith(needed)]
        else:
            # A look-up serves most where nothing is known yet.
            unseen = [name for name in self.facts.order_ids if name not in self.facts.orders]
            orders = unseen or list(self.facts.order_ids)
        return self._one(orders, "order")

    def _order_items(self) -> list[str]:
        if self.order not in self.facts.orders:
            raise Unbindable("the order was not looked up")
        items: list[str] = self.facts.orders[self.order]["items"]
        return items

    def _variant(self, item: str) -> str:
        product = self.facts.items.get(item, "")
        others = [other for other in self.facts.variants.get(product, ()) if other != item]
        return self._one(others, "available variant")

    def _some(self, values: list[str], count: int, word: str) -> list[str]:
        if len(values) < count:
            raise Unbindable(f"no {word} known")
        return self.chance.sample(values, count)

    def _one(self, values: Any, word: str) -> str:
        if not values:
            raise Unbindable(f"no {word} known")
        choice: str = self.chance.choice(list(values))
        return choice
