"""Random walks through the shop against its specification, written here a second time from the records alone.

The model knows the raw records and the rules (what is clickable in which order on which page, what a click does to
page, product and chosen options, what stays after a purchase) and nothing of the engine.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from harness.environments.webshop import WebShop
from harness.errors import IllegalAction
from harness.records import Action, Observation, Outcome
from tests.environments.webshop_data import RECORDS, write

pytest.importorskip("numpy")
SUBS = ["description", "features", "reviews"]
QUERIES = ["garden chair", "wooden", "tea", "chair cushion", "zebra", "the", "x" * 30]


def products() -> dict[str, dict[str, list[str]]]:
    """Options by id, as the shop shows them: first record of an id, ten characters, lower case, `/` spaced."""
    found: dict[str, dict[str, list[str]]] = {}
    for record in RECORDS:
        asin = record["asin"].lower()
        if asin == "nan" or len(asin) > 10 or asin in found:
            continue
        options = record["customization_options"] or {}
        found[asin] = {
            name.lower(): [value["value"].strip().replace("/", " | ").lower() for value in values]
            for name, values in options.items()
        }
    return found


PRODUCTS = products()


class Shop(RuleBasedStateMachine):
    """The environment beside the model."""

    folder: Path
    env: WebShop

    @initialize(task=st.integers(0, 7), seed=st.integers(0, 3))
    def begin(self, task: int, seed: int) -> None:
        self.env = ENVIRONMENT[0]
        self.task = f"webshop-{task}"
        self.instruction, self.seen = self.env.reset(self.task, seed)
        self.kind, self.number, self.product, self.chosen = "index", 0, "", {}
        self.sub, self.words = "", ""
        self.outcome: Outcome | None = None
        self.saved: list[tuple[Any, dict[str, Any]]] = []

    def model(self) -> dict[str, Any]:
        names = ("kind", "number", "product", "chosen", "sub", "words", "seen", "outcome")
        return {name: dict(value) if isinstance(value := getattr(self, name), dict) else value for name in names}

    def do(self, text: str) -> Outcome:
        self.outcome = self.env.step(self.env.canonical(text))
        self.seen = self.outcome.observation
        return self.outcome

    def expected(self) -> list[str]:
        """Clickables in the specification's order; the products of a results page are whatever it found."""
        if self.kind in ("index", "done"):
            return []
        if self.kind == "sub":
            return ["back to search", "< prev"]
        if self.kind == "item":
            values = [value for values in PRODUCTS[self.product].values() for value in values]
            return ["back to search", "< prev", *SUBS, "buy now", *values]
        asins = [name for name in self.clicks() if name in PRODUCTS]
        return ["back to search", *(["< prev"] if self.number > 1 else []), "next >", *asins]

    def clicks(self) -> list[str]:
        return [text[6:-1] for text in self.seen.actions]

    @rule(words=st.sampled_from(QUERIES))
    def search(self, words: str) -> None:
        before = self.model()
        self.do(f"search[{words}]")
        if self.kind == "done":
            assert self.seen == before["seen"]
            return
        self.kind, self.number, self.product, self.chosen, self.words = "results", 1, "", {}, words

    @precondition(lambda self: self.kind not in ("index", "done"))
    @rule(data=st.data(), loud=st.booleans())
    def click(self, data: st.DataObject, loud: bool) -> None:
        self.pick(data.draw(st.sampled_from(self.clicks())), loud)

    @precondition(lambda self: self.kind == "item")
    @rule(data=st.data(), sub=st.sampled_from(SUBS))
    def choose_and_read(self, data: st.DataObject, sub: str) -> None:
        """What walks at random rarely do: options that have to survive a page behind the product."""
        values = [value for values in PRODUCTS[self.product].values() for value in values]
        for name in [*([data.draw(st.sampled_from(values))] if values else []), sub, "< prev"]:
            self.pick(name, False)

    @precondition(lambda self: self.kind == "item")
    @rule()
    def leave_and_return(self) -> None:
        product = self.product
        self.pick("< prev", False)
        self.pick(product, False)

    @precondition(lambda self: self.kind == "results")
    @rule(data=st.data())
    def open_a_product(self, data: st.DataObject) -> None:
        asins = [name for name in self.clicks() if name in PRODUCTS]
        if asins:
            self.pick(data.draw(st.sampled_from(asins)), False)

    def pick(self, name: str, loud: bool) -> None:
        page = self.kind
        self.do(f"click[ {name.upper()} ]" if loud else f"click[{name}]")
        if name == "back to search":
            self.kind, self.number, self.product, self.chosen = "index", 0, "", {}
        elif page == "results" and name in ("next >", "< prev"):
            self.number += 1 if name == "next >" else -1
        elif page == "results":
            self.kind, self.product = "item", name
        elif name == "< prev" and page == "sub":
            self.kind = "item"
        elif name == "< prev":
            self.kind, self.product, self.chosen = "results", "", {}
        elif name in SUBS:
            self.kind, self.sub = "sub", name
        elif name == "buy now":
            self.kind = "done"
        else:
            owner = next(o for o, values in reversed(PRODUCTS[self.product].items()) if name in values)
            self.chosen[owner] = name

    @rule(text=st.sampled_from(["click[search]", "click[zzz]", "click[b00000000a]", "search[<r> x]", "click[red]"]))
    def what_may_not_be_there(self, text: str) -> None:
        if text[6:-1] in self.clicks():
            return
        before = self.model()
        action = self.env.canonical(text)
        assert not self.env.legal(action)
        outcome = self.do(text)
        assert self.seen == before["seen"]
        assert outcome.done == (self.kind == "done")

    @rule(text=st.text(max_size=20))
    def any_text(self, text: str) -> None:
        """A text is an action or none; one that is not executed through here."""
        try:
            action = self.env.canonical(text)
        except IllegalAction:
            return
        assert isinstance(action, Action)

    @rule()
    def save(self) -> None:
        self.saved.append((self.env.snapshot(), self.model()))

    @precondition(lambda self: bool(self.saved))
    @rule(data=st.data())
    def restore(self, data: st.DataObject) -> None:
        snapshot, model = data.draw(st.sampled_from(self.saved))
        self.env.restore(snapshot)
        for name, value in model.items():
            setattr(self, name, dict(value) if isinstance(value, dict) else value)
        if not self.seen.actions:
            return
        # The same action from the same snapshot gives the same, also after somebody went another way.
        action = self.env.canonical(data.draw(st.sampled_from(self.seen.actions)))
        first = self.env.step(action)
        self.env.restore(snapshot)
        self.env.step(self.env.canonical("search[tea]"))
        self.env.restore(snapshot)
        assert self.env.step(action) == first
        self.env.restore(snapshot)

    @invariant()
    def clickables_are_those_of_the_page(self) -> None:
        assert self.clicks() == self.expected()
        assert (self.seen.schemas != ()) == (self.kind == "index")
        for text in self.seen.actions:
            assert self.env.legal(self.env.canonical(text))

    @invariant()
    def the_page_says_where_it_is(self) -> None:
        text, lines = self.seen.text, self.seen.text.split("\n")
        if self.kind == "done":
            assert self.product.upper() in text
            assert "score" not in text.lower()
            return
        assert self.instruction in text
        if self.kind == "results":
            assert any(line.startswith(f"Page {self.number} (Total results: ") for line in lines)
        if self.kind == "item":
            shown = {line.removeprefix("  [clicked button] ").removesuffix(" [clicked button_]") for line in lines
                     if line.startswith("  [clicked button] ")}  # fmt: skip
            # A chosen value is marked when its quoted form stands in the page's address, which json.dumps escapes.
            plain = {value for value in self.chosen.values() if json.dumps(value) == f'"{value}"'}
            assert plain == {value.lower() for value in shown}
            assert any(line.startswith("Price: $") for line in lines)

    @invariant()
    def rewards_are_bounded_and_only_for_purchases(self) -> None:
        outcome = self.outcome
        if outcome is None:
            return
        assert outcome.reward is not None
        assert 0.0 <= outcome.reward <= 1.0
        assert outcome.done == (self.kind == "done")
        if not outcome.done:
            assert outcome.reward == 0.0

    @invariant()
    def advisors_see_a_state(self) -> None:
        assert isinstance(self.seen, Observation)


ENVIRONMENT: list[WebShop] = []


@pytest.fixture(scope="module", autouse=True)
def hand_made_shop() -> Any:
    """One environment for all walks, as in a run."""
    folder, before = Path(tempfile.mkdtemp()), os.environ.get("COTA_BENCH_CACHE")
    os.environ["COTA_BENCH_CACHE"] = str(folder / "cache")
    ENVIRONMENT[:] = [WebShop(catalogue=str(write(folder / "shop")))]
    yield
    if before is None:
        del os.environ["COTA_BENCH_CACHE"]
    else:
        os.environ["COTA_BENCH_CACHE"] = before
    shutil.rmtree(folder)


TestShop = Shop.TestCase
TestShop.settings = settings(settings.default, max_examples=max(100, settings.default.max_examples // 4), stateful_step_count=30)
