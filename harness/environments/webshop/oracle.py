"""The oracle of simulated shoppers: what a good one does next, what a careless one does, and what an action is worth.

The worth of an action mixes two futures, because a noisy actor does not always notice its mistakes:

    value = (1 - KEPT) * [best reward - COST * wasted steps] + KEPT * [reward if what was done is never undone]

A purchase is worth exactly what it earns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice

from harness.environments.webshop import queries
from harness.environments.webshop.engine import SUB_PAGES, Page, exploit, parse
from harness.environments.webshop.plan import Plan, choosable
from harness.records import Action

COST = 0.1  # of one wasted step
KEPT = 0.4  # weight of the future in which the step is never undone
_LOOKED_AT = 5  # products of a results page that a shopper without the target would consider


class ShopOracle:
    """Latent knowledge of one running episode; `where` tells the page it is on now."""

    def __init__(self, plan: Plan, where: Callable[[], Page]) -> None:
        self._plan = plan
        self._where = where
        self._engine = plan.engine

    @property
    def _page(self) -> Page:
        return self._where()

    def expert(self) -> Action:
        """The next action on a shortest way to the best purchase."""
        page, plan = self._page, self._plan
        if page.kind == "index":
            return _action(f"search[{plan.query}]")
        if page.kind == "sub":
            return _action("click[< prev]")
        turns = plan.turns(page)
        if page.kind == "item":
            if plan.buys(page.product):
                missing = plan.missing(page)
                return _action(f"click[{missing[0][1]}]" if missing else "click[buy now]")
            return _action("click[back to search]" if turns is None else "click[< prev]")
        if page.kind == "done":
            return _action(f"search[{plan.query}]")  # nothing counts any more
        if turns is None:
            return _action("click[back to search]")
        if turns == 0:
            return _action(f"click[{self._engine.store.product(plan.target).asin.lower()}]")
        return _action("click[next >]" if turns > 0 else "click[< prev]")

    def mistakes(self) -> Sequence[Action]:
        """Errors that shoppers make here, most typical first; what turns out as good as the best is left out."""
        page = self._page
        drafts: list[str] = []
        if page.kind == "index":
            drafts = [f"search[{words}]" for words in queries.careless(self._engine.goal.instruction)]
        elif page.kind == "results":
            drafts = [f"click[{asin}]" for asin in islice(self._rivals(), 3)]
            drafts += ["click[next >]", "click[back to search]"]
        elif page.kind == "item":
            drafts = self._wrong_options()
            if not self._plan.buys(page.product) or self._plan.missing(page):
                drafts.append("click[buy now]")
            drafts += ["click[< prev]", "click[back to search]"]
        elif page.kind == "sub":
            drafts = ["click[back to search]"]
        expert = self.expert()
        actions = [_action(draft) for draft in dict.fromkeys(drafts)]
        actions = [action for action in actions if action.canonical != expert.canonical]
        worth = self.value(expert)
        return [action for action in actions if self.value(action) < worth] or actions

    def _rivals(self) -> list[str]:
        shown = [number for number in self._engine.shown(self._page) if not self._plan.buys(number)]
        return [self._engine.store.product(number).asin.lower() for number in shown]

    def _wrong_options(self) -> list[str]:
        """One wrong value for each option name: the neighbour of the right one."""
        page, plan = self._page, self._plan
        right, values = dict(plan.best(page.product).choices), choosable(self._engine.store, page.product)
        drafts = []
        for name in dict.fromkeys(values.values()):
            own = [value for value, belongs in values.items() if belongs == name]
            at = own.index(right[name]) if right.get(name) in own else -1
            wrong = [value for value in own[at + 1 :] + own[: max(at, 0)] if dict(page.options).get(name) != value]
            drafts += [f"click[{value}]" for value in wrong[:1]]
        return drafts[:3]

    def value(self, action: Action) -> float:
        """Worth of taking `action` now and going on well, in [0, 1]."""
        page, plan = self._page, self._plan
        after = self._engine.act(page, self._engine.executable(page, action)).page
        if page.kind != "done" and after.kind == "done":
            return after.score.total if after.score else 0.0
        wasted = 1 + plan.steps(after) - plan.steps(page)
        whole = plan.best(after.product).reward if self._at_rival(after) else plan.reward
        worth = (1 - KEPT) * (whole - COST * max(0, wasted)) + KEPT * self._kept(after)
        return min(1.0, max(0.0, worth))

    def _at_rival(self, page: Page) -> bool:
        return page.kind in ("item", "sub") and self._plan.buys(page.product)

    def _kept(self, page: Page) -> float:
        """Reward when what was done is never undone: the product here, the options here, the hits here."""
        plan = self._plan
        if page.kind == "index":
            return plan.reward
        if page.kind == "results":
            if plan.target in page.hits:
                return plan.reward
            shown = self._engine.shown(page)[:_LOOKED_AT]
            return max((plan.best(number).reward for number in shown), default=0.0)
        chosen = {**dict(plan.best(page.product).choices), **dict(page.options)}
        return self._engine.score(page.product, tuple(chosen.values())).total

    def reason(self, action: Action) -> str:
        """What a shopper could think when it takes the action; it does not tell right from wrong."""
        verb, argument = parse(action.text)
        if verb == "search":
            return f"I will look for {argument} and see what the shop has."
        known = {
            "buy now": "This product fits the request, so I will buy it.",
            "< prev": "I want to go back one page and look again.",
            "next >": "Nothing here convinces me, so I will see the next page.",
            "back to search": "These results do not help, so I will search again.",
            **dict.fromkeys(SUB_PAGES, "I want to read more about this product first."),
        }
        if argument in known:
            return known[argument]
        target = self._engine.clickables(self._page).get(argument or "")
        if target is not None and target.kind == "link":
            return f"{str(argument).upper()} looks like what is asked for."
        return f"The request goes with {argument}, so I will choose it."


def _action(text: str) -> Action:
    return Action(text, canonical(text))


def canonical(text: str) -> str:
    """The form that is equal iff two well-formed actions are the same: white space and edge punctuation aside."""
    verb, argument = parse(text)
    words = (argument or "").split()
    if verb == "search" and not exploit(argument or ""):
        words = [word.strip(".,;:!?\"'") for word in words]
    return f"{verb}[{' '.join(word for word in words if word)}]"
