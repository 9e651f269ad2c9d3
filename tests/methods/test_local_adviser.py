"""The local adviser: words of a real small model, bounded, the same for the same question, in time or not at all."""

from __future__ import annotations

import time

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

from harness.models.errors import ModelTimeout
from methods.advisers.local import LocalAdviser

SYSTEM = "You are a critic. Say in one sentence what is wrong with the action."


@pytest.fixture(scope="module")
def adviser() -> LocalAdviser:
    return LocalAdviser(max_tokens=8, max_prompt=96)


def test_a_long_view_loses_its_middle_and_nothing_else(adviser: LocalAdviser) -> None:
    short, usage = adviser.feedback(SYSTEM, "Task: buy red shoes. Action: click[Blue].", 0, None)
    assert short
    assert usage.calls == 1
    assert usage.completion is not None
    assert 0 < usage.completion <= 8
    again, _ = adviser.feedback(SYSTEM, "Task: buy red shoes. Action: click[Blue].", 0, None)
    assert again == short
    _, bounded = adviser.feedback(SYSTEM, "Task: buy red shoes. " + "The page is long. " * 400, 0, None)
    assert bounded.prompt == 96


def test_an_answer_too_late_is_none(adviser: LocalAdviser) -> None:
    with pytest.raises(ModelTimeout):
        adviser.feedback(SYSTEM, "Task.", 0, time.monotonic() - 1)
