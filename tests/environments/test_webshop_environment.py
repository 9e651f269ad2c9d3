"""The environment as methods and actors meet it."""

from __future__ import annotations

import logging
import os
import random
import subprocess
import sys
import threading
from itertools import pairwise
from pathlib import Path

import pytest

from harness.environments.webshop import WebShop, queries
from harness.errors import IllegalAction
from harness.records import Action, DecisionState, Outcome, Turn
from tests.environments.webshop_data import folder, shop

__all__ = ["folder", "shop"]


def state_of(shop: WebShop, task_id: str, *actions: str) -> tuple[DecisionState, list[Outcome]]:
    """Play actions from the start."""
    task, opening = shop.reset(task_id, 0)
    state, outcomes = DecisionState(shop.name, task_id, task, opening), []
    for text in actions:
        action = shop.canonical(text)
        outcomes.append(shop.step(action))
        turn = Turn(action, outcomes[-1].observation)
        state = DecisionState(shop.name, task_id, task, opening, (*state.turns, turn))
    return state, outcomes


@pytest.fixture
def small(folder: Path) -> tuple[WebShop, str]:
    """The hand-made shop and its task red, m | l."""
    shop = WebShop(catalogue=str(folder))
    ids = [f"webshop-{i}" for i in range(8)]
    return shop, next(i for i in ids if dict(shop.goal(i).options) == {"color": "red", "size": "m | l"})  # type: ignore[arg-type]


BUY = ("search[garden chair]", "click[b00000000a]", "click[red]", "click[m | l]", "click[buy now]")


def test_an_episode_from_search_to_purchase(small: tuple[WebShop, str]) -> None:
    shop, task = small
    state, outcomes = state_of(shop, task, *BUY)
    assert [outcome.reward for outcome in outcomes] == [0.0, 0.0, 0.0, 0.0, 1.0]
    assert [outcome.done for outcome in outcomes] == [False] * 4 + [True]
    assert state.opening.schemas == ("search[<keywords>]",)
    assert state.opening.actions == ()
    assert outcomes[1].observation.actions[:2] == ("click[back to search]", "click[< prev]")
    assert outcomes[-1].info["target"] is True


def test_the_last_page_does_not_tell_the_reward_and_nothing_follows(small: tuple[WebShop, str]) -> None:
    shop, task = small
    last = state_of(shop, task, *BUY)[1][-1]
    assert "1.0" not in last.observation.text
    assert "score" not in last.observation.text.lower()
    assert (last.observation.actions, last.observation.schemas) == ((), ())
    for text in ("search[table]", "click[buy now]"):
        again = shop.step(shop.canonical(text))
        assert not shop.legal(shop.canonical(text))
        assert (again.reward, again.done, again.observation) == (1.0, True, last.observation)


def test_snapshots_restore_exactly_and_across_tasks(shop: WebShop) -> None:
    rng = random.Random(5)
    state, _ = state_of(shop, "webshop-5003", "search[shoes]")
    held = shop.snapshot()

    def wander() -> list[Outcome]:
        rng.seed(5)
        outcomes, observation = [], state.observation
        for _ in range(12):
            texts = observation.actions or ("search[tea]",)
            outcomes.append(shop.step(shop.canonical(rng.choice(texts))))
            observation = outcomes[-1].observation
        return outcomes

    first = wander()
    shop.reset("webshop-5004", 0)
    shop.restore(held)
    assert wander() == first
    shop.restore(held)
    assert wander() == first


def test_actions_are_compared_by_meaning(shop: WebShop) -> None:
    same = [" Search[ Red  shoes, ] ok", "search[red shoes]", 'Action: search["red" shoes.]', "search[\nred shoes]"]
    assert {shop.canonical(text).canonical for text in same} == {"search[red shoes]"}
    assert shop.canonical("CLICK[Buy  Now]") == Action("click[buy now]", "click[buy now]")
    assert shop.canonical("click[a.]").canonical != shop.canonical("click[a]").canonical
    for text in ("think[x]", "foo", "", "click[]", "search[   ]", "click[" + "x" * 700 + "]"):
        with pytest.raises(IllegalAction, match="no action of the shop"):
            shop.canonical(text)


def test_white_space_of_a_value_does_not_matter(folder: Path) -> None:
    from tests.environments.webshop_data import FACTS, options, record, write

    odd = record("B00000000A", "Garden Chair", customization_options=options(Size=["10\u00a0x  12", "a [b]"]))
    write(folder, [odd], {"B00000000A": FACTS["B00000000A"]})
    shop = WebShop(catalogue=str(folder))
    state, outcomes = state_of(shop, "webshop-0", "search[chair]", "click[b00000000a]", "click[10 x 12]")
    assert "[clicked button]" not in outcomes[-1].observation.text  # the original shows no value with such a blank
    assert "ignored" not in outcomes[-1].info
    assert shop.snapshot().page.options == (("size", "10\u00a0x  12"),)
    assert not any("[b]" in text for text in state.observation.actions)  # no action can name it, as in the original
    assert "size = 10 x 12" in shop.render(state)


def test_illegal_actions_are_answered_as_the_shop_does(small: tuple[WebShop, str]) -> None:
    shop, task = small
    state, _ = state_of(shop, task, "search[chair]")
    for action in (Action("fly", "fly"), shop.canonical("click[nothing]"), Action("click[red]", "click[red]")):
        assert not shop.legal(action)
        outcome = shop.step(action)
        assert (outcome.observation, outcome.reward, outcome.done) == (state.observation, 0.0, False)
        assert outcome.info["ignored"] is True


