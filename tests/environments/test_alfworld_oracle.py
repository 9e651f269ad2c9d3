"""The oracle: its picture of the world, its plans, its mistakes and its values."""

from __future__ import annotations

import random
from collections import deque

import pytest

from harness.environments.alfworld import AlfWorld
from harness.environments.alfworld.oracle import NEARER, WASTED, WON, AlfWorldOracle
from harness.environments.alfworld.plans import plan
from harness.environments.alfworld.world import Goal, Layout, Now, after, goal_of
from tests.environments.alfworld_data import needs_shared, official, stratified

TASKS = stratified(AlfWorld(), "validation", 1)


def started(task: str) -> tuple[AlfWorld, AlfWorldOracle]:
    env = AlfWorld()
    env.reset(task, 0)
    oracle = env.oracle()
    assert oracle is not None
    return env, oracle


def compare_with_engine(env: AlfWorld, task: str) -> None:
    env.reset(task, 0)
    oracle = env.oracle()
    assert oracle is not None
    rng = random.Random(task)
    for _ in range(30):
        now, legal = env._view()
        doing = [c for c in legal if c.split()[0] not in ("go", "examine", "look", "inventory", "help")]
        command = oracle.expert().text if rng.random() < 0.3 else rng.choice(doing or list(legal))
        done = env.step(env.canonical(command)).done
        then = after(oracle._layout, now, command)
        assert env._view()[0] == then, command
        assert done == (plan(oracle._layout, then, oracle._goal) == []), command
        if done:
            break


@pytest.mark.parametrize("task", TASKS)
def test_its_picture_follows_the_engine(task: str) -> None:
    compare_with_engine(AlfWorld(), task)


@needs_shared
def test_its_picture_follows_the_engine_in_official_games() -> None:
    env = AlfWorld(games=str(official()))
    for task in stratified(env, "test", 2):
        compare_with_engine(env, task)


@pytest.mark.parametrize("task", TASKS)
def test_expert_mistakes_and_values_agree(task: str) -> None:
    env, oracle = started(task)
    for _ in range(env.max_steps):
        best, wrong = oracle.expert(), oracle.mistakes()
        assert env.legal(best)
        assert oracle.value(best) in (NEARER, WON)
        assert 2 <= len(wrong) == len({action.canonical for action in wrong}) <= 10
        assert all(env.legal(action) and action != best for action in wrong)
        assert all(oracle.value(action) <= WASTED for action in wrong)
        assert all(5 < len(oracle.reason(action)) < 120 for action in (best, *wrong))
        assert (oracle.expert(), list(oracle.mistakes())) == (best, list(wrong))
        outcome = env.step(best)
        if outcome.done:
            assert oracle.value(best) < NEARER, "nothing is left to do"
            return
    pytest.fail("the expert does not win")


def test_an_expert_recovers_from_its_mistakes() -> None:
    lost = 0
    for number, task in enumerate(AlfWorld().tasks("validation")[12:18]):
        env, oracle = started(task)
        rng = random.Random(number)
        for _ in range(env.max_steps):
            wrong = oracle.mistakes()
            action = rng.choice(list(wrong)) if wrong and rng.random() < 0.3 else oracle.expert()
            if env.step(action).done:
                break
        else:
            lost += 1
    assert lost <= 1


def test_mistakes_are_of_the_kinds_that_matter() -> None:
    kinds: set[str] = set()
    for task in TASKS:
        env, oracle = started(task)
        while not env.step(oracle.expert()).done:
            kinds |= {action.text.split()[0] for action in oracle.mistakes()}
    assert kinds >= {"go", "take", "move", "open", "close", "examine", "look", "inventory"}


