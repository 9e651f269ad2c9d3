"""The raw shop: pages, transitions, both text forms; and the original's recorded episodes, line by line."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from harness.environments.webshop import goals, pages, reward, store
from harness.environments.webshop.engine import Engine, Page
from tests.environments.webshop_data import SHARED, folder, needs_shared

__all__ = ["folder"]


@pytest.fixture
def engine(folder: Path) -> Engine:
    """The shop for the goal red and m | l of the first chair."""
    loaded, draws = store.load(str(folder), None, 0), goals.Draws(0)
    found = (loaded.goal("synthetic", i, draws) for i in range(8))
    return Engine(loaded, next(g for g in found if dict(g.options) == {"color": "red", "size": "m | l"}), draws)


def play(engine: Engine, *actions: str) -> Page:
    """The page after some actions."""
    page = Page()
    for action in actions:
        page = engine.act(page, action).page
    return page


CHAIR = ("search[garden chair]", "click[b00000000a]")


def test_pages_and_what_can_be_clicked(engine: Engine) -> None:
    assert list(engine.clickables(Page())) == ["search"]
    results = play(engine, CHAIR[0])
    assert list(engine.clickables(results))[:2] == ["back to search", "next >"]
    assert {"b00000000a", "b00000000d"} <= set(engine.clickables(results))
    item = play(engine, *CHAIR)
    expected = [
        "back to search",
        "< prev",
        "description",
        "features",
        "reviews",
        "buy now",
        "red",
        "navy blue",
        "s",
        "m | l",
    ]
    assert list(engine.clickables(item)) == expected
    assert list(engine.clickables(play(engine, *CHAIR, "click[features]"))) == ["back to search", "< prev"]
    second = play(engine, CHAIR[0], "click[next >]")
    assert list(engine.clickables(second)) == ["back to search", "< prev", "next >"]
    assert play(engine, CHAIR[0], "click[next >]", "click[next >]").number == 3


def test_options_are_chosen_replaced_and_forgotten(engine: Engine) -> None:
    page = play(engine, *CHAIR, "click[red]", "click[s]", "click[navy blue]", "click[navy blue]")
    assert page.options == (("color", "navy blue"), ("size", "s"))
    assert play(engine, *CHAIR, "click[red]", "click[features]", "click[< prev]").options == (("color", "red"),)
    assert play(engine, *CHAIR, "click[red]", "click[< prev]", "click[b00000000a]").options == ()
    assert play(engine, *CHAIR, "click[red]", "search[table]").options == ()
    assert play(engine, *CHAIR, "click[red]", "click[back to search]") == Page(searches=1)
    assert play(engine, *CHAIR, "click[< prev]").seen == {0}


@pytest.mark.parametrize(
    "action",
    ["think[x]", "foo", "CLICK[red]", "click[zzz]", "click[search]", "click[]", "", "click red", " click[red]"],
)
def test_what_the_shop_does_not_take_changes_nothing(engine: Engine, action: str) -> None:
    page = play(engine, *CHAIR)
    move = engine.act(page, action)
    assert (move.page, move.reward, move.done, move.taken) == (page, 0.0, False, False)


def test_arguments_lose_their_case_and_trailing_text_is_ignored(engine: Engine) -> None:
    assert play(engine, *CHAIR, "click[RED] please").options == (("color", "red"),)
    assert play(engine, "search[GARDEN chair] now").keywords == ("garden", "chair")


def test_text_has_one_line_of_visible_strings(engine: Engine) -> None:
    words = engine.goal.instruction
    assert pages.observe(engine, Page(), "text") == f"WebShop [SEP] Instruction: [SEP] {words} [SEP] Search"
    item = pages.observe(engine, play(engine, *CHAIR, "click[red]"), "text").split(" [SEP] ")
    assert item[4:] == [
        "color", "red", "navy blue", "size", "s", "m | l", "Blue Wooden Garden Chair", "Price: $19.99", "Rating: N.A.",
        "Description", "Features", "Reviews", "Buy Now",
    ]  # fmt: skip
    assert pages.observe(engine, play(engine, *CHAIR), "text") == " [SEP] ".join(item)
    points = pages.observe(engine, play(engine, *CHAIR, "click[features]"), "text").split(" [SEP] ")
    assert points[4:] == ["First point", "", "Second point"]
    assert pages.observe(engine, play(engine, *CHAIR, "click[reviews]"), "text").endswith("Back to Search [SEP] < Prev")


def test_text_rich_marks_buttons_choices_and_visits(engine: Engine) -> None:
    assert pages.observe(engine, Page(), "text_rich").startswith("WebShop\nInstruction: \nFind me solid wood")
    item = pages.observe(engine, play(engine, *CHAIR, "click[red]", "click[s]"), "text_rich")
    assert item.startswith("You have clicked s.\nYou have clicked red.\nInstruction:\n")
    assert "color\n  [clicked button] red [clicked button_]\n  [button] navy blue [button_]\nsize\n" in item
    results = pages.observe(engine, play(engine, *CHAIR, "click[< prev]"), "text_rich")
    assert "\n\n[clicked button] B00000000A [clicked button_]\nBlue Wooden Garden Chair\n$19.99\n" in results
    assert "\n\n[button] B00000000D [button_]\nFolding Garden Chair\n$10.0 to $30.0\n" in results
    quoted = pages.observe(engine, play(engine, 'search["s" chair]', CHAIR[1]), "text_rich")
    assert quoted.startswith("You have clicked s.\n")


def test_values_with_quotes_or_accents_never_show_as_clicked(engine: Engine) -> None:
    for value in ('9" x 9"', "café"):
        page = play(engine, "search[cushion]", "click[b00000000e]", f"click[{value}]")
        assert page.options == (("pattern", value),)
        assert "clicked" not in pages.observe(engine, page, "text_rich")
    assert "clicked" in pages.observe(
        engine, play(engine, "search[cushion]", "click[b00000000e]", "click[plain]"), "text_rich"
    )


def test_buying_scores_and_the_raw_shop_goes_on(engine: Engine) -> None:
    move = engine.act(play(engine, *CHAIR, "click[red]", "click[m | l]"), "click[buy now]")
    assert (move.reward, move.done, move.page.kind) == (1.0, True, "done")
    text = pages.observe(engine, move.page, "text")
    assert text.startswith("Thank you for shopping with us! [SEP] Your code: [SEP] None [SEP] ")
    assert 'options [SEP] {"color": "red", "size": "m | l"} [SEP] ' in text
    assert text.endswith("Your score (min 0.0, max 1.0) [SEP] 1.0 [SEP] Reward Details [SEP] None")
    assert engine.clickables(move.page) == {}
    assert engine.act(move.page, "search[table]").page.kind == "results"


def test_special_search_words_are_refused_unless_allowed(engine: Engine) -> None:
    for words in ("<r>", "<a> soft", "<c> grocery", "<q> tables"):
        move = engine.act(Page(), f"search[{words}]")
        assert (move.page, move.taken, move.exploit) == (Page(), False, words[:3])
    free = Engine(engine.store, engine.goal, engine.draws, allow_exploits=True, seed=4)
    assert [free.act(Page(), f"search[{w}]").page.hits for w in ("<a> soft", "<c> grocery", "<q> tables", "<c>")] == [
        (4,), (2,), (1,), (),
    ]  # fmt: skip
    drawn = free.act(Page(), "search[<r>]").page
    assert sorted(drawn.hits) == [0, 1, 2, 3, 4]
    assert drawn == free.act(Page(), "search[<r>]").page


def test_attributes_page_is_shown_on_demand(engine: Engine) -> None:
    shown = Engine(engine.store, engine.goal, engine.draws, show_attributes=True)
    page = play(shown, *CHAIR, "click[attributes]")
    assert pages.observe(shown, page, "text").split(" [SEP] ")[4:] == [
        "solid wood", "easy clean", "garden", "chairs", "Home › Furniture › Chairs",
    ]  # fmt: skip
    assert "attributes" not in engine.clickables(play(engine, *CHAIR))


def test_rewards_keep_the_originals_quirks(engine: Engine) -> None:
    assert reward.colour("rectangular") == "tan"
    assert reward.colour("dark navy blue") == "blue"
    assert reward.wanted(("shape", "rectangular")) == "('shape', 'rectangular')"
    assert reward.wanted(("color", "navy")) == "navy"
    assert not reward.option_met(("shape", "rectangular"), ["rectangular"])
    assert reward.option_met("rectangular", ["rectangular"])
    assert reward.option_met(("color", "red"), ["bright red"])
    names = {"a b c": ("a", "b", "c"), "x": ("x",), "none": ()}
    goal = engine.goal
    base = engine.store.product(0)
    kinds = [("x", "x", 1.0), ("x", "a b c", 0.0), ("none", "x", 1.0), ("a b c", "x", 0.0)]
    for wanted, bought, expected in kinds:
        from dataclasses import replace

        found = reward.kind_score(replace(base, title=bought), replace(goal, title=wanted), names.__getitem__)
        assert found[0] == expected, (wanted, bought)


def test_a_product_of_another_kind_earns_nothing(engine: Engine) -> None:
    move = engine.act(play(engine, "search[green tea]", "click[b00000000c]"), "click[buy now]")
    assert move.reward == 0.0
    table = engine.act(play(engine, "search[table]", "click[b00000000b]"), "click[buy now]").page.score
    assert table is not None
    assert table.total == pytest.approx(1 / 5)  # only the price: same path, no attribute, no option


@needs_shared
@pytest.mark.parametrize("mode", pages.MODES)
def test_recorded_episodes_are_reproduced_line_by_line(mode: str) -> None:
    loaded = store.load(str(SHARED), 1000, 0)
    draws = goals.Draws(0, goals.load_panel(SHARED / "original_panel.json.gz"))
    count = 0
    with gzip.open(SHARED / f"original_transcripts_{mode}.jsonl.gz", "rt", encoding="utf-8") as file:
        for line in file:
            episode = json.loads(line)
            count += 1
            goal = loaded.goal("synthetic", episode["goal_index"], draws)
            assert goal.instruction == episode["instruction"]
            engine, page = Engine(loaded, goal, draws), Page()
            for step in episode["steps"]:
                if step["action"] is not None:
                    move = engine.act(page, step["action"])
                    page = move.page
                    assert (move.reward, move.done) == (step["reward"], step["done"]), step["action"]
                assert list(engine.clickables(page)) == step["clickables"], step["action"]
                if page.kind != "done":  # the purchase page was left out of the recordings
                    assert pages.observe(engine, page, mode) == step["observation"], step["action"]
    assert count == {"text": 60, "text_rich": 150}[mode]
