"""Records survive JSON exactly; what cannot be believed is refused."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.codec import CodecError, dump, from_json, parse, to_json
from harness.records import Episode, Usage
from tests.grid.samples import episode

numbers = st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(2**60), 2**60).map(float)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
anything = st.text(st.characters(exclude_categories=[]), max_size=40)


def through(item: Episode) -> Episode:
    return from_json(parse(dump(to_json(item))))


def test_round_trip_of_a_full_record():
    assert through(episode()) == episode()


@given(thought=texts, reward=st.none() | numbers, info=st.dictionaries(texts, texts | numbers | st.booleans()),
       counts=st.lists(st.none() | st.integers(0, 2**50), min_size=4, max_size=4), wall=numbers)  # fmt: skip
@settings(max_examples=150, deadline=None)
def test_round_trip_of_anything(thought, reward, info, counts, wall):
    step = replace(episode().steps[0], thought=thought, reward=reward)
    item = episode(steps=(step,), info=info, usage={"simulator": Usage(1, *counts)}, wall_s=wall, task=thought)
    assert through(item) == item


@given(text=anything)
@settings(max_examples=100, deadline=None)
def test_text_comes_back_so_that_it_can_be_written_anywhere(text):
    raw = episode(reason=text, info={text: text})
    stored = through(raw)
    stored.reason.encode()
    assert stored.info == {stored.reason: stored.reason}
    assert through(stored) == stored
    # A record of an older version may hold such text as JSON escapes.
    assert from_json(to_json(episode()) | {"reason": text}).reason == stored.reason


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_no_nan_on_either_side(value):
    with pytest.raises(CodecError, match="finite"):
        to_json(episode(reward=value))
    with pytest.raises(CodecError, match="finite"):
        to_json(episode(info={"x": value}))
    with pytest.raises(CodecError):
        parse(f'{{"reward": {"NaN" if math.isnan(value) else "-Infinity"}}}')


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"schema": 99}, "schema 99"),
        ({"surprise": 1}, "no field 'surprise'"),
        ({"status": "great"}, "'great' is none of"),
        ({"seed": "0"}, "Episode.seed"),
        ({"seed": True}, "Episode.seed"),
        ({"steps": "x"}, "list"),
        ({"usage": {"actor": {"calls": 0.5}}}, "Usage.calls"),
    ],
)
def test_a_damaged_record_is_refused(change, said):
    with pytest.raises(CodecError, match=said):
        from_json(to_json(episode()) | change)


def test_a_missing_field_is_refused_and_a_default_may_be_missing():
    data = to_json(episode(info={}))
    assert "info" not in data
    del data["task_id"]
    with pytest.raises(CodecError, match="without task_id"):
        from_json(data)
