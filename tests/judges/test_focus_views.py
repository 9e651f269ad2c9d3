"""Focused views of ALFWorld and Retail: marks follow from what the player saw, in closed words, for both orders alike."""

from __future__ import annotations

from harness.environments.alfworld import AlfWorld
from harness.environments.retail import Retail
from harness.environments.retail.actions import make, say
from harness.protocols import Environment
from harness.records import Action, DecisionState, Turn
from methods.judges import focus, focus_alfworld, focus_retail

ALFWORLD = """\
Task: put a cool pot in cabinet.
Observation: You are in the middle of a room. Looking quickly around you, you see a cabinet 2, a cabinet 1, \
a fridge 1, a microwave 1, and a stoveburner 1.
Action: go to stoveburner 1
Observation: You arrive at stoveburner 1. On the stoveburner 1, you see a pot 1, and a pan 2.
Action: take pot 1 from stoveburner 1
Observation: You pick up the pot 1 from the stoveburner 1.
Action: go to fridge 1
Observation: You arrive at fridge 1. The fridge 1 is closed.
{more}Admissible commands: go to cabinet 1; cool pot 1 with fridge 1; look"""


def alfworld(more: str = "") -> str:
    return ALFWORLD.format(more=more)


def test_alfworld_tells_relations_and_names_nothing() -> None:
    view = alfworld()
    state = focus.focus_state(view)
    assert "need cool" in state
    assert "hold wanted raw" in state
    assert "here tool shut" in state
    assert focus.focus_action(view, "cool pot 1 with fridge 1") == "cool wanted raw needed"
    assert focus.focus_action(view, "heat pot 1 with microwave 1") == "heat wanted raw unneeded"
    assert focus.focus_action(view, "go to cabinet 1").startswith("go goal new with wanted raw")
    assert focus.focus_action(view, "go to stoveburner 1").startswith("go plain bare")
    for text in (state, focus.focus_action(view, "take pan 2 from stoveburner 1")):
        assert not {"pot", "pan", "cabinet", "fridge", "stoveburner"} & set(text.split())


def test_alfworld_sees_what_the_treatment_changed() -> None:
    cooled = alfworld("Action: cool pot 1 with fridge 1\nObservation: You cool the pot 1 using the fridge 1.\n")
    assert "hold wanted ready" in focus.focus_state(cooled)
    assert "to goal" in focus.focus_action(cooled, "move pot 1 to cabinet 1")
    assert focus.focus_action(cooled, "cool pot 1 with fridge 1").endswith("tried 1")


def test_a_refused_command_changes_nothing() -> None:
    refused = alfworld("Action: go to cabinet 2\nObservation: Nothing happens.\n")
    assert focus_alfworld.read(refused).here == "fridge 1"


def _after(env: Environment, task: str, actions: list[Action]) -> str:
    text, opening = env.reset(task, 0)
    state = DecisionState(env.name, task, text, opening)
    for action in actions:
        outcome = env.step(action)
        state = DecisionState(env.name, task, text, opening, (*state.turns, Turn(action, outcome.observation)))
    return env.render(state)


def test_alfworld_reads_the_real_environment() -> None:
    env = AlfWorld()
    try:
        task = env.tasks("train")[0]
        _, opening = env.reset(task, 0)
        going = next(text for text in opening.actions if text.startswith("go to"))
        view = _after(env, task, [Action(going, going)])
    finally:
        env.close()
    world = focus_alfworld.read(view)
    assert focus.closed(view)
    assert world.here == going.removeprefix("go to ")
    assert world.here in world.inside


def test_retail_reads_the_real_environment() -> None:
    env = Retail(tasks="tau2")
    ask = say("Could you please tell me your first and last name and your zip code?")
    view = _after(env, env.tasks("train")[0], [ask, make("list_all_product_types", {})])
    talk = focus_retail.read(view)
    assert focus.closed(view)
    assert "user unknown" in focus.focus_state(view)
    assert talk.speaker == "tool"
    assert focus.focus_action(view, "list_all_product_types({})").endswith("tried 1")
    assert focus.focus_action(view, ask.text).startswith("ask name zip")


RETAIL = """\
You are an agent.
Actions
respond(content)
Conversation
Customer: I would like to return the Sneakers.
Agent: I can return items 1234567890 for order #W1234567, payment method paypal_1. Do you confirm (yes/no)?
Customer: Yes.
Grounded so far
- user: ann_lee_1
- payment methods: paypal_1
- order #W1234567: delivered; items 1234567890, 1234567891
Changes made: none
Confirmation: the customer said yes to: I can return items 1234567890 for order #W1234567, payment method paypal_1. Do
Step 5, failed calls 0. Now the agent's next action."""


def _return(items: list[str]) -> str:
    args = {"order_id": "#W1234567", "item_ids": items, "payment_method_id": "paypal_1"}
    return make("return_delivered_order_items", args).text


def test_retail_tells_an_agreed_change_from_another_one() -> None:
    agreed = focus.focus_action(RETAIL, _return(["1234567890"]))
    other = focus.focus_action(RETAIL, _return(["1234567891"]))
    assert "answer yes agreed ids seen" in agreed
    assert "answer yes differs ids seen" in other
    assert "status fit" in agreed
    assert "writeagreeda" in focus.focus_versus(RETAIL, _return(["1234567890"]), _return(["1234567891"]))


def test_versus_turns_with_the_order() -> None:
    view = alfworld()
    one, other = "cool pot 1 with fridge 1", "go to cabinet 1"
    forth, back = (set(focus.focus_versus(view, *pair).split()) for pair in ((one, other), (other, one)))
    assert {word[:-1] + ("b" if word[-1] == "a" else "a") for word in forth} == back
