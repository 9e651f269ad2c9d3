"""Focused Retail views: how far the conversation is, and what each action rests on.

Read from the advisor's view alone: who is known, what was proposed and answered, which records were looked up.  An
action is told by its kind and by what of it is grounded: identifiers that stand in the view, in the proposal that the
customer answered, or beside options that the customer named.  Marks say what is the case, never what is good.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from harness.environments.retail import reading
from harness.environments.retail.actions import RESPOND, Call, parse
from harness.errors import IllegalAction

_ID = re.compile(r"#?\bW\d{7}\b|(?<![\w#])\d{10}\b|\b(?:credit_card|gift_card|paypal)_\d+\b")
_SAID = re.compile(r"^Agent: (.*)$")
_CALLED = re.compile(r"^Agent calls (.*)$")
_STATUS = re.compile(r"^- order (\S+): ([a-z]+)", re.MULTILINE)
_WISH = {
    "cancel": re.compile(r"\bcancel"),
    "return": re.compile(r"\breturn|refund"),
    "exchange": re.compile(r"\bexchang|\bswap"),
    "modify": re.compile(r"\bchange the (?!pay|def|ship)|\bmodif"),
    "address": re.compile(r"\baddress"),
    "payment": re.compile(r"\bpayment method of"),
    "question": re.compile(r"\bknow the\b"),
    "human": re.compile(r"\bhuman\b"),
}
_WRITE = re.compile(r"^(cancel|return|exchange|modify)_")
_PIECES = {"email": "email is", "name": "name is", "zip": "zip code is"}
_WORD = re.compile(r"[a-z0-9]+")
ANSWERS = {"nothing": "none", "proposed": "waiting", "the customer said yes": "yes", "the customer said no": "no"}


@dataclass(frozen=True, slots=True)
class Talk:
    """A view taken apart; texts are lower case except `calls` and `said`."""

    customer: str
    last: str
    speaker: str
    said: tuple[str, ...]
    calls: tuple[str, ...]
    grounded: str
    user: str
    orders: dict[str, str]
    answer: str
    proposal: str
    changes: int
    step: int
    errors: int
    listed: str

    def told(self) -> list[str]:
        """Identity pieces that the customer told."""
        return [name for name, words in _PIECES.items() if words in self.customer]


def applies(view: str) -> bool:
    """Whether this is a view of Retail."""
    return "\nGrounded so far\n" in view and "\nConfirmation: " in view


@lru_cache(maxsize=256)
def read(view: str) -> Talk:
    """Take a view apart by the labels of its renderer."""
    talk, _, rest = view.partition("\nConversation\n")[2].partition("\nGrounded so far\n")
    grounded, _, status = rest.partition("\nChanges made: ")
    changes, _, status = status.partition("\nConfirmation: ")
    confirmed, _, now = status.rpartition("\nStep ")
    answer = next((name for start, name in ANSWERS.items() if confirmed.startswith(start)), "none")
    heard, said, calls, tools, speaker = [], [], [], [], "customer"
    for line in talk.split("\n"):
        if found := _CALLED.match(line):
            calls.append(found[1])
        elif found := _SAID.match(line):
            said.append(found[1])
        elif line.startswith("Tool: "):
            tools.append(line)
            speaker = "error" if line.startswith("Tool: Error") else "tool"
        elif line.startswith("Customer: "):
            heard.append(line[10:].lower())
            speaker = "customer"
    user = re.search(r"^- user: (.*)$", grounded, re.MULTILINE)
    numbers = [int(n) for n in re.findall(r"\d+", now)[:2]] + [0, 0]
    return Talk(
        " ".join(heard),
        heard[-1] if heard else "",
        speaker,
        tuple(said),
        tuple(calls),
        grounded,
        "" if user is None or user[1] == "not identified" else user[1],
        dict(_STATUS.findall(grounded)),
        answer,
        confirmed.partition(": ")[2],
        0 if changes.strip() == "none" else changes.count("),") + 1,
        numbers[0],
        numbers[1],
        "\n".join(tools).lower(),
    )


def focus_state(view: str) -> str:
    """The conversation in a line of closed words."""
    talk = read(view)
    wishes = [name for name, pattern in _WISH.items() if pattern.search(talk.customer)]
    answer = f"{talk.answer} {_verb(talk.proposal)}" if talk.answer != "none" else "none"
    now = [name for name, pattern in _WISH.items() if pattern.search(talk.last)]
    return (
        f"user {'known' if talk.user else 'unknown'} | told {' '.join(talk.told()) or 'nothing'}"
        f" | answer {answer} | changes {min(talk.changes, 4)} | orders {min(len(talk.orders), 5)}"
        f" | speaker {talk.speaker} {_mood(talk.last)}"
        f" | wish {' '.join(wishes) or 'none'} | now {' '.join(now) or 'none'}"
        f" | step {min(talk.step, 29)} | errors {min(talk.errors, 3)}"
    )


def focus_action(view: str, action: str) -> str:
    """An action in closed words: its kind and what it rests on."""
    talk = read(view)
    try:
        call = parse(action)
    except IllegalAction:
        return "illegal"
    marks = _message(talk, str(call.args.get("content", ""))) if call.name == RESPOND else _call(talk, call, action)
    return " ".join(marks)


def _message(talk: Talk, text: str) -> list[str]:
    low = text.lower()
    tried = sum(text == one or text.startswith(one.removesuffix(" ...")) for one in talk.said)
    again = [f"tried {min(tried, 3)}"] if tried else []
    if "###stop###" in low:
        return ["stop", f"changes {min(talk.changes, 4)}", *again]
    if "transferred to a human" in low:
        return ["handover", *again]
    pieces = reading.asks_identity(text)
    if pieces:
        fresh = [piece for piece in pieces if piece not in talk.told()]
        denied = "email" in pieces and "remember my email" in talk.customer
        return ["ask", *pieces, "fresh" if fresh else "told", *(["denied"] if denied else []), _known(talk), *again]
    if reading.proposes(text):
        return ["propose", _verb(low), *_rests(talk, text), f"answer {talk.answer}", *again]
    if reading.refuses(text):
        return ["refuse", _known(talk), *again]
    if reading.claims_done(text):
        return ["claim", f"changes {min(talk.changes, 4)}", f"claimed {_claims(talk)}", f"answer {talk.answer}", *again]
    if reading.offers_more(text):
        return ["more", _known(talk), f"changes {min(talk.changes, 4)}", f"answer {talk.answer}", *again]
    asked = reading.asks(text)
    return ["say", *(asked or ("else",)), _known(talk), f"answer {talk.answer}", *again]


def _call(talk: Talk, call: Call, action: str) -> list[str]:
    tried = sum(action == one or action.startswith(one.removesuffix(" ...")) for one in talk.calls)
    again = [f"tried {min(tried, 3)}"] if tried else []
    if _WRITE.match(call.name):
        order = str(call.args.get("order_id", ""))
        needs = "pending" if "pending" in call.name else "delivered"
        status = talk.orders.get(order, "")
        fits = "fit" if status.startswith(needs) else "unfit" if status else "unseen"
        verb = _verb(call.name.replace("_", " "))
        agreed = _agreed(talk, call) if talk.answer != "none" else "unasked"
        return ["write", verb, "status", fits, "answer", talk.answer, agreed, *_rests(talk, action), *again]
    if call.name.startswith("find_"):
        values = [str(value).lower() for value in call.args.values()]
        told = all(value in talk.customer for value in values)
        return [
            "find",
            "email" if "email" in call.args else "name",
            "told" if told else "guessed",
            _known(talk),
            *again,
        ]
    if call.name.startswith("get_"):
        values = [str(value) for value in call.args.values()]
        seen = all(value in talk.grounded or value.lower() in talk.listed for value in values)
        looked = "looked" if values and talk.orders.get(values[0]) else ""
        marks = ["get", call.name.split("_")[1], "grounded" if seen else "ungrounded", looked, _known(talk)]
        return [*filter(None, marks), f"answer {talk.answer}", *again]
    return [call.name.split("_")[0], _known(talk), f"answer {talk.answer}", *again]


def _rests(talk: Talk, text: str) -> list[str]:
    """What the particulars of a change rest on."""
    ids = _ID.findall(text)
    seen = [one for one in ids if one in talk.grounded or one.lower() in talk.listed or one.lower() in talk.customer]
    marks = ["ids", "none" if not ids else "seen" if len(seen) == len(ids) else "some"]
    names = set(re.findall(r"\d{10} ([a-z][a-z -]+?) \(", talk.listed))
    named = [name for name in names if name in text.lower()]
    if named:
        wanted = sum(name in talk.customer for name in named)
        marks += ["named", "all" if wanted == len(named) else "some" if wanted else "none"]
    options = [_options(talk, one) for one in ids if one.isdigit()]
    shares = [share for share in options if share is not None]
    if shares:
        low = min(shares)
        marks += ["options", "all" if low >= 0.99 else "most" if low >= 0.6 else "few"]
    verb = _verb(text.lower().replace("_", " "))
    wished = verb in _WISH and bool(_WISH[verb].search(talk.customer))
    return [*marks, "wished" if wished else "unwished"]


def _options(talk: Talk, item: str) -> float | None:
    """Share of an item's listed option words that the customer has said; None when its options were not seen."""
    found = re.search(rf"\b{item} (?:[a-z][a-z -]*)?\(([^)]*)\)", talk.listed)
    words = _WORD.findall(found[1]) if found else []
    said = set(_WORD.findall(talk.customer))
    return sum(word in said for word in words) / len(words) if words else None


def _agreed(talk: Talk, call: Call) -> str:
    """Whether the identifiers of a change are those of the proposal that the customer answered."""
    mine, theirs = set(_ID.findall(str(dict(call.args)))), set(_ID.findall(talk.proposal))
    if not theirs:
        return "unnamed"
    return "agreed" if mine == theirs else "partly" if mine <= theirs or theirs <= mine else "differs"


def _verb(text: str) -> str:
    low = text.lower()
    order = ("cancel", "return", "exchange", "payment", "address", "modify")
    return next((name for name in order if name in low), "change")


def _claims(talk: Talk) -> int:
    return min(sum(reading.claims_done(one) for one in talk.said), 4)


def _known(talk: Talk) -> str:
    return "known" if talk.user else "unknown"


def _mood(text: str) -> str:
    if re.search(r"don't follow|doesn't quite|say it again", text):
        return "lost"
    if re.match(r"no\b", text):
        return "no"
    return "yes" if re.match(r"yes\b", text) else "plain"