def test_exploits_are_refused_and_logged(shop: WebShop, caplog: pytest.LogCaptureFixture) -> None:
    state, _ = state_of(shop, "webshop-5000")
    action = shop.canonical("search[<C> fashion]")
    assert not shop.legal(action)
    with caplog.at_level(logging.WARNING):
        outcome = shop.step(action)
    assert outcome.observation == state.observation
    assert outcome.info["exploit"] == "<c>"
    assert "webshop-5000" in caplog.text
    free = WebShop(allow_exploits=True)
    free.reset("webshop-5000", 0)
    assert free.legal(action)
    assert "Total results: 50)" not in free.step(action).observation.text
    assert free.fingerprint("webshop-5000") != shop.fingerprint("webshop-5000")


def test_the_pool_is_legal_and_words_searches_from_the_instruction(shop: WebShop) -> None:
    for index in range(5000, 5040):
        state, _ = state_of(shop, f"webshop-{index}")
        pool = shop.pool(state)
        assert 2 <= len(pool) <= 4
        allowed = set(state.task.lower().replace(",", " ").split())
        for action in pool:
            assert shop.legal(action)
            assert set(action.text[7:-1].replace(",", " ").split()) <= allowed
    state, _ = state_of(shop, "webshop-5000", "search[shoes]")
    assert [a.text for a in shop.pool(state)] == list(state.observation.actions)


@pytest.mark.parametrize(
    ("instruction", "request_", "values"),
    [
        ("Find me light weight women's shorts with high waist with color: black, and size: 3x-large, and price lower "
         "than 50.00 dollars", "light weight women's shorts with high waist", ("black", "3x-large")),
        ("i am looking for a gluten free shake, and price lower than 20.00 dollars", "gluten free shake", ()),
        ("i need a 120 ml hair mask treatment", "120 ml hair mask treatment", ()),
        ("chairs", "chairs", ()),
    ],
)  # fmt: skip
def test_instructions_are_taken_apart(instruction: str, request_: str, values: tuple[str, ...]) -> None:
    assert queries.parts(instruction) == (request_, values)
    assert queries.suggestions(instruction)[0] == request_


@pytest.mark.parametrize("mode", ["text", "text_rich"])
def test_the_view_shows_history_then_the_page(folder: Path, mode: str) -> None:
    shop = WebShop(catalogue=str(folder), mode=mode)
    task = next(f"webshop-{i}" for i in range(8) if shop.goal(f"webshop-{i}").asin == "B00000000A")
    views = []
    for count in range(len(BUY) + 1):
        state, _ = state_of(shop, task, *BUY[:count])
        views.append(shop.render(state))
    assert views[0].endswith("Steps so far:\nnone\nPage now: search page\nPossible actions: search[<keywords>]")
    assert "B00000000A | Blue Wooden Garden Chair | $19.99" in views[1]
    assert "2. click[b00000000a] -> product page: Blue Wooden Garden Chair | Price: $19.99" in views[2]
    assert "Option color: red, navy blue\nOption size: s, m | l\nOptions chosen: none yet" in views[2]
    assert "Options chosen: color = red; size = m | l" in views[4]
    assert views[5].endswith("Page now: end\nPossible actions: none")
    for before, after in pairwise(views[1:]):
        assert after.startswith(before[: before.index("\nPage now")])
    assert "none" not in shop.render(state_of(shop, task, *BUY[:2], "click[features]")[0]).split("Page now")[1]
    replaced = shop.render(state_of(shop, task, *BUY[:3], "click[navy blue]", "click[features]", "click[< prev]")[0])
    assert "Options chosen: color = navy blue\n" in replaced


def test_views_are_bounded(shop: WebShop) -> None:
    state, _ = state_of(shop, "webshop-5001", *["search[shoes]", "click[back to search]"] * 60)
    assert len(state.turns) == 120
    assert len(shop.render(state)) < 8_000


def test_importing_and_constructing_is_light() -> None:
    code = (
        "import sys; from harness.environments.webshop import WebShop; WebShop(catalogue='/nowhere'); "
        "print([m for m in ('numpy', 'spacy', 'thefuzz', 'sqlite3') if m in sys.modules])"
    )
    root = Path(__file__).parents[2]
    plain = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE_")}  # it has sqlite3
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=root, env=plain, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_threads_share_a_catalogue(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.environments.webshop.store.IN_MEMORY", 0)
    results: list[float | None] = []
    main = WebShop(catalogue=str(folder))
    task = next(f"webshop-{i}" for i in range(8) if dict(main.goal(f"webshop-{i}").options).get("size") == "m | l")  # type: ignore[arg-type]
    colour = dict(main.goal(task).options)["color"]  # type: ignore[arg-type]
    expected = state_of(main, task, *BUY[:2], f"click[{colour}]", *BUY[3:])[1][-1].reward

    def work() -> None:
        mine = WebShop(catalogue=str(folder))
        for _ in range(5):
            results.append(state_of(mine, task, *BUY[:2], f"click[{colour}]", *BUY[3:])[1][-1].reward)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert expected == 1.0
    assert results == [1.0] * 40


def test_a_step_is_fast(shop: WebShop) -> None:
    import time

    state_of(shop, "webshop-5000", "search[shoes]")
    item = next(text for text in shop._observe().actions if text.startswith("click[b0"))
    actions = [shop.canonical(text) for text in (item, "click[features]", "click[< prev]", "click[< prev]")] * 50
    for action in actions:
        shop.step(action)
    start = time.process_time()
    for action in actions:
        shop.step(action)
    assert (time.process_time() - start) / len(actions) < 0.0002
