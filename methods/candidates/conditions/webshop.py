"""WebShop: states are alike when they show the same kind of page.

Templates: navigation stays as it is, a product is its rank on the page, an option is "an option" (one that the
instruction names where there is one), and a search is how many words of its instruction it used.
"""

from __future__ import annotations

import re
from random import Random

from harness.records import DecisionState
from methods.candidates.conditions import Unbindable

_PAGES = ("description", "features", "reviews", "attributes")
BUTTONS = ("search", "back to search", "< prev", "next >", "buy now", *_PAGES)
_ACTION = re.compile(r"\s*(search|click)\[(.*)\]\s*\Z", re.DOTALL)
_ASIN = re.compile(r"[a-z0-9]{10}\Z")
_WORD = re.compile(r"[a-z0-9][a-z0-9.'-]*")
_PRICE = re.compile(r"\bprice (?:lower|less) than [\d.,]+ dollars")
_FILLER = frozenset(
    _WORD.findall(
        "a an the and or of for with in on to i i'm im am me my looking find need want would like show get some that "
        "is are it can price lower than dollars please"
    )
)


class WebShopCondition:
    """Page kind; products by rank, options by kind, queries by how much of the instruction they use."""

    def keys(self, state: DecisionState) -> tuple[str, ...]:
        page = page_kind(state)
        return (f"{page}/{'chosen' if _chosen(state) else 'fresh'}", page) if page == "item" else (page,)

    def abstract(self, action: str, state: DecisionState) -> str:
        verb, argument = _split(action)
        if verb == "search":
            return f"search:{max(1, len(set(_words(argument)) & set(_words(state.task))))}"
        if argument in BUTTONS:
            return f"click:{argument}"
        products = _products(state)
        return f"product:{products.index(argument)}" if argument in products else "option"

    def bind(self, template: str, state: DecisionState, chance: Random) -> str:
        kind, _, rest = template.partition(":")
        if kind == "click":
            return f"click[{rest}]"
        if kind == "search":
            words = _words(state.task)
            if not words:
                raise Unbindable("no instruction words")
            return f"search[{' '.join(words[: int(rest)])}]"
        if kind == "product":
            products = _products(state)
            if int(rest) >= len(products):
                raise Unbindable("no product at that rank")
            return f"click[{products[int(rest)]}]"
        options = [word for word in _clickables(state) if word not in BUTTONS and not _ASIN.match(word)]
        if not options:
            raise Unbindable("no option here")
        named = [option for option in options if option in state.task.lower()]
        return f"click[{chance.choice(named or options)}]"


def page_kind(state: DecisionState) -> str:
    """index, results, item, sub or other, from what can be clicked."""
    clickables = set(_clickables(state))
    if "buy now" in clickables:
        return "item"
    if "next >" in clickables:
        return "results"
    if "< prev" in clickables:
        return "sub"
    return "index" if "back to search" not in clickables else "other"


def _split(action: str) -> tuple[str, str]:
    match = _ACTION.match(action)
    if match is None:
        raise Unbindable("not an action of this environment")
    return match.group(1), match.group(2).strip().lower()


def _clickables(state: DecisionState) -> list[str]:
    found = []
    for text in state.observation.actions:
        match = _ACTION.match(text)
        if match is None or match.group(1) == "click":
            found.append((match.group(2) if match else text).strip().lower())
    return found


def _products(state: DecisionState) -> list[str]:
    return [word for word in _clickables(state) if word not in BUTTONS and _ASIN.match(word)]


def _chosen(state: DecisionState) -> bool:
    """Whether an option was clicked since this item was opened."""
    for turn in reversed(state.turns):
        match = _ACTION.match(turn.action.text)
        if match is None or match.group(1) == "search" or _ASIN.match(match.group(2).strip().lower()):
            return False
        if match.group(2).strip().lower() not in BUTTONS:
            return True
    return False


def _words(text: str) -> list[str]:
    return [word for word in _WORD.findall(_PRICE.sub(" ", text.lower())) if word not in _FILLER]
