"""Rows against counts made from the records themselves, another way."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from harness.records import Episode, Review, Usage
from harness.rows import FIELDS, episode_row, failed_open, winners
from tests.synthetic import make_episode, planned_cells


def episode() -> Episode:
    (cell,) = planned_cells(methods=("cota",), actors=("strong",), environments=("retail",), seeds=(0,), tasks=1)
    return make_episode(cell, "retail-0", steps=20)


def test_every_field_in_order_and_of_its_kind() -> None:
    row = episode_row(episode())
    assert list(row) == [name for name, _, _ in FIELDS]
    kinds = {"str": str, "int": int, "float": float, "bool": bool}
    for name, kind, meaning in FIELDS:
        assert meaning
        assert row[name] is None or type(row[name]) is kinds[kind], name


def test_counts() -> None:
    found = episode()
    reviews = [review for step in found.steps for review in step.reviews]
    row = episode_row(found)
    assert row["reviews"] == 20
    assert row["fired"] == row["replans"] == sum(review.fired for review in reviews) > 0
    assert row["adopt"] == [review.response for review in reviews].count("adopt")
    assert row["keep"] == [review.response for review in reviews].count("keep")
    assert row["novel"] == [review.response for review in reviews].count("novel")
    assert row["winners"] == sum(vote.won for review in reviews for vote in review.votes)
    assert row["candidates"] == 40
    assert row["comparisons"] == 80
    assert row["fail_opens"] == sum(bool(review.fail_open) and not review.fired for review in reviews)
    assert json.loads(str(row["fail_open_causes"])) == {"tie": sum(len(review.fail_open) for review in reviews)}
    assert row["actor_prompt"] == 900
    assert row["advisor_calls"] == 40
    assert row["simulator_prompt"] == 0
    assert row["simulated"] == "actor,user"
    assert row["actor_s"] == 0.4


def test_working_time_leaves_waiting_out() -> None:
    usage = {"actor": Usage(waited_s=1.5), "environment": Usage(waited_s=0.25)}
    row = episode_row(replace(episode(), wall_s=4.0, usage=usage))
    assert (row["wall_s"], row["waited_s"], row["work_s"]) == (4.0, 1.75, 2.25)
    assert episode_row(replace(episode(), wall_s=1.0, usage=usage))["work_s"] == 0.0


def test_unknown_is_not_zero() -> None:
    row = episode_row(replace(episode(), usage={"actor": Usage(3, None, 5)}))
    assert row["actor_prompt"] is None
    assert row["actor_completion"] == 5


@pytest.mark.parametrize(
    ("status", "reward", "expected"),
    [
        ("done", 0.5, "scored"), ("truncated", 0.0, "scored"), ("done", None, "unscored"), ("truncated", None, "unscored"),
        ("failed", None, "error"), ("timeout", None, "error"), ("unparsed", None, "error"), ("skipped", None, "skipped"),
    ],
)  # fmt: skip
def test_outcome(status: str, reward: float | None, expected: str) -> None:
    changed = replace(episode(), status=status, reward=reward, info={"unscored": "judge"})  # type: ignore[arg-type]
    row = episode_row(changed)
    assert row["outcome"] == expected
    assert row["unscored_why"] == ("judge" if reward is None else "")


def test_best_reward_is_over_the_steps() -> None:
    found = episode()
    steps = tuple(replace(step, reward=reward) for step, reward in zip(found.steps, [0.1, 0.9, None], strict=False))
    assert episode_row(replace(found, steps=steps, reward=0.2))["best_reward"] == 0.9
    assert episode_row(replace(found, steps=(), reward=None))["best_reward"] is None


def test_fail_open_and_winners() -> None:
    assert failed_open(("tie",), False)
    assert not failed_open(("tie",), True)
    assert failed_open(("replan_limit",), True)
    assert not failed_open((), False)
    assert winners([True, False, True], ()) == 2
    assert winners((), (0.5, 0.6, None, 0.5, 0.9)) == 2
    assert winners((), (None, 0.6)) == 0
    scored = replace(episode().steps[0], reviews=(Review(episode().steps[0].executed, scores=(0.1, 0.3, 0.05)),))
    assert episode_row(replace(episode(), steps=(scored,)))["winners"] == 1


def test_tokens_by_kind() -> None:
    spent = Usage(4, 1000, 90, cached=300, reasoning=40, saved_prompt=250, saved_completion=20)
    row = episode_row(replace(episode(), usage={"actor": spent, "advisor": Usage(1, None, None, cached=None)}))
    assert [row[f"actor_{kind}"] for kind in ("cached", "reasoning", "saved_prompt", "saved_completion")] == [
        300,
        40,
        250,
        20,
    ]
    assert (row["advisor_cached"], row["simulator_saved_prompt"]) == (None, 0)
