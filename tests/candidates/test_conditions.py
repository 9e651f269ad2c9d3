"""Decision conditions: which states are alike, and how an action moves from one to the other or is turned away."""

from __future__ import annotations

import json
import random

import pytest

from methods.candidates.conditions import Unbindable
from methods.candidates.conditions.alfworld import AlfWorldCondition, situation, task_type
from methods.candidates.conditions.retail import RetailCondition
from methods.candidates.conditions.webshop import WebShopCondition
from tests.candidates.helpers import state_of

CHANCE = random.Random(0)
RESULTS = ["click[back to search]", "click[next >]", "click[b09cq45zrb]", "click[b09gvjbprr]"]
ITEM = ["click[back to search]", "click[< prev]", "click[buy now]", "click[red]", "click[small]", "click[large]"]


def shop(*story: tuple[str, str], actions: list[str], task: str = "i need a small red shirt") -> object:
    return state_of("webshop", task, "start", *story, actions=actions)


def test_webshop_pages_and_rebinding() -> None:
    condition = WebShopCondition()
    there = shop(("search[shirt]", "results"), actions=RESULTS)
    here = shop(actions=[*RESULTS[:2], "click[b000000001]", "click[b000000002]"])
    assert condition.keys(there) == condition.keys(here) == ("results",)  # type: ignore[arg-type]
    second = condition.abstract("click[B09GVJBPRR]", there)  # type: ignore[arg-type]
    assert condition.bind(second, here, CHANCE) == "click[b000000002]"  # type: ignore[arg-type]
    with pytest.raises(Unbindable, match="no product at that rank"):
        condition.bind("product:7", here, CHANCE)  # type: ignore[arg-type]


def test_webshop_options_prefer_what_the_instruction_names() -> None:
    condition = WebShopCondition()
    item = shop(actions=ITEM)
    template = condition.abstract("click[large]", item)  # type: ignore[arg-type]
    found = {condition.bind(template, item, random.Random(i)) for i in range(20)}  # type: ignore[arg-type]
    assert found == {"click[red]", "click[small]"}
    assert condition.keys(item)[0] == "item/fresh"  # type: ignore[arg-type]
    chosen = shop(("click[b09cq45zrb]", "item"), ("click[red]", "item"), actions=ITEM)
    assert condition.keys(chosen)[0] == "item/chosen"  # type: ignore[arg-type]
    with pytest.raises(Unbindable, match="no option"):
        condition.bind(template, shop(actions=RESULTS), CHANCE)  # type: ignore[arg-type]


def test_webshop_queries_are_made_of_the_instruction_at_hand() -> None:
    condition = WebShopCondition()
    there = shop(actions=[], task="Find me red wool socks for men, and price lower than 20.00 dollars")
    template = condition.abstract("search[red wool socks]", there)  # type: ignore[arg-type]
    here = shop(actions=[], task="I am looking for a blue desk lamp, and price lower than 9.00 dollars")
    assert condition.bind(template, here, CHANCE) == "search[blue desk lamp]"  # type: ignore[arg-type]
    assert condition.bind("search:9", here, CHANCE) == "search[blue desk lamp]"  # type: ignore[arg-type]


HOUSE = "You are in the middle of a room. Your task is to: put a clean mug in coffeemachine."


def test_alfworld_situation_and_task_types() -> None:
    state = state_of(
        "alfworld",
        HOUSE,
        "room",
        ("go to countertop 1", "On the countertop 1, you see a mug 2."),
        ("take mug 2 from countertop 1", "You pick up the mug 2 from the countertop 1."),
        ("go to sinkbasin 1", "Nothing happens."),
    )
    assert situation(state) == ("countertop 1", "mug 2")
    assert AlfWorldCondition().keys(state) == ("clean/target/countertop", "clean/target", "target")
    goals = {
        "put a hot apple in fridge": "heat",
        "cool some bread and put it in countertop": "cool",
        "put two cd in safe": "two",
        "look at bowl under the desklamp": "look",
        "put some pencil on desk": "pick",
    }
    for goal, kind in goals.items():
        assert task_type(state_of("alfworld", f"Your task is to: {goal}.", "room")) == kind


def test_alfworld_binding_is_an_admissible_command_of_the_same_form() -> None:
    condition = AlfWorldCondition()
    there = state_of("alfworld", HOUSE, "room", ("go to shelf 3", "On the shelf 3, you see a mug 1, a plate 1."))
    here = state_of(
        "alfworld",
        "Your task is to: put a clean plate in cabinet.",
        "room",
        ("go to table 1", "On the table 1, you see a plate 4, a mug 9."),
        actions=["go to shelf 1", "take plate 4 from table 1", "take mug 9 from table 1", "examine table 1"],
    )
    wanted = condition.abstract("take mug 1 from shelf 3", there)
    assert wanted == "take {wanted} from {here}"
    assert condition.bind(wanted, here, CHANCE) == "take plate 4 from table 1"
    with pytest.raises(Unbindable, match="nothing held"):
        condition.bind("clean {held} with {kind:sinkbasin}", here, CHANCE)
    with pytest.raises(Unbindable, match="nothing here fits"):
        condition.bind("go to {kind:fridge}", here, CHANCE)
    with pytest.raises(Unbindable, match="not at a place"):
        condition.bind("examine {here}", state_of("alfworld", HOUSE, "room"), CHANCE)


def call(name: str, **args: object) -> str:
    return f"{name}({json.dumps(args)})"


