"""The environment's face: observations, spellings, legality, pool, rendering, briefing."""

from __future__ import annotations

import subprocess
import sys
from itertools import pairwise

import pytest

from harness.environments.alfworld import AlfWorld
from harness.errors import IllegalAction
from harness.records import Action, DecisionState, Turn
from harness.registry import create, parameters

SPELLINGS = [
    ("put mug 1 in/on desk 2", "move mug 1 to desk 2"),
    ("Put the Mug 1 on the Desk 2.", "move mug 1 to desk 2"),
    ("put mug 1 in desk 2", "move mug 1 to desk 2"),
    ("put mug 1 into the cabinet 3", "move mug 1 to cabinet 3"),
    ("place a mug1 onto desk2", "move mug 1 to desk 2"),
    ("move mug 1 to desk 2", "move mug 1 to desk 2"),
    ("  GO   TO  desk 2 ", "go to desk 2"),
    ("goto desk #2", "go to desk 2"),
    ("`take mug 1 from desk 2`", "take mug 1 from desk 2"),
    ("pick up the mug 1 from desk 2", "take mug 1 from desk 2"),
    ("turn on desklamp 1", "use desklamp 1"),
    ("heat mug 1 with microwave 1", "heat mug 1 with microwave 1"),
    ("look", "look"),
    ("Inventory.", "inventory"),
]


@pytest.fixture
def kitchen() -> AlfWorld:
    return AlfWorld()


@pytest.mark.parametrize(("text", "command"), SPELLINGS)
def test_one_spelling(text: str, command: str) -> None:
    assert AlfWorld().canonical(text) == Action(command, command)


NO_COMMANDS = ["", "   ", "I should go to the desk", "go to desk 1\ngo to desk 2", "go to " + "x" * 300]


@pytest.mark.parametrize("text", NO_COMMANDS)
def test_what_is_no_command_is_refused(text: str) -> None:
    with pytest.raises(IllegalAction, match="is no command here"):
        AlfWorld().canonical(text)


def test_a_game_from_start_to_end(kitchen: AlfWorld) -> None:
    task, start = kitchen.reset("test/0003-heat", 0)
    assert task == "put a hot egg in sinkbasin."
    assert start.text.startswith("You are in the middle of a room. Looking quickly around you, you see a ")
    assert "Your task is" not in start.text
    assert "TextWorld" not in start.text
    assert set(start.actions) > {"look", "inventory", "help", "go to microwave 1"}
    oracle = kitchen.oracle()
    assert oracle is not None
    rewards = []
    for _ in range(kitchen.max_steps):
        action = oracle.expert()
        assert kitchen.legal(action)
        outcome = kitchen.step(action)
        assert outcome.info == {"valid": True}
        rewards.append(outcome.reward)
        if outcome.done:
            break
    assert rewards == [0.0] * (len(rewards) - 1) + [1.0]


def test_an_impossible_command_changes_nothing(kitchen: AlfWorld) -> None:
    _, start = kitchen.reset("test/0003-heat", 0)
    before = kitchen.snapshot()
    for text in ("open fridge 1", "take unicorn 1 from fridge 1", "go to moon 9", "dance", ""):
        action = Action(text, text)
        assert not kitchen.legal(action)
        outcome = kitchen.step(action)
        assert (outcome.observation.text, outcome.done, outcome.info) == ("Nothing happens.", False, {"valid": False})
        assert outcome.observation.actions == start.actions
    assert kitchen.snapshot().saved == before.saved


def test_the_old_spelling_is_executed(kitchen: AlfWorld) -> None:
    kitchen.reset("test/0000-pick", 0)
    oracle = kitchen.oracle()
    assert oracle is not None
    while not (action := oracle.expert()).text.startswith("move "):
        kitchen.step(action)
    thing, place = action.text.removeprefix("move ").split(" to ")
    old = Action(f"put {thing} in/on {place}", "whatever")
    assert kitchen.legal(kitchen.canonical(old.text))
    assert kitchen.step(old).observation.text == f"You move the {thing} to the {place}."


def test_pool_and_rendering(kitchen: AlfWorld) -> None:
    task, start = kitchen.reset("test/0003-heat", 0)
    state = DecisionState("alfworld", "test/0003-heat", task, start)
    views = [kitchen.render(state)]
    for text in ("go to fridge 1", "open fridge 1", "look"):
        assert {a.text for a in kitchen.pool(state)} == set(state.observation.actions) - {"help"}
        assert all(kitchen.legal(action) for action in kitchen.pool(state))
        action = kitchen.canonical(text)
        state = DecisionState(
            state.environment,
            state.task_id,
            state.task,
            start,
            (*state.turns, Turn(action, kitchen.step(action).observation)),
        )
        views.append(kitchen.render(state))
    for earlier, later in pairwise(views):
        constant, _, commands = earlier.rpartition("Admissible commands: ")
        assert later.startswith(constant)
        assert commands.split("; ")
    beginning = f"Task: {task}\nObservation: {start.text}\nAction: go to fridge 1\nObservation: You arrive"
    assert views[-1].startswith(beginning)
    assert views[-1].splitlines()[-1] == "Admissible commands: " + "; ".join(state.observation.actions)


def test_briefing_names_every_command(kitchen: AlfWorld) -> None:
    for form in ("go to R", "take O from R", "move O to R", "heat O with R", "use O", "inventory", "Nothing happens."):
        assert form in kitchen.briefing()


def test_the_registry_makes_it_and_importing_it_is_light() -> None:
    assert isinstance(create("environments", "alfworld", {"games": "embedded"}), AlfWorld)
    assert set(parameters("environments", "alfworld")) == {"games", "seed"}
    code = (
        "import sys, harness.environments.alfworld as m; e = m.AlfWorld(); e.tasks('test'); e.briefing(); e.close();"
        "sys.exit(any(n in sys.modules for n in ('textworld', 'fast_downward', 'tatsu', 'numpy', 'alfworld')))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
