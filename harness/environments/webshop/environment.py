"""WebShop: buy what an instruction asks for in a simulated shop (Yao et al., 2022; our own implementation).

Tasks are `webshop-<i>`, goal i of the official order (shuffled with seed 233).  Splits follow the paper that compares
interventions: test is 5000-5499; what precedes it is for branch data and training, of which 4500-4999 are kept for
validation, so train is 0-4499.  Which goals these are depends on the catalogue, so the catalogue's content hash, the
drawn prices and the mode are in every fingerprint.

Departures from the raw shop (`engine`), all of them for actors: an episode ends with the first purchase, the page after
it does not show the reward, an action may differ in case and white space, and searches that list products by special
words are refused and reported in the outcome's info.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from harness.environments.webshop import queries
from harness.errors import IllegalAction, UsageError, nearest
from harness.records import Action, DecisionState, Observation, Outcome
from harness.seeds import digest

if TYPE_CHECKING:
    from harness.environments.webshop.engine import Engine, Page
    from harness.environments.webshop.goals import Draws, Goal
    from harness.environments.webshop.oracle import ShopOracle
    from harness.environments.webshop.plan import Plan
    from harness.environments.webshop.store import Store

SPLITS = {"train": (0, 4500), "validation": (4500, 5000), "test": (5000, 5500)}
SEARCH = "search[<keywords>]"
LONGEST = 600  # characters of an action
_ACTION = re.compile(r"\s*(?:action\s*:\s*)?(search|click)\s*\[(.+)\]", re.IGNORECASE | re.DOTALL)
_log = logging.getLogger(__name__)

_BRIEFING = """\
You shop in a web store for a customer. The request says what kind of product is wanted, which properties and options it
must have, and often a highest price. You succeed by buying one product that fits all of it.

Pages: the search page; a results page with ten products each (id, title, price); a product page with option values,
price and links to its description, features and reviews; and the page behind such a link.

Each turn, write exactly one action:
  search[keywords]  look for products (from the search page)
  click[name]       click a button, a product id or an option value that the page shows, written as it is shown