USER = {
    "user_id": "ann_lee_1",
    "name": {"first_name": "Ann", "last_name": "Lee"},
    "payment_methods": {"paypal_77": {"source": "paypal"}},
    "orders": ["#W1000001", "#W1000002"],
}
ORDER = {
    "order_id": "#W1000001",
    "status": "pending",
    "items": [{"item_id": "1111111111", "product_id": "9"}, {"item_id": "2222222222", "product_id": "8"}],
}
PRODUCT = {"product_id": "9", "variants": {"1111111111": {"available": True}, "3333333333": {"available": True}}}
KNOWN = [
    (call("find_user_id_by_email", email="ann@x.org"), "ann_lee_1"),
    (call("get_user_details", user_id="ann_lee_1"), json.dumps(USER)),
]
LOOKED = [*KNOWN, (call("get_order_details", order_id="#W1000001"), json.dumps(ORDER))]
ASKED = call("respond", content="I will cancel order #W1000001. Do you confirm (yes/no)?")
CANCEL = call("cancel_pending_order", order_id="#W7654321", reason="no longer needed")


def chat(*turns: tuple[str, str], opening: str = "Customer: Hi, I am Ann Lee, ann@x.org.") -> object:
    return state_of("retail", "serve", opening, *turns)


def bind(action: str, state: object) -> str:
    condition = RetailCondition()
    return condition.bind(condition.abstract(action, state), state, random.Random(1))  # type: ignore[arg-type]


def test_retail_reads_are_rebound_to_what_is_known() -> None:
    start = chat()
    assert bind(call("find_user_id_by_email", email="bob@y.org"), start) == call(
        "find_user_id_by_email", email="ann@x.org"
    )
    with pytest.raises(Unbindable, match="no zip known"):
        bind(call("find_user_id_by_name_zip", first_name="B", last_name="C", zip="10000"), start)
    assert bind(call("get_user_details", user_id="z"), chat(*KNOWN)) == call("get_user_details", user_id="ann_lee_1")
    unseen = bind(call("get_order_details", order_id="#W9999999"), chat(*LOOKED))
    assert unseen == call("get_order_details", order_id="#W1000002")  # the one not looked up yet
    with pytest.raises(Unbindable, match="no product known"):
        bind(call("get_product_details", product_id="5"), chat(*KNOWN))


def test_retail_nothing_personal_before_identification() -> None:
    for action in (call("get_order_details", order_id="#W1"), call("get_user_details", user_id="u"), CANCEL):
        with pytest.raises(Unbindable, match="not identified"):
            bind(action, chat(opening="Customer: Cancel #W1000001 please."))


def test_retail_no_write_before_the_customer_confirmed() -> None:
    with pytest.raises(Unbindable, match="has not confirmed"):
        bind(CANCEL, chat(*LOOKED))
    with pytest.raises(Unbindable, match="has not confirmed"):
        bind(CANCEL, chat(*LOOKED, (ASKED, "Customer: No, wait.")))
    confirmed = chat(*LOOKED, (ASKED, "Customer: Yes, please go ahead."))
    assert bind(CANCEL, confirmed) == call("cancel_pending_order", order_id="#W1000001", reason="no longer needed")
    done = chat(*LOOKED, (ASKED, "Customer: Yes."), (CANCEL, json.dumps(ORDER | {"status": "cancelled"})))
    with pytest.raises(Unbindable, match="has not confirmed"):
        bind(CANCEL, done)


def test_retail_writes_need_an_order_in_the_right_status_and_items_of_it() -> None:
    product = (call("get_product_details", product_id="9"), json.dumps(PRODUCT))
    confirmed = chat(*LOOKED, product, (ASKED, "Customer: Yes."))
    with pytest.raises(Unbindable, match="no delivered order"):
        bind(call("return_delivered_order_items", order_id="#W1", item_ids=["5"], payment_method_id="p"), confirmed)
    swap = call(
        "modify_pending_order_items", order_id="#W1", item_ids=["5"], new_item_ids=["6"], payment_method_id="paypal_1"
    )
    found = {attempt(swap, confirmed, seed) for seed in range(12)}
    args = {
        "order_id": "#W1000001",
        "item_ids": ["1111111111"],
        "new_item_ids": ["3333333333"],
        "payment_method_id": "paypal_77",
    }
    # The order's other item is of a product that was not looked up, so no variant of it is known.
    assert {text if text.startswith("no") else json.dumps(arguments(text), sort_keys=True) for text in found} == {
        "no available variant known",
        json.dumps(args, sort_keys=True),
    }


def attempt(action: str, state: object, seed: int) -> str:
    condition = RetailCondition()
    try:
        return condition.bind(condition.abstract(action, state), state, random.Random(seed))  # type: ignore[arg-type]
    except Unbindable as error:
        return str(error)


def arguments(text: str) -> object:
    return json.loads(text[text.index("(") + 1 : -1])


def test_retail_messages_travel_only_without_particulars() -> None:
    plain = call("respond", content="Could you please tell me your email?")
    assert bind(plain, chat()) == plain
    with pytest.raises(Unbindable, match="particulars"):
        bind(ASKED, chat())


def test_retail_phases() -> None:
    condition = RetailCondition()
    assert condition.keys(chat()) == ("unknown/none/customer", "unknown/none")  # type: ignore[arg-type]
    assert condition.keys(chat(*LOOKED))[0] == "known/none/get_order_details"  # type: ignore[arg-type]
    asked = chat(*LOOKED, (ASKED, "Customer: Hm, what would it cost?"))
    assert condition.keys(asked)[1] == "known/asked"  # type: ignore[arg-type]
    failed = chat((call("find_user_id_by_email", email="x@y.z"), "Error: User not found"))
    assert condition.keys(failed)[0] == "unknown/none/error"  # type: ignore[arg-type]
