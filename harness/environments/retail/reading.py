"""Reading an agent's message: what does it ask for, propose or claim?

Plain rules over words and numbers, so that a reply is decided by the message alone and costs microseconds.
"""

from __future__ import annotations

import re

from harness.environments.retail.persona import Goal

ORDER = re.compile(r"#?W\d{7}\b")
ITEM = re.compile(r"(?<![\w#])\d{10}\b")
METHOD = re.compile(r"\b(?:credit_card|gift_card|paypal)_\d+\b")
_ZIP = re.compile(r"\b\d{5}\b")

_PROPOSE = re.compile(
    r"yes/no|\(yes|\bconfirm|shall i|should i|(?<!what )(would you like|do you want) me to|go ahead|\bproceed|"
    r"is (that|this) (right|correct|ok)|do you agree|may i (now )?(cancel|return|exchange|change|modify|update)",
    re.I,
)
_IDENTITY = {
    "email": re.compile(r"e-?mail", re.I),
    "name": re.compile(r"\bname\b", re.I),
    "zip": re.compile(r"\bzip|postal code|postcode", re.I),
}
_VERIFY = re.compile(r"identi(ty|fy)|authenticat|verify (you|who)|user id|locate your account", re.I)
_ASKS = {
    "reason": re.compile(r"reason|why do you|why are you|no longer need", re.I),
    "payment": re.compile(
        r"payment method|how would you like to (pay|be refunded)|refund(ed)? (to|go)|gift card", re.I
    ),
    "address": re.compile(r"(what|which|new|full|provide)[^.?]*address", re.I),
    "order": re.compile(r"order (number|id)|which order|what order", re.I),
    "detail": re.compile(
        r"which (item|one|product|variant|option)|what would you like|more detail|specif|how (can|may) i|"
        r"tell me more|which options",
        re.I,
    ),
}
_MORE = re.compile(r"anything else|something else|further (help|assist)|other (request|question)|else i can", re.I)
_DONE = re.compile(
    r"(has|have) (now )?been|successfully|\b(is|are) (now |all )?(done|complete|set|processed|cancelled|updated)|"
    r"\bdone\b|all set|completed|taken care of|goodbye|have a (nice|great) day",
    re.I,
)
_REFUSE = re.compile(r"\bcan ?not\b|can't|unable|not able|not possible|unfortunately|sorry|not allowed|against", re.I)
_VERBS = {
    "cancel": re.compile(r"cancel", re.I),
    "return": re.compile(r"return|refund|send back", re.I),
    "exchange": re.compile(r"exchang|swap|replac|chang", re.I),
    "modify": re.compile(r"modif|chang|swap|replac|exchang|switch", re.I),
    "address": re.compile(r"address|ship|sent to|deliver", re.I),
    "profile": re.compile(r"address|profile", re.I),
    "payment": re.compile(r"pay", re.I),
}
_PROFILE = re.compile(r"default|profile|account", re.I)


def proposes(message: str) -> bool:
    """Whether the message asks the customer to agree to something."""
    return bool(_PROPOSE.search(message))


def asks_identity(message: str) -> tuple[str, ...]:
    """Which of "email", "name", "zip" the message asks for; all three when it asks who the customer is."""
    if "?" not in message and not re.search(r"please|provide|need|share", message, re.I):
        return ()
    found = tuple(key for key, pattern in _IDENTITY.items() if pattern.search(message))
    return found or (("email", "name", "zip") if _VERIFY.search(message) else ())


def asks(message: str) -> tuple[str, ...]:
    """Which of "reason", "payment", "address", "order", "detail" the message asks about."""
    if "?" not in message and "please" not in message.lower():
        return ()
    return tuple(key for key, pattern in _ASKS.items() if pattern.search(message))


def offers_more(message: str) -> bool:
    """Whether the message asks for further wishes."""
    return bool(_MORE.search(message))


def claims_done(message: str) -> bool:
    """Whether the message says that something has been done or says goodbye."""
    return bool(_DONE.search(message))


def refuses(message: str) -> bool:
    """Whether the message says that something is not possible."""
    return bool(_REFUSE.search(message))


def fits(goal: Goal, message: str) -> bool:
    """Whether a proposal is for this goal and contradicts none of its particulars.

    Verb, order number, items, payment method and zip code are compared as far as the message names them; a change of
    items must name one of them.
    """
    if goal.call is None or not _VERBS[goal.kind].search(message):
        return False
    args = goal.call.args
    orders = {found.lstrip("#") for found in ORDER.findall(message)}
    if orders and "order_id" in args and args["order_id"].lstrip("#") not in orders:
        return False
    named = set(ITEM.findall(message))
    old, new = set(args.get("item_ids", ())), set(args.get("new_item_ids", ()))
    if (named & old and not old <= named) or (named & new and not new <= named) or named - old - new:
        return False
    if goal.things and not named and not any(thing in message.lower() for thing in goal.things):
        return False
    methods = set(METHOD.findall(message))
    if methods and "payment_method_id" in args and methods != {args["payment_method_id"]}:
        return False
    if "address1" not in args:
        return True
    profile = bool(_PROFILE.search(message))
    if (goal.kind == "profile" and not profile) or (goal.kind == "address" and profile and not orders):
        return False
    zips = set(_ZIP.findall(message))
    line = message.lower()
    return (not zips or args["zip"] in zips) and (not zips or args["address2"].lower() in line)


def tells(message: str, info: str) -> bool:
    """Upstream's rule for communicated information: contained, ignoring case and commas."""
    return info.lower() in message.lower().replace(",", "")
