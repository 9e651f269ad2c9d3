"""The shop as a pure function: page and action text in, page out, line by line what the original does.

A `Page` is a small immutable value, so a snapshot is the page itself.  What the original does not take (an unknown
verb, a click on what is not there) leaves the page as it is, with reward 0.  Two things are different on purpose and
only by choice: special search words that list products without ranking are refused unless allowed, and `<r>` draws
from a named stream instead of the global one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple

from harness.environments.webshop import reward
from harness.environments.webshop.catalogue import Product
from harness.environments.webshop.goals import Draws, Goal
from harness.environments.webshop.index import TOP
from harness.environments.webshop.store import Store
from harness.records import Action
from harness.seeds import stream

WINDOW = 10  # products on a results page
EXPLOITS = ("<r>", "<a>", "<c>", "<q>")
SUB_PAGES = ("description", "features", "reviews", "attributes")
_ACTION = re.compile(r"(.+)\[(.+)\]")


@dataclass(frozen=True, slots=True)
class Page:
    """Where the shopper is; `options` are (name, value) in the order chosen, `seen` products since the last index."""

    kind: Literal["index", "results", "item", "sub", "done"] = "index"
    keywords: tuple[str, ...] = ()
    number: int = 0
    hits: tuple[int, ...] = ()
    product: int = -1
    options: tuple[tuple[str, str], ...] = ()
    seen: frozenset[int] = frozenset()
    sub: str = ""
    score: reward.Score | None = None
    searches: int = 0


class Target(NamedTuple):
    """What a clickable is: a `button`, a `link` to a product number, or an `option` with its name."""

    kind: Literal["button", "link", "option"]
    number: int = -1
    name: str = ""


class Move(NamedTuple):
    """An answered action: the page now, the reward and done of this action, whether anything happened."""

    page: Page
    reward: float = 0.0
    done: bool = False
    taken: bool = True
    exploit: str = ""


def parse(text: str) -> tuple[str, str | None]:
    """(verb, lower-case argument or None) of an action text, as the original reads it."""
    found = _ACTION.match(text)
    return (found[1], found[2].lower()) if found else (text, None)


def exploit(keywords: str) -> str:
    """The special word that a search begins with, or ""."""
    first = keywords.split(" ")[0]
    return first if first in EXPLOITS else ""


@dataclass(frozen=True)
class Engine:
    """The shop for one goal."""

    store: Store
    goal: Goal
    draws: Draws
    show_attributes: bool = False
    allow_exploits: bool = False
    seed: int = 0
    _known: dict[Page, dict[str, Target]] = field(default_factory=dict, compare=False, repr=False)
    _names: dict[Page, dict[str, str]] = field(default_factory=dict, compare=False, repr=False)

    def product(self, page: Page) -> Product:
        """The product that a page is about."""
        return self.store.product(page.product)

    def shown(self, page: Page) -> tuple[int, ...]:
        """Product numbers on a results page."""
        return page.hits[(page.number - 1) * WINDOW : page.number * WINDOW]

    def clickables(self, page: Page) -> dict[str, Target]:
        """What can be clicked, in the original's order (`search` on the index is listed but no click)."""
        found = self._known.get(page)
        if found is None:
            if len(self._known) >= 64:
                self._known.clear()
            found = self._known[page] = self._clickables(page)
        return found

    def _clickables(self, page: Page) -> dict[str, Target]:
        button = Target("button")
        if page.kind == "index":
            return {"search": button}
        if page.kind == "done":
            return {}
        names = ["back to search"]
        if page.kind != "results" or page.number > 1:
            names.append("< prev")
        if page.kind == "results":
            names.append("next >")
        if page.kind == "item":
            names += [*SUB_PAGES[: 4 if self.show_attributes else 3], "buy now"]
        found = dict.fromkeys(names, button)
        if page.kind == "results":
            for number in self.shown(page):
                found[self.store.product(number).asin.lower()] = Target("link", number)
        if page.kind == "item":
            for name, values in self.product(page).options:
                found |= dict.fromkeys(values, Target("option", name=name))
        return found

    def clicks(self, page: Page) -> dict[str, str]:
        """Clickables that an action can name, by their form with single blanks."""
        found = self._names.get(page)
        if found is None:
            if len(self._names) >= 64:
                self._names.clear()
            found = self._names[page] = {}
            for name in self.clickables(page):
                if name != "search" and (name.isalnum() or parse(f"click[{name}]") == ("click", name)):
                    found.setdefault(" ".join(name.split()), name)
        return found

    def executable(self, page: Page, action: Action) -> str:
        """The text to act on: a click in the exact form that the page shows, whatever its white space."""
        if action.canonical.startswith("click["):
            name = self.clicks(page).get(action.canonical[6:-1])
            return f"click[{name}]" if name is not None else action.text
        return action.text

    def act(self, page: Page, text: str) -> Move:
        """Answer one action text."""
        verb, argument = parse(text)
        if verb == "search" and argument is not None:
            special = exploit(argument)
            if special and not self.allow_exploits:
                return Move(page, taken=False, exploit=special)
            return Move(self._results(page, tuple(argument.split(" ")), 1), exploit=special)
        if verb == "click" and argument is not None and argument != "search":
            target = self.clickables(page).get(argument)
            if target is not None:
                return self._click(page, argument, target)
        return Move(page, taken=False)

    def _results(self, page: Page, keywords: tuple[str, ...], number: int) -> Page:
        return Page("results", keywords, number, self._find(page, keywords), seen=page.seen, searches=page.searches + 1)

    def _find(self, page: Page, keywords: tuple[str, ...]) -> tuple[int, ...]:
        special, rest = exploit(keywords[0]), " ".join(keywords[1:]).strip()
        if not special:
            return self.store.index.search(" ".join(keywords))
        if special == "<r>":
            draw = stream(part="webshop-random", seed=self.seed, goal=self.goal.index, searches=page.searches)
            return tuple(draw.sample(range(self.store.size), min(TOP, self.store.size)))
        if special == "<c>":
            rest = keywords[1].strip() if len(keywords) > 1 else ""
        return tuple(i for i, product in enumerate(self.store.products()) if _listed(product, special, rest))

    def _click(self, page: Page, name: str, target: Target) -> Move:
        if name == "buy now":
            return self._buy(page)
        if name == "back to search":
            return Move(Page(searches=page.searches))
        if page.kind == "results" and name in ("next >", "< prev"):
            return Move(self._results(page, page.keywords, page.number + (1 if name == "next >" else -1)))
        if name == "< prev" and page.kind == "sub":
            return Move(replace(page, kind="item", sub=""))
        if name == "< prev" and page.kind == "item":
            return Move(self._results(page, page.keywords, page.number))
        if name in SUB_PAGES:
            return Move(replace(page, kind="sub", sub=name))
        if target.kind == "link":
            return Move(replace(page, kind="item", product=target.number, seen=page.seen | {target.number}))
        if target.kind == "option":
            return Move(replace(page, options=tuple({**dict(page.options), target.name: name}.items())))
        return Move(page)

    def _buy(self, page: Page) -> Move:
        found = self.score(page.product, tuple(value for _, value in page.options))
        return Move(replace(page, kind="done", score=found), found.total, True)

    def score(self, number: int, chosen: tuple[str, ...]) -> reward.Score:
        """What buying a product with these option values would earn."""
        product = self.store.product(number)
        return reward.score(product, chosen, self.draws.price(product), self.goal, self.store.nouns)


def _listed(product: Product, special: str, rest: str) -> bool:
    if special == "<a>":
        return rest in product.attributes
    return rest == (product.category if special == "<c>" else product.query)
