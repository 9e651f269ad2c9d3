"""Goals: expansion, order, seeded draws, panels, splits."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from pathlib import Path

import pytest

from harness.environments.webshop import WebShop, goals, store
from harness.errors import UsageError
from tests.environments.webshop_data import SHARED, folder, needs_shared, shop

__all__ = ["folder", "shop"]


def test_each_combination_of_options_is_a_goal(folder: Path) -> None:
    loaded = store.load(str(folder), None, 0)
    assert loaded.count("synthetic") == 4 + 1 + 3
    draws = goals.Draws(0)
    found = [loaded.goal("synthetic", i, draws) for i in range(8)]
    chairs = {g.options for g in found if g.asin == "B00000000A"}
    assert chairs == {(("color", c), ("size", s)) for c in ("red", "navy blue") for s in ("s", "m | l")}
    one = next(g for g in found if g.options == (("color", "red"), ("size", "m | l")))
    start = "Find me solid wood, easy clean chairs with color: red, and size: m | l, and price lower than "
    assert one.instruction == f"{start}{one.limit:.2f} dollars"
    costly = [g for g in found if g.asin == "B00000000E"]
    assert all(g.limit == goals.NO_LIMIT and "price" not in g.instruction for g in costly)
    assert len({g.limit for g in found if g.asin == "B00000000A"}) == 1


def test_human_goals_are_values_and_drop_requests_without_attributes(folder: Path) -> None:
    loaded = store.load(str(folder), None, 0)
    assert loaded.count("human") == 1
    goal = loaded.goal("human", 0, goals.Draws(0))
    assert goal.options == ("navy blue",)
    assert goal.instruction.startswith("i want a blue chair, and price lower than ")


def test_the_official_order_is_the_shuffle_of_seed_233() -> None:
    order = goals.shuffled(12_087)
    places = [order.index(i) for i in range(13)]
    assert places == [4999, 3621, 4517, 5624, 6682, 9380, 4058, 2543, 1195, 7902, 9122, 10170, 3018]


def test_draws_depend_on_seed_and_product_alone(folder: Path) -> None:
    ranged = store.load(str(folder), None, 0).product(3)
    prices = {goals.Draws(seed).price(ranged) for seed in range(20)}
    assert len(prices) == 20
    assert all(10.0 <= price <= 30.0 for price in prices)
    assert goals.Draws(7).price(ranged) == goals.Draws(7).price(ranged)
    draws = goals.Draws(7)
    higher = [limit for limit in goals.LIMITS if limit > draws.price(ranged)][:4]
    limits = {goals.Draws(seed).limit(replace(ranged, prices=(5.0,))) for seed in range(60)}
    assert draws.limit(ranged) in higher[1:]
    assert limits == {20.0, 30.0, 40.0}
    assert goals.Draws(0).limit(replace(ranged, prices=(970.0,))) == 990.0
    assert goals.Draws(0).limit(replace(ranged, prices=(980.0,))) == goals.NO_LIMIT


def _panel(folder: Path, **changes: object) -> Path:
    loaded = store.load(str(folder), None, 0)
    asins = loaded.goal_asins("synthetic")
    panel = {
        "prices": {"B00000000A": 12.5},
        "price_upper": [40.0] * len(asins),
        "goal_asins": asins,
        "instructions": [""] * len(asins),
        **changes,
    }
    path = folder / "panel.json.gz"
    path.write_bytes(gzip.compress(json.dumps(panel).encode()))
    return path


def test_a_panel_fixes_prices_and_limits(folder: Path) -> None:
    shop = WebShop(catalogue=str(folder), panel=str(_panel(folder)))
    goal = shop.goal("webshop-0")
    assert goal.limit == 40.0
    assert goal.instruction.endswith("price lower than 40.00 dollars")
    assert shop._open()[1].price(shop._open()[0].product(0)) == 12.5


def test_a_panel_of_other_goals_is_refused(folder: Path) -> None:
    path = _panel(folder, goal_asins=["B00000000A"] * 8)
    with pytest.raises(UsageError, match="differ first at goal"):
        WebShop(catalogue=str(folder), panel=str(path)).reset("webshop-0", 0)
    path.write_text("{]")
    with pytest.raises(UsageError, match="cannot be read"):
        WebShop(catalogue=str(folder), panel=str(path)).reset("webshop-0", 0)
    with pytest.raises(UsageError, match="cannot be read"):
        WebShop(catalogue=str(folder), panel=str(folder / "none.json")).reset("webshop-0", 0)


def test_fingerprints_follow_the_price_and_nothing_else_moves(folder: Path) -> None:
    one, again = WebShop(catalogue=str(folder)), WebShop(catalogue=str(folder))
    other = WebShop(catalogue=str(folder), price_seed=1)
    ids = [f"webshop-{i}" for i in range(8)]
    assert [one.fingerprint(i) for i in ids] == [again.fingerprint(i) for i in ids]
    assert len({one.fingerprint(i) for i in ids}) == 8
    assert not {one.fingerprint(i) for i in ids} & {other.fingerprint(i) for i in ids}
    cheap = WebShop(catalogue=str(folder), panel=str(_panel(folder, prices={"B00000000A": 12.5}))).fingerprint(ids[0])
    dear = WebShop(catalogue=str(folder), panel=str(_panel(folder, prices={"B00000000A": 12.6}))).fingerprint(ids[0])
    assert cheap != dear
    assert WebShop(catalogue=str(folder), mode="text").fingerprint(ids[0]) != one.fingerprint(ids[0])


def test_splits_are_disjoint_and_stable(shop: WebShop) -> None:
    train, validation, test = (list(shop.tasks(split)) for split in ("train", "validation", "test"))
    assert (train[0], train[-1], len(train)) == ("webshop-0", "webshop-4499", 4500)
    assert (validation[0], validation[-1], len(validation)) == ("webshop-4500", "webshop-4999", 500)
    assert (test[0], test[-1], len(test)) == ("webshop-5000", "webshop-5499", 500)
    with pytest.raises(UsageError, match="Did you mean 'test'"):
        shop.tasks("tests")
    for unknown in ("webshop-99999", "webshop-05", "webshop--1", "shop-1", "webshop-", "webshop-x"):
        with pytest.raises(UsageError, match="webshop-0 to webshop-"):
            shop.reset(unknown, 0)


def test_a_catalogue_with_too_few_goals_says_so(folder: Path) -> None:
    shop = WebShop(catalogue=str(folder))
    with pytest.raises(UsageError, match=r"test split .* goals 5000 to 5499.*gives only 8"):
        shop.tasks("test")
    assert shop.reset("webshop-7", 0)[0]


def test_unknown_parameters_values_are_refused(folder: Path) -> None:
    with pytest.raises(UsageError, match="Did you mean 'text_rich'"):
        WebShop(mode="text_ritch").tasks("test")
    with pytest.raises(UsageError, match="Did you mean 'human'"):
        WebShop(goals="humans").tasks("test")
    with pytest.raises(UsageError, match=r"items_human_ins\.json"):
        WebShop(goals="human").tasks("test")


@needs_shared
def test_official_goals_come_in_the_official_order() -> None:
    loaded = store.load(str(SHARED), 1000, 0)
    panel = goals.load_panel(SHARED / "original_panel.json.gz")
    draws = goals.Draws(0, panel)
    assert (loaded.count("synthetic"), loaded.count("human")) == (6910, 13)
    goals.check_panel(panel, loaded.goal_asins("synthetic"), SHARED)
    assert [loaded.goal("synthetic", i, draws).instruction for i in range(6910)] == panel.instructions
    for product in loaded.products():
        low, high = min(product.prices), max(product.prices)
        assert low <= panel.prices[product.asin] <= high