def test_values_tell_progress_from_waste_from_harm() -> None:
    env, oracle = started("validation/0003-heat")
    while not oracle.expert().text.startswith("heat"):
        env.step(oracle.expert())
    heat = oracle.expert()
    env.step(heat)
    thing = heat.text.split(" with ")[0].removeprefix("heat ")
    go = oracle.expert()
    assert oracle.value(go) == NEARER
    assert oracle.value(env.canonical("look")) == WASTED
    assert oracle.value(env.canonical("go to nowhere 1")) < 0.05
    away = [action for action in oracle.mistakes() if action.text.startswith("move ")]
    for action in away:
        assert oracle.value(action) < WASTED
    assert "hot" in oracle.reason(heat)
    assert thing in oracle.reason(heat)


def shortest(layout: Layout, now: Now, goal: Goal) -> int:
    """Breadth-first search over the commands that matter to a tiny room."""
    seen, queue = {repr(now)}, deque([(now, 0)])
    while queue:
        state, depth = queue.popleft()
        if plan(layout, state, goal) == []:
            return depth
        for command in legal_in(layout, state):
            then = after(layout, state, command)
            if repr(then) not in seen:
                seen.add(repr(then))
                queue.append((then, depth + 1))
    raise AssertionError("no way")


def legal_in(layout: Layout, now: Now) -> list[str]:
    here = [p for p, spot in layout.spots.items() if spot == now.at]
    ready = [p for p in here if p not in layout.openable or p in now.opened]
    commands = [f"go to {p}" for p, spot in layout.spots.items() if spot != now.at]
    commands += [f"open {p}" for p in here if p in layout.openable and p not in now.opened]
    within = [(thing, place) for thing, places in now.inside.items() for place in sorted(places)]
    commands += [f"use {t}" for t, p in within if t in layout.able["toggleable"] and p in here]
    if now.held is None:
        return commands + [f"take {t} from {p}" for t, p in within if p in ready and "lamp" not in t]
    commands += [f"move {now.held} to {p}" for p in ready if layout.holds(p, now.held)]
    for verb, kind in (("heat", "microwavetype"), ("cool", "fridgetype"), ("clean", "sinkbasintype")):
        commands += [f"{verb} {now.held} with {p}" for p in here if layout.places[p] == kind]
    return commands


@pytest.mark.parametrize("kind", ["pick", "clean", "heat", "cool", "two", "look"])
def test_plans_are_as_short_as_search_finds(kind: str) -> None:
    devices = {"microwave 1": "microwavetype", "sink 1": "sinkbasintype", "fridge 1": "fridgetype"}
    places = {"shelf 1": "a", "box 1": "b", **devices}
    things = {"mug 1": "mugtype", "mug 2": "mugtype", "lamp 1": "lamptype"}
    able = {name: frozenset({"mug 1", "mug 2"}) for name in ("pickupable", "cleanable", "heatable", "coolable")}
    layout = Layout(
        places=places,
        spots={"shelf 1": "s", "box 1": "s", "microwave 1": "m", "sink 1": "n", "fridge 1": "f"},
        things=things,
        openable=frozenset({"box 1", "microwave 1", "fridge 1"}),
        able={**able, "toggleable": frozenset({"lamp 1"})},
        fits=frozenset((place, "mugtype") for place in places.values()),
    )
    goal = Goal(kind, "mugtype", "lamptype" if kind == "look" else "b")  # type: ignore[arg-type]
    rng = random.Random(kind)
    for _ in range(12):
        held = rng.choice([None, None, "mug 1"])
        where = ["shelf 1", "microwave 1", "fridge 1", "box 1"]
        inside = {t: frozenset(rng.sample(where, rng.choice([1, 1, 2]))) for t in things if t != held}
        inside["lamp 1"] = frozenset(["shelf 1", "sink 1"])
        now = Now(rng.choice(["s", "m", "f", "x"]), held, inside, frozenset(), frozenset())
        found = plan(layout, now, goal)
        assert found is not None
        assert len(found) == shortest(layout, now, goal)


def test_goals_beyond_the_six_types_have_no_oracle() -> None:
    assert goal_of("(:goal (and (inReceptacleObject ?o ?m)))") is None
    assert goal_of("(:goal (and (objectType ?o AppleType) (isSliced ?o) (receptacleType ?r FridgeType)))") is None
    assert goal_of("nonsense") is None
