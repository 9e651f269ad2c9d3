"""What is best for one goal: the product, its option values, the search that brings it up, the steps still needed.

This is latent knowledge.  It serves the oracle of simulated actors and the report of reward ceilings, nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from harness.environments.webshop import queries, reward
from harness.environments.webshop.engine import WINDOW, Engine, Page, parse
from harness.environments.webshop.store import Store


class Best(NamedTuple):
    """The most a product can earn, and the (name, value) options to choose for it."""

    reward: float
    choices: tuple[tuple[str, str], ...]


def choosable(store: Store, number: int) -> dict[str, str]:
    """Option value -> the name it sets when clicked; values that no action can name are left out."""
    found = {value: name for name, values in store.product(number).options for value in values}
    return {value: name for value, name in found.items() if parse(f"click[{value}]") == ("click", value)}


def best(engine: Engine, number: int) -> Best:
    """The best purchase of one product for the engine's goal."""
    values = choosable(engine.store, number)
    chosen: dict[str, str] = {}
    for option in engine.goal.options:
        if reward.option_met(option, chosen.values()):
            continue
        exact = option if isinstance(option, str) else option[1]
        order = [exact, *values] if exact in values else list(values)
        found = next((v for v in order if values[v] not in chosen and reward.option_met(option, (v,))), None)
        if found is not None:
            chosen[values[found]] = found
    return Best(engine.score(number, tuple(chosen.values())).total, tuple(chosen.items()))


@dataclass
class Plan:
    """The way to the best purchase for one goal; made lazily and kept for the episode."""

    engine: Engine
    target: int = -1
    query: str = ""
    reach: int = 0  # pages to turn after the search
    _best: dict[int, Best] = field(default_factory=dict)

    def __post_init__(self) -> None:
        goal = self.engine.goal
        self.target = goal.number
        drafts = [*queries.suggestions(goal.instruction), queries.tidy(goal.title)]
        found = [(draft, self.engine.store.index.search(draft)) for draft in drafts if draft]
        if self.best(self.target).reward < 1.0:
            rivals = [number for _, hits in found[:1] for number in hits[:WINDOW]]
            self.target = max([self.target, *rivals], key=lambda number: self.best(number).reward)
        ranks = [(hits.index(self.target), draft) for draft, hits in found if self.target in hits]
        if not ranks:  # no query brings it up: the best of what comes up
            self.target = max((n for _, hits in found for n in hits[:WINDOW]), key=lambda n: self.best(n).reward)
            ranks = [(hits.index(self.target), draft) for draft, hits in found if self.target in hits]
        rank, self.query = next((pair for pair in ranks if pair[0] < WINDOW), min(ranks))
        self.reach = rank // WINDOW

    def best(self, number: int) -> Best:
        """`best` for the plan's goal, remembered."""
        if number not in self._best:
            self._best[number] = best(self.engine, number)
        return self._best[number]

    @property
    def reward(self) -> float:
        """What the planned purchase earns."""
        return self.best(self.target).reward

    def buys(self, number: int) -> bool:
        """Whether a product is as good as the planned one."""
        return number == self.target or self.best(number).reward >= self.reward

    def missing(self, page: Page) -> list[tuple[str, str]]:
        """Options still to be chosen on the page's product."""
        now = dict(page.options)
        return [(name, value) for name, value in self.best(page.product).choices if now.get(name) != value]

    def turns(self, page: Page) -> int | None:
        """Pages to turn from a page's results to the target (negative: back), None when it is not among them."""
        if page.kind == "index" or self.target not in page.hits:
            return None
        return page.hits.index(self.target) // WINDOW + 1 - page.number

    def steps(self, page: Page) -> int:
        """Actions that a good shopper still needs, the purchase included."""
        if page.kind == "done":
            return 0
        if page.kind == "sub":
            return 1 + self.steps_on(page)
        if page.kind == "item":
            return self.steps_on(page)
        turns = self.turns(page)
        after = 2 + len(self.best(self.target).choices)
        if page.kind == "index":
            return 1 + self.reach + after
        return abs(turns) + after if turns is not None else 2 + self.reach + after

    def steps_on(self, page: Page) -> int:
        """Actions needed from the product page that `page` is or belongs to."""
        if self.buys(page.product):
            return len(self.missing(page)) + 1
        turns = self.turns(page)
        after = 2 + len(self.best(self.target).choices)
        return 1 + abs(turns) + after if turns is not None else 2 + self.reach + after
