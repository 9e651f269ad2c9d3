"""The episode viewer: what it finds, what it prints, and that nothing in a record can steer the terminal."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from harness.codec import from_json
from harness.errors import UsageError
from harness.records import Action, Episode
from harness.show import Wanted, as_json, cut, find, one, show, visible, wanted_of
from tests.synthetic import episodes_of, make_episode, planned_cells, write_ledger


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    cells = planned_cells(methods=("origin", "cota"), environments=("webshop", "retail"), tasks=3)
    return write_ledger(tmp_path / "demo", episodes_of(cells))


def printed(episode: Episode, *, full: bool = False, colour: bool = False) -> str:
    out = io.StringIO()
    show(episode, Console(file=out, width=120, force_terminal=colour), full=full)
    return out.getvalue()


def rich_episode() -> Episode:
    """A cota episode in which the gate fired at least once and every answer is known."""
    (cell,) = planned_cells(methods=("cota",), actors=("strong",), environments=("retail",), seeds=(0,), tasks=1)
    return make_episode(cell, "retail-0", steps=12)


def test_by_labels(folder: Path) -> None:
    found = one(folder, Wanted(method="cota", actor="strong", environment="retail", seed=1, task="retail-2"))
    assert (found.method, found.actor, found.seed, found.task_id) == ("cota", "strong", 1, "retail-2")
    assert len(find(folder, Wanted(method="cota", environment="retail"))) == 12


def test_by_prefix_of_the_cell(folder: Path) -> None:
    cell = find(folder, Wanted(method="origin", actor="weak", environment="webshop", seed=0, task="webshop-1"))[0].cell
    assert one(folder, Wanted(cell=cell[:8], task="webshop-1")).cell == cell
    assert one(folder, wanted_of(f"{cell[:6]}:webshop-1", folder)).cell == cell


def test_words_of_a_person(folder: Path) -> None:
    assert wanted_of("webshop-1", folder) == Wanted(task="webshop-1")
    labels = wanted_of("cota/strong/retail/1/retail-2", folder)
    assert labels == Wanted(None, "retail-2", "cota", "strong", "retail", 1)
    assert wanted_of("nonsense", folder) == Wanted(task="nonsense")
    assert wanted_of("a/b/c/0/d/e:f", folder).task == "d/e:f"


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        (Wanted(method="coat"), "There is no method 'coat'. Nearest: cota"),
        (Wanted(task="retail-9"), "There is no task 'retail-9'. Nearest: retail-"),
        (Wanted(cell="zz"), "There is no cell 'zz'"),
        (Wanted(seed=7), "There is no seed 7"),
        (Wanted(environment="webshop", task="retail-1"), "Each part exists, but not together"),
        (Wanted(task="retail-1"), "8 episodes fit"),
    ],
)
def test_messages(folder: Path, wanted: Wanted, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        one(folder, wanted)
    assert said in str(caught.value)


def test_no_ledger(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no ledger"):
        one(tmp_path, Wanted())
    write_ledger(tmp_path / "empty", [])
    with pytest.raises(UsageError, match="no episode yet"):
        one(tmp_path / "empty", Wanted())


def test_everything_of_a_step_is_shown() -> None:
    episode = rich_episode()
    text = printed(episode)
    reviews = [review for step in episode.steps for review in step.reviews]
    fired = [review for review in reviews if review.fired]
    assert fired
    assert text.count("gate  fired") == len(fired)
    assert text.count("gate  held") == len(reviews) - len(fired)
    assert text.count("A/B wins") == len(fired)
    assert text.count("T/· no win") == len(reviews)
    for answer in ("adopt", "keep", "novel"):
        assert text.count(f"answer {answer}") == sum(review.response == answer for review in reviews)
    assert text.count("fail open: tie") == sum(bool(review.fail_open) for review in reviews)
    for word in ("sees", "thinks", "says", "advice", "told", "does", "simulated: actor, user", "step 11"):
        assert word in text
    assert "Do retail-0." in text
    assert "waited 0.05 s" in text
    assert f"{len(reviews)} reviews, {len(fired)} fired" in text


def test_failed_unscored_and_unknown_usage() -> None:
    base = rich_episode()
    text = printed(replace(base, status="failed", boundary="simulator", reason="it hung", reward=None, success=None))
    assert "broke: simulator" in text
    assert "it hung" in text
    assert "reward none: failed is no score" in text
    assert "cannot be scored here" in printed(replace(base, reward=None, success=None))
    usage = {"actor": replace(base.usage["actor"], prompt=None)}
    assert "unknown prompt and 80 completion" in printed(replace(base, usage=usage))
    assert "no success" in printed(replace(base, reward=0.2, success=False))


def test_long_text_is_cut_and_said() -> None:
    assert cut("x" * 100, 10) == "x" * 10 + " ... (90 more characters)"
    base = rich_episode()
    long = replace(base, steps=(replace(base.steps[0], observation="y" * 5000),))
    assert "(4400 more characters)" in printed(long)
    assert "more characters" not in printed(long, full=True)


def test_model_text_cannot_steer_the_terminal() -> None:
    evil = "\x1b[31mred\x1b]8;;http://x\x07 [bold]big[/bold] [link=http://x]y[/link] \u202eback\r\x00\x9b2J [/nope]"
    base = rich_episode()
    step = base.steps[0]
    review = replace(
        step.reviews[0],
        thought=evil,
        message=evil,
        fail_open=(evil,),
        recommended=(Action(evil, evil),),
        proposal=Action(evil, "x"),
    )
    bad = replace(step, observation=evil, thought=evil, executed=Action(evil, "x"), reviews=(review,))
    episode = replace(base, task=evil, reason=evil, final_observation=evil, steps=(bad,), info={evil: evil})
    text = printed(episode, full=True)
    assert "\x1b" not in text
    assert "\x07" not in text
    assert "\u202e" not in text
    assert "[bold]big[/bold]" in text
    assert "\\x1b[31mred" in text
    coloured = printed(episode, full=True, colour=True)
    assert "\x1b]8" not in coloured
    assert "\x9b" not in coloured
    assert visible("\ud800") == "\\ud800"


def test_json_is_the_record() -> None:
    episode = rich_episode()
    assert from_json(json.loads(as_json(episode))) == episode
    assert "\x1b" not in as_json(replace(episode, task="\x1b[31m"))
