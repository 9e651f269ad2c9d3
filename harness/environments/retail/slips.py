"""Wrong changes that agents really make, built from the store's records: other item, variant, order, payment method.

Each is one argument away from the golden change and is accepted by the engine, so that it ruins the end state without
any warning.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from harness.environments.retail.actions import Call, make, parse
from harness.environments.retail.data import RetailData
from harness.environments.retail.database import Database
from harness.environments.retail.engine import Toolbox
from harness.records import Action

LIMIT = 4


def wrong_changes(data: RetailData, call: Call, user_id: str) -> tuple[Action, ...]:
    """Up to four accepted but wrong variations of a change, distinct and in a fixed order."""
    return _wrong(_Key(data), call.action().text, user_id)


class _Key:
    """Lets the cache hold a data set by identity."""

    def __init__(self, data: RetailData) -> None:
        self.data = data

    def __hash__(self) -> int:
        return id(self.data)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Key) and other.data is self.data


@lru_cache(maxsize=1024)
def _wrong(key: _Key, text: str, user_id: str) -> tuple[Action, ...]:
    call = parse(text)
    database = Database(key.data.base)
    box = Toolbox(database, key.data.item_tool)
    box.call(call.name, call.args)
    right = database.changes()
    found: dict[str, Action] = {}
    for args in _variations(key.data, call, user_id):
        database.thaw(({}, {}))
        action = make(call.name, args)
        _, failed = box.call(call.name, args)
        if not failed and database.changes() != right and database.changes():
            found.setdefault(action.canonical, action)
        if len(found) == LIMIT:
            break
    return tuple(found.values())


def _variations(data: RetailData, call: Call, user_id: str) -> Iterator[dict[str, Any]]:
    args = dict(call.args)
    tables = data.base.tables
    user, order = tables["users"][user_id], tables["orders"].get(args.get("order_id", ""))
    if "new_item_ids" in args:
        yield from _other_variants(tables, order, args)
    if "item_ids" in args:
        yield from _other_items(order, args)
    if "reason" in args:
        other = "ordered by mistake" if args["reason"] == "no longer needed" else "no longer needed"
        yield {**args, "reason": other}
    if "payment_method_id" in args:
        yield from ({**args, "payment_method_id": key} for key in user.payment_methods)
    if "address1" in args:
        yield {**args, "address2": ""}
        if order is not None:
            old = {key: getattr(order.address, key) for key in ("address1", "address2", "city", "state", "zip")}
            yield {**args, "address1": old["address1"], "address2": old["address2"]}
    if order is not None and "item_ids" not in args:
        yield from ({**args, "order_id": key} for key in user.orders)


def _other_variants(tables: Mapping[str, Any], order: Any, args: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The first exchanged item gets another available variant (two tries)."""
    item = next(item for item in order.items if item.item_id == args["item_ids"][0])
    rest = args["new_item_ids"][1:]
    keep = {args["new_item_ids"][0], item.item_id}
    variants = tables["products"][item.product_id].variants.values()
    for variant in [v for v in variants if v.available and v.item_id not in keep][:2]:
        yield {**args, "new_item_ids": [variant.item_id, *rest]}


def _other_items(order: Any, args: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """One item too few, or another item of the order in place of the first."""
    ids = args["item_ids"]
    if len(ids) > 1:
        shorter = {**args, "item_ids": ids[:-1]}
        yield {**shorter, "new_item_ids": args["new_item_ids"][:-1]} if "new_item_ids" in args else shorter
    if "new_item_ids" not in args:
        for item in order.items:
            if item.item_id not in ids:
                yield {**args, "item_ids": [item.item_id, *ids[1:]]}
