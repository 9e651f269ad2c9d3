"""The oracle: an expert that buys the best, mistakes that matter, graded values, and the reward ceiling."""

from __future__ import annotations

import statistics
import time
from pathlib import Path

import pytest

from harness.environments.webshop import WebShop, below_one
from harness.records import Action
from tests.environments.webshop_data import SHARED, folder, needs_shared, shop

__all__ = ["folder", "shop"]


def finish(shop: WebShop) -> tuple[float, int]:
    """Follow the expert from here: (reward, steps)."""
    for count in range(1, shop.max_steps + 1):
        oracle = shop.oracle()
        assert oracle is not None
        action = oracle.expert()
        assert shop.legal(action), action
        outcome = shop.step(action)
        if outcome.done:
            return outcome.reward or 0.0, count
    return 0.0, shop.max_steps


def test_the_expert_buys_the_best_of_almost_every_task(shop: WebShop) -> None:
    reached, rewards = 0, []
    for task_id in shop.tasks("test"):
        shop.reset(task_id, 0)
        rewards.append(finish(shop)[0])
        reached += rewards[-1] >= shop.ceiling(task_id) - 1e-9
    assert reached >= 0.97 * len(rewards)
    assert statistics.mean(rewards) > 0.97


@needs_shared
def test_the_expert_masters_the_official_test_split() -> None:
    shop = WebShop(catalogue=str(SHARED), products=1000, panel=str(SHARED / "original_panel.json.gz"))
    rewards = []
    for task_id in shop.tasks("test"):
        shop.reset(task_id, 0)
        rewards.append(finish(shop)[0])
    assert statistics.mean(rewards) > 0.98
    assert sum(reward == 1.0 for reward in rewards) >= 470


@needs_shared
def test_ceilings_of_the_official_goals() -> None:
    shop = WebShop(catalogue=str(SHARED), products=1000, panel=str(SHARED / "original_panel.json.gz"))
    found = below_one(shop, [f"webshop-{i}" for i in range(6910)])
    assert len(found) == 458
    assert sum(task_id in found for task_id in shop.tasks("test")) == 30


def test_the_expert_recovers_from_every_mistake(shop: WebShop) -> None:
    tried = 0
    for index in range(5000, 5030):
        shop.reset(f"webshop-{index}", 0)
        best = shop.ceiling(f"webshop-{index}")
        for _ in range(6):
            oracle = shop.oracle()
            assert oracle is not None
            here = shop.snapshot()
            for mistake in oracle.mistakes():
                outcome = shop.step(mistake)
                if not outcome.done:
                    reward, steps = finish(shop)
                    assert reward >= best - 1e-9, (index, mistake)
                    assert steps <= 14
                    tried += 1
                shop.restore(here)
            if shop.step(oracle.expert()).done:
                break
    assert tried > 300


def test_mistakes_are_legal_distinct_and_worth_less(shop: WebShop) -> None:
    kinds = set()
    for index in range(5000, 5060):
        shop.reset(f"webshop-{index}", 0)
        for _ in range(8):
            oracle = shop.oracle()
            assert oracle is not None
            expert, mistakes = oracle.expert(), oracle.mistakes()
            canonicals = [action.canonical for action in mistakes]
            assert len(set(canonicals)) == len(canonicals)
            assert expert.canonical not in canonicals
            worth = oracle.value(expert)
            for action in mistakes:
                assert shop.legal(action)
                assert 0.0 <= oracle.value(action) <= worth
                assert oracle.reason(action)
                kinds.add(action.text.split("[")[0] + str(action.text == "click[buy now]"))
            if shop.step(expert).done:
                break
    assert kinds == {"searchFalse", "clickFalse", "clickTrue"}


def test_values_are_graded_by_what_is_lost(folder: Path) -> None:
    shop = WebShop(catalogue=str(folder))
    task = next(
        f"webshop-{i}"
        for i in range(8)
        if dict(shop.goal(f"webshop-{i}").options) == {"color": "red", "size": "s"}  # type: ignore[arg-type]
    )
    shop.reset(task, 0)
    oracle = shop.oracle()
    assert oracle is not None

    def worth(text: str) -> float:
        return oracle.value(shop.canonical(text))

    assert worth("search[tea]") < worth("search[garden chair]") == 1.0
    shop.step(shop.canonical("search[garden chair]"))
    assert worth("click[b00000000a]") == 1.0
    assert worth("click[b00000000b]") < worth("click[back to search]") < 1.0
    shop.step(shop.canonical("click[b00000000a]"))
    assert worth("click[red]") == worth("click[s]") == 1.0
    assert worth("click[buy now]") == pytest.approx(3 / 5)
    assert worth("click[buy now]") < worth("click[navy blue]") < worth("click[features]") < 1.0
    shop.step(shop.canonical("click[red]"))
    assert worth("click[buy now]") == pytest.approx(4 / 5)
    assert oracle.value(Action("no such thing", "no such thing")) < 1.0
    shop.step(shop.canonical("click[s]"))
    assert worth("click[buy now]") == 1.0


def test_the_oracle_is_deterministic_and_cheap(shop: WebShop) -> None:
    shop.reset("webshop-5000", 0)
    calls, start = 0, time.process_time()
    for index in range(5100, 5160):
        shop.reset(f"webshop-{index}", 0)
        for _ in range(4):
            oracle = shop.oracle()
            assert oracle is not None
            actions = [oracle.expert(), *oracle.mistakes()]
            values = [oracle.value(action) for action in actions]
            calls += 2 + len(values)
            assert [oracle.value(action) for action in actions] == values
            shop.step(actions[0])
    assert (time.process_time() - start) / calls < 0.001
