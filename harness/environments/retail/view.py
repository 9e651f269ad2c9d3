"""The advisor's view of a decision: policy digest, tools, recent turns, grounded entities, state of confirmation.

Deterministic and made from the executed prefix alone.  The head never changes, turns are appended below it, and what
changes at each step stands last, so that a prefix cache keeps most of it.  Long conversations lose their oldest turns
in blocks of six (not one at a time), which leaves the prefix alone for several steps.  At most `LIMIT` characters,
about 1,500 tokens.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness.environments.retail.actions import RESPOND, parse
from harness.environments.retail.facts import CUSTOMER, Facts, is_customer, loads, read
from harness.errors import IllegalAction
from harness.records import DecisionState, Turn

LIMIT = 5200
TURNS = 2100
ENTITIES = 1000
BLOCK = 6

POLICY = """Policy in short
- First find the customer's user id by e-mail, or by name and zip code; help only with this customer's own records.
- Before any change, list its details and get an explicit yes. One action at a time.
- Cancel: pending orders only; reason "no longer needed" or "ordered by mistake".
- Modify: pending orders only; address, payment method, or items (once per order, all items together, same product).
- Return, exchange: delivered orders only, once; a refund goes to the original payment method or a gift card; an \
exchange stays within the product and needs a payment method for the difference.
- A gift card must cover what it pays. Make nothing up; refuse what the policy forbids.
- Transfer to a human only when nothing above can handle the request."""


def render(state: DecisionState, parameters: Mapping[str, Mapping[str, str]]) -> str:
    """The view. Arguments: a state of this environment; parameter names by action name."""
    facts = read(state)
    tools = "; ".join(f"{name}({', '.join(keys)})" for name, keys in parameters.items())
    lines = [f"{CUSTOMER}{_cut(state.opening.text.removeprefix(CUSTOMER), 300)}", *map(_turn, state.turns)]
    parts = [state.task, POLICY, f"Actions\n{tools}", "Conversation", *_recent(lines)]
    parts += [_cut(_entities(facts), ENTITIES), _status(state, facts)]
    return "\n".join(parts)[:LIMIT]


def _recent(lines: list[str]) -> list[str]:
    """The last lines within the budget; the oldest go in whole blocks, and the last one always stays."""
    start = 0
    while start < len(lines) - 1 and sum(len(line) + 1 for line in lines[start:]) > TURNS:
        start = min(start + BLOCK, len(lines) - 1)
    return ([f"({start} earlier turns left out)"] if start else []) + lines[start:]


def _turn(turn: Turn) -> str:
    try:
        call = parse(turn.action.text)
    except IllegalAction:
        return f"Agent: {_cut(turn.action.text, 80)}\n{_cut(turn.observation.text, 80)}"
    if call.name == RESPOND:
        said = f"Agent: {_cut(str(call.args.get('content', '')), 320)}"
    else:
        said = f"Agent calls {_cut(turn.action.text, 260)}"
    if is_customer(turn.observation):
        return f"{said}\n{_cut(turn.observation.text, 320)}"
    return f"{said}\nTool: {_cut(_result(turn.observation.text), 420)}"


def _result(text: str) -> str:
    record = loads(text)
    if record is None:
        return text
    if "payment_methods" in record:
        return f"user {record['user_id']}; orders {', '.join(record['orders'])}"
    if "order_id" in record:
        items = "; ".join(f"{item['item_id']} {item['name']} ({_values(item)})" for item in record["items"])
        return f"order {record['order_id']} {record['status']}: {items}"
    if "variants" in record:
        rows = [row for row in record["variants"].values() if row["available"]]
        listed = "; ".join(f"{row['item_id']} ({_values(row)}) {row['price']}" for row in rows)
        return f"product {record['product_id']} {record['name']}, available: {listed}"
    return text


def _values(item: Mapping[str, Any]) -> str:
    return ", ".join(str(value) for value in item["options"].values())


def _entities(facts: Facts) -> str:
    lines = ["Grounded so far", f"- user: {facts.user_id or 'not identified'}"]
    if facts.user:
        lines.append(f"- payment methods: {', '.join(facts.user['payment_methods'])}")
    for key, order in facts.orders.items():
        known = f"{order['status']}; items {', '.join(item['item_id'] for item in order['items'])}" if order else "?"
        lines.append(f"- order {key}: {known}")
    looked = [str(product["name"]) for product in facts.products.values() if product]
    if looked:
        lines.append(f"- products looked up: {', '.join(looked)}")
    return "\n".join(lines)


def _status(state: DecisionState, facts: Facts) -> str:
    confirmation = {
        "": "nothing proposed",
        "waiting": "proposed, not answered",
        "yes": "the customer said yes to",
        "no": "the customer said no to",
    }[facts.answer]
    about = f": {_cut(facts.proposal, 240)}" if facts.answer else ""
    done = ", ".join(f"{call.name}({call.args.get('order_id', 'profile')})" for call in facts.writes) or "none"
    return (
        f"Changes made: {_cut(done, 300)}\nConfirmation: {confirmation}{about}\n"
        f"Step {state.step}, failed calls {facts.errors}. Now the agent's next action."
    )


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[: limit - 4]} ..."
