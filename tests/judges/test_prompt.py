"""Prompts: the contract's wording, stable prefixes, deterministic cuts, a user's own file, focused views."""

from __future__ import annotations

import pytest

from harness.errors import UsageError
from methods.judges.focus import facts, focus_action, focus_state, focus_versus, words
from methods.judges.prompt import FOCUSED, PRESETS, Encoder, Prompt, load_prompt, shorten
from tests.training.helpers import COLOURS, tiny_comparator, view_of

WEBSHOP = """Request: I want women's shorts with slim fit with color: rose, and price lower than 130.00 dollars
Steps so far:
1. search[slim fit shorts] -> results page 1, 39 found
2. click[b00aaaaaa1] -> product page: Men's Tee | Price: $152.1
3. click[< prev] -> results page 1, 39 found
Page now: results page 1, 39 found
B00AAAAAA1 | Men's Tee - Elastic Waist | $152.1
B00AAAAAA2 | Women's Short - Slim Fit | $52.1
Possible actions: click[back to search], click[b00aaaaaa1], click[b00aaaaaa2]"""
RETAIL = """You are the customer service agent of an online shop.
Conversation
Customer: Please cancel order #W42.
Agent calls get_order_details({"order_id": "#W42"})
Tool: order #W42 pending: lamp
Grounded so far
- user: ann_1"""


def test_state_comes_first_and_one_letter_is_demanded() -> None:
    prompt = Prompt()
    assert prompt.prefix("VIEW").rstrip().endswith("VIEW")
    text = prompt.pair("VIEW", "{second} x", "two")
    assert text.index("{second} x") < text.index("two")
    assert text.endswith("(A, B or T)?")
    assert "VIEW" not in text


def test_placeholders_inside_actions_are_left_alone() -> None:
    assert "say {second}" in Prompt().pair("v", "say {second}", "say {first}")
    assert "say {first}" in Prompt().pair("v", "say {second}", "say {first}")


def test_webshop_focus() -> None:
    seen = facts(WEBSHOP)
    assert seen.done == ("search[slim fit shorts]", "click[b00aaaaaa1]", "click[< prev]")
    assert focus_action(WEBSHOP, "click[b00aaaaaa2]") == "click[b00aaaaaa2] | near 4 cheap"
    assert focus_action(WEBSHOP, "click[b00aaaaaa1]") == "click[b00aaaaaa1] | tried 1 dear"
    assert "open women with rose" not in focus_state(WEBSHOP)
    assert "rose" in focus_state(WEBSHOP).split("| open ")[1].split("|")[0]


def test_what_sets_two_candidates_apart() -> None:
    assert focus_versus(WEBSHOP, "click[b00aaaaaa1]", "click[b00aaaaaa2]") == "near B | tried A | dear A | cheap B"
    assert focus_versus(WEBSHOP, "click[b00aaaaaa2]", "click[b00aaaaaa1]") == "near A | tried B | dear B | cheap A"
    assert focus_versus(WEBSHOP, "click[x]", "click[y]") == ""
    assert Prompt(candidates="{versus}{first}{second}", style="focused").pair(WEBSHOP, "a", "b") == "ab"


def test_retail_focus() -> None:
    assert facts(RETAIL).goals == ("Please cancel order #W42.",)
    asked = RETAIL + "\nAgent: Could you tell me your zip code?\nCustomer: It is 85025."
    action = 'respond({"content": "Could you tell me your zip code?"})'
    assert "tried 1" in focus_action(asked, action)
    assert "tried" not in focus_action(RETAIL, action)
    assert "match 2" in focus_action(RETAIL, 'cancel #w42({"order_id": "#W42"})')


@pytest.mark.parametrize("view", ["", "\n\n", "Request:", "Action: x", "no labels at all", "Possible actions: a, b"])
def test_focus_takes_any_text(view: str) -> None:
    assert focus_state(view).startswith("goal")
    assert focus_action(view, "click[x]").startswith("click[x]")
    assert isinstance(focus_action(view, ""), str)


def test_words() -> None:
    assert words("Women's brushes, 8.5 dresses!") == ["women", "brush", "8.5", "dress"]


def test_own_prompt_file(tmp_path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("system: Judge.\nstate: '{state}'\ncandidates: ' {first} or {second}?'\n")
    assert load_prompt(str(path)).pair("v", "a", "b") == " a or b?"
    for text, part in [
        ("sytem: x", "Did you mean 'system'"),
        ("candidates: '{first}'", "{second} exactly once"),
        ("state: '{state} and more'", "must end with {state}"),
        ("style: tiny", "unknown style"),
        ("- a", "must be a mapping"),
    ]:
        path.write_text(text)
        with pytest.raises(UsageError, match=part.replace("{", "\\{")):
            load_prompt(path)
    with pytest.raises(UsageError, match="Did you mean 'focused'"):
        load_prompt("focussed")


def test_prompts_travel_with_their_artefact(tmp_path) -> None:
    for prompt in PRESETS.values():
        prompt.save(tmp_path)
        assert load_prompt(tmp_path) == prompt


def test_cut_is_deterministic_and_stays_put_while_a_view_grows() -> None:
    ids = list(range(5000))
    assert shorten(ids[:100], 100) == (ids[:100], 0)
    cuts, fronts = [], set()
    for length in range(1000, 1400, 10):
        kept, cut = shorten(ids[:length], 900)
        assert len(kept) == length - cut <= 900
        assert kept[-1] == length - 1
        assert kept[: 900 // 4] == ids[: 900 // 4]
        cuts.append(cut)
        fronts.add(tuple(kept[:600]))
    assert sorted(set(cuts)) == [256, 512]
    assert len(fronts) == 2  # so a kept cache is good for all but one of the steps
    assert len(shorten(ids, 20)[0]) <= 20


@pytest.mark.models
def test_prefix_tokens_are_stable_and_independent_of_candidates() -> None:
    pytest.importorskip("transformers")
    for prompt in (Prompt(), FOCUSED):
        _, tokenizer, encoder = tiny_comparator(prompt=prompt)
        view = view_of("red", list(COLOURS), ["click[red]"])
        assert encoder.prefix(view) == encoder.prefix(view)
        whole = encoder.prefix(view) + encoder.pair(view, "click[red]", "click[blue]")
        assert all(isinstance(token, int) for token in whole)
        assert len(set(encoder.letters())) == 3
    longer = view + "\n2. click[blue] -> option chosen"
    short, grown = Encoder(tokenizer, Prompt()).prefix(view), Encoder(tokenizer, Prompt()).prefix(longer)
    assert grown[: len(short)] == short