Choose an option by clicking its value, one value for each option that the request names; clicking another value of
the same option replaces it. Leaving a product page forgets the options. `click[buy now]` buys the product with the
options chosen so far and ends the task at once. The score is the share of wanted properties, options and price that the
purchase meets, and less when the product is of another kind. Without a purchase it is zero."""


class _Snapshot(NamedTuple):
    """All there is: the task and an immutable page."""

    goal: int
    seed: int
    page: Page


class WebShop:
    """WebShop: find and buy the product that an instruction describes.

    Args:
        catalogue: "synthetic" (embedded, seeded, made on demand), or a folder with the official files.
        goals: "synthetic" instructions (the original's default) or "human" ones (official files only).
        products: only the first so many products, such as 1000; None takes all.
        mode: "text_rich" (a line for each string, buttons and chosen options marked) or "text".
        panel: file with one frozen draw of the original's unseeded numbers (prices, upper prices, goal order).
        price_seed: draws prices of products that show a range, and upper prices, when there is no panel.
        catalogue_seed: of the synthetic catalogue.
        show_attributes: adds the attributes page, which the original hides by default.
        allow_exploits: answers searches that begin with <r>, <a>, <c> or <q> as the original does.
    """

    name: ClassVar[str] = "webshop"
    version: ClassVar[str] = "1"
    metric: ClassVar[str] = "mean_reward"
    max_steps: ClassVar[int] = 20
    estimate: ClassVar[Mapping[str, float]] = {"steps": 14, "seconds": 0.01}
    simulated: tuple[str, ...] = ()

    def __init__(
        self,
        catalogue: str = "synthetic",
        goals: str = "synthetic",
        products: int | None = None,
        mode: str = "text_rich",
        panel: str | None = None,
        price_seed: int = 0,
        catalogue_seed: int = 0,
        show_attributes: bool = False,
        allow_exploits: bool = False,
    ) -> None:
        self.catalogue = catalogue
        self.goals = goals
        self.products = products
        self.mode = mode
        self.panel = panel
        self.price_seed = price_seed
        self.catalogue_seed = catalogue_seed
        self.show_attributes = show_attributes
        self.allow_exploits = allow_exploits
        self._opened: tuple[Store, Draws] | None = None
        self._engine: Engine | None = None
        self._plan: Plan | None = None
        self._page: Page | None = None
        self._seed = 0

    def _open(self) -> tuple[Store, Draws]:
        """Catalogue and draws, loaded at the first use. Raises `UsageError` for anything wrong with the parameters."""
        if self._opened is None:
            from harness.environments.webshop import goals as goals_module
            from harness.environments.webshop import pages, store

            for key, value, valid in (("mode", self.mode, pages.MODES), ("goals", self.goals, ("synthetic", "human"))):
                if value not in valid:
                    raise UsageError(f"WebShop has no {key} {value!r}.{nearest(value, valid)}")
            loaded = store.load(self.catalogue, self.products, self.catalogue_seed)
            if self.goals == "human" and not loaded.has_people:
                where = "The synthetic catalogue has" if self.catalogue == "synthetic" else f"{self.catalogue} has"
                raise UsageError(
                    f"{where} no human instructions: goals='human' needs a folder with items_human_ins.json, or take "
                    "goals='synthetic'."
                )
            panel = None
            if self.panel is not None:
                panel = goals_module.load_panel(Path(self.panel).expanduser())
                goals_module.check_panel(panel, loaded.goal_asins(self.goals), Path(self.panel))
            self._opened = loaded, goals_module.Draws(self.price_seed, panel)
        return self._opened

    def tasks(self, split: str) -> Sequence[str]:
        """Ids of a split: train 0-4499, validation 4500-4999, test 5000-5499 of the official order."""
        if split not in SPLITS:
            raise UsageError(f"webshop has no split {split!r}.{nearest(split, SPLITS)}")
        first, end = SPLITS[split]
        count = self._open()[0].count(self.goals)
        if count < end:
            raise UsageError(
                f"The {split} split of webshop is goals {first} to {end - 1}, and this catalogue ({self.catalogue}, "
                f"products={self.products}, goals={self.goals!r}) gives only {count}. Take a larger catalogue or "
                f"synthetic goals; single tasks up to webshop-{count - 1} can still be named in a study."
            )
        return [f"webshop-{i}" for i in range(first, end)]

    def _index(self, task_id: str) -> int:
        word, _, number = task_id.partition("-")
        count = self._open()[0].count(self.goals)
        if word != "webshop" or not number.isdecimal() or str(int(number)) != number or int(number) >= count:
            raise UsageError(f"webshop has no task {task_id!r}. Valid: webshop-0 to webshop-{count - 1}.")
        return int(number)

    def goal(self, task_id: str) -> Goal:
        """The goal of a task (latent: for tests and reports). Raises `UsageError` for an unknown id."""
        store, draws = self._open()
        return store.goal(self.goals, self._index(task_id), draws)

    def fingerprint(self, task_id: str) -> str:
        """Hash of the goal, the target's price, all draws, the catalogue's content and what changes the pages."""
        from harness.environments.webshop.nouns import MODEL

        goal = self.goal(task_id)
        store, draws = self._open()
        price = draws.price(store.product(goal.number))
        own = [goal.asin, goal.instruction, goal.attributes, goal.options, goal.limit, price]
        how = [self.mode, self.show_attributes, self.allow_exploits, MODEL]
        return digest([self.version, store.digest, store.size, draws.identity(), how, task_id, own])

    def ceiling(self, task_id: str) -> float:
        """The most that buying the goal's own target can earn; below 1 the original's reward rules it out."""
        from harness.environments.webshop.plan import best

        engine = self._make(self._index(task_id), 0)
        return best(engine, engine.goal.number).reward

    def briefing(self) -> str:
        """Rules and action format."""
        return _BRIEFING

    def _make(self, index: int, seed: int) -> Engine:
        from harness.environments.webshop.engine import Engine

        store, draws = self._open()
        goal = store.goal(self.goals, index, draws)
        return Engine(store, goal, draws, self.show_attributes, self.allow_exploits, seed)

    def _begin(self, index: int, seed: int) -> None:
        self._engine, self._plan, self._seed = self._make(index, seed), None, seed

    def _running(self) -> tuple[Engine, Page]:
        if self._engine is None or self._page is None:
            raise RuntimeError("no episode is running: call reset first")
        return self._engine, self._page

    def reset(self, task_id: str, seed: int) -> tuple[str, Observation]:
        """Start a task; the seed only matters for `<r>` searches, when they are allowed."""
        from harness.environments.webshop.engine import Page

        self._begin(self._index(task_id), seed)
        self._page = Page()
        assert self._engine is not None  # noqa: S101  made by _begin
        return self._engine.goal.instruction, self._observe()

    def _observe(self) -> Observation:
        from harness.environments.webshop import pages

        engine, page = self._running()
        if page.kind == "done":
            product = engine.product(page)
            options = "; ".join(f"{name}: {value}" for name, value in page.options) or "none"
            return Observation(f"You bought {product.asin}: {product.title} (options: {options}). The task is over.")
        clicks = tuple(f"click[{name}]" for name in engine.clicks(page).values())
        text = pages.observe(engine, page, self.mode)
        return Observation(text, clicks, (SEARCH,) if page.kind == "index" else ())

    def step(self, action: Action) -> Outcome:
        """Execute; what the shop does not take leaves the page as it is. After a purchase nothing changes any more."""
        engine, page = self._running()
        info: dict[str, str | float | bool] = {}
        if page.kind != "done":
            move = engine.act(page, engine.executable(page, action))
            self._page = move.page
            if not move.taken:
                info["ignored"] = True
            if move.exploit:
                info["exploit"] = move.exploit
                answer = "answered" if move.taken else "refused"
                _log.warning("webshop-%d: search beginning with %s %s", engine.goal.index, move.exploit, answer)
        done = self._running()[1]
        if done.score is not None and done.kind == "done":
            score = done.score
            info |= {"asin": engine.product(done).asin, "target": done.product == engine.goal.number}
            info |= {"r_type": score.kind, "attributes": score.attributes, "options": score.options}
            info |= {"price": score.price}
            return Outcome(self._observe(), score.total, True, info)
        return Outcome(self._observe(), 0.0, False, info)

    def snapshot(self) -> _Snapshot:
        """The present state in O(1): a page is immutable."""
        engine, page = self._running()
        return _Snapshot(engine.goal.index, self._seed, page)

    def restore(self, snapshot: _Snapshot) -> None:
        """Back to a snapshot, of another task too."""
        if self._engine is None or self._engine.goal.index != snapshot.goal or self._seed != snapshot.seed:
            self._begin(snapshot.goal, snapshot.seed)
        self._page = snapshot.page

    def canonical(self, text: str) -> Action:
        """Parse `search[...]` or `click[...]`: case, outer white space and text after the last bracket do not count.

        Raises:
            IllegalAction: the text is neither.
        """
        from harness.environments.webshop.oracle import canonical

        found = _ACTION.match(text[: LONGEST * 4])
        argument = " ".join(found[2].split()).lower() if found else ""
        if not found or not argument or len(argument) > LONGEST:
            raise IllegalAction(
                f"{text[:60]!r} is no action of the shop; write search[keywords], or click[name] with "
                "a name that the page shows."
            )
        plain = f"{found[1].lower()}[{argument}]"
        return Action(plain, canonical(plain))

    def legal(self, action: Action) -> bool:
        """Whether the shop takes the action on this page (it takes a search on every page, as the original does)."""
        from harness.environments.webshop.engine import exploit

        engine, page = self._running()
        if page.kind == "done":
            return False
        if action.canonical.startswith("search[") and action.text.startswith("search["):
            return bool(action.canonical[7:-1]) and (self.allow_exploits or not exploit(action.text[7:-1]))
        return action.canonical.startswith("click[") and action.canonical[6:-1] in engine.clicks(page)

    def pool(self, state: DecisionState) -> Sequence[Action]:
        """The page's clicks and, where the page has a search bar, searches worded from the instruction alone."""
        texts = list(state.observation.actions)
        if SEARCH in state.observation.schemas:
            texts += [f"search[{keywords}]" for keywords in queries.suggestions(state.task)]
        actions = {action.canonical: action for action in map(self.canonical, texts)}
        return list(actions.values())

    def render(self, state: DecisionState) -> str:
        """What was done so far, the page now, what can be done."""
        from harness.environments.webshop import view

        return view.render(state)

    def oracle(self) -> ShopOracle | None:
        """Latent knowledge of the running episode, for simulated shoppers."""
        from harness.environments.webshop.oracle import ShopOracle
        from harness.environments.webshop.plan import Plan

        engine, _ = self._running()
        if self._plan is None:
            self._plan = Plan(engine)
        return ShopOracle(self._plan, lambda: self._running()[1])

    def close(self) -> None:
        """Forget the episode; the catalogue stays with the process."""
        self._engine = self._plan = self._page = None


def below_one(environment: WebShop, task_ids: Sequence[str]) -> dict[str, float]:
    """The reward ceiling: tasks whose own target cannot earn 1, with the most it can earn.

    Report it beside a mean reward, which cannot exceed the mean ceiling by buying targets.
    """
    found = {task_id: environment.ceiling(task_id) for task_id in task_ids}
    return {task_id: most for task_id, most in found.items() if most < 1.0}
