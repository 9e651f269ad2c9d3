"""Any episode survives its record, any JSON is an episode or a `CodecError`, and seeds are what they say."""

from __future__ import annotations

import contextlib
import dataclasses
import types
from collections.abc import Mapping
from functools import cache
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness import frames
from harness.bounds import bounded
from harness.codec import CodecError, clean, dump, from_json, parse, to_json
from harness.records import SCHEMA_VERSION, Episode
from harness.seeds import digest, seed_of

TEXT = st.text(st.characters(exclude_categories=("Cs",)), max_size=12)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=12,
)


@cache
def values_of(hint: Any) -> st.SearchStrategy[Any]:
    """Values of a field's type."""
    origin, args = get_origin(hint), get_args(hint)
    if dataclasses.is_dataclass(hint):
        return records_of(hint)
    if origin is Literal:
        return st.sampled_from(args)
    if origin in (Union, types.UnionType):
        return st.one_of(*(st.none() if arg is type(None) else values_of(arg) for arg in args))
    if origin is tuple:
        return st.lists(values_of(args[0]), max_size=2).map(tuple)
    if origin is not None and issubclass(origin, Mapping):
        return st.dictionaries(TEXT, values_of(args[1]), max_size=2)
    simple: dict[Any, st.SearchStrategy[Any]] = {
        str: TEXT,
        bool: st.booleans(),
        int: st.integers(),
        float: st.floats(allow_nan=False, allow_infinity=False),
    }
    return simple[hint]


@cache
def records_of(kind: Any) -> st.SearchStrategy[Any]:
    hints = get_type_hints(kind)
    parts = {field.name: values_of(hints[field.name]) for field in dataclasses.fields(kind)}
    if kind is Episode:
        parts["schema"] = st.just(SCHEMA_VERSION)
    return st.builds(kind, **parts)


@given(records_of(Episode))
def test_an_episode_survives_its_record(episode: Episode) -> None:
    body = to_json(episode)
    assert from_json(parse(dump(body))) == episode
    packed = memoryview(frames.pack({"k": episode.task_id}, body))
    (frame,) = frames.scan(packed)
    assert isinstance(frame, frames.Frame)
    assert frame.head == {"k": episode.task_id}
    assert from_json(frames.body(packed, frame)) == episode


@given(JSON, records_of(Episode), st.randoms(use_true_random=False))
def test_any_json_is_an_episode_or_refused(junk: Any, episode: Episode, chance: Any) -> None:
    body = to_json(episode)
    holder: Any = body
    while True:  # put the junk somewhere into the record
        keys = list(holder) if isinstance(holder, dict) else list(range(len(holder)))
        key = chance.choice(keys) if keys else None
        if key is None or not isinstance(holder[key], dict | list) or chance.random() < 0.4:
            break
        holder = holder[key]
    if isinstance(holder, dict):
        holder[key if key is not None else "odd"] = junk
    elif holder:
        holder[key] = junk
    for value in (body, junk):
        with contextlib.suppress(CodecError):
            assert isinstance(from_json(value), Episode)


@given(st.binary(max_size=40) | st.text(max_size=40))
def test_bytes_are_a_value_or_refused(raw: bytes | str) -> None:
    try:
        value = parse(raw)
    except CodecError:
        return
    assert parse(dump(value)) == value


@pytest.mark.parametrize("raw", [b"[" * 100_000, b'{"a":' * 100_000, b"9" * 6000, b"\xff", b"NaN", b"[1e999, Infinity]"])
def test_known_horrors_are_refused(raw: bytes) -> None:
    with pytest.raises(CodecError):
        parse(raw)


@given(st.text(max_size=30), st.integers(min_value=2, max_value=200))
def test_text_is_cleaned_and_bounded_once(text: str, limit: int) -> None:
    clean(text).encode()
    assert clean(clean(text)) == clean(text)
    long = text * 20
    cut = bounded(long, limit)
    assert len(cut) <= limit + 80
    assert bounded(cut, limit) == cut
    assert (cut == long) == (len(long) <= limit + 80)


Part = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT


@given(st.dictionaries(st.from_regex("[a-z_]{1,8}", fullmatch=True), Part, min_size=1, max_size=5), st.data())
def test_seeds_depend_on_names_and_values_alone(parts: dict[str, Any], data: st.DataObject) -> None:
    seed = seed_of(**parts)
    assert 0 <= seed < 2**63
    assert seed == seed_of(**dict(reversed(parts.items())))
    assert digest(parts) == digest(dict(reversed(parts.items())))
    name = data.draw(st.sampled_from(sorted(parts)))
    other = data.draw(Part)
    if repr(parts[name]) != repr(other):
        assert seed_of(**{**parts, name: other}) != seed
