"""Codec: records to plain JSON and back, so that a ledger can be read without any plugin and years later.

A field that has its default is left out; an absent field has its default.  Nothing else is clever: an object per
record, names as in `harness.records`.  The converters are built once from the type hints, because a report reads tens
of thousands of steps.  NaN and infinity are refused on both sides: unknown is null with a reason beside it.  Text is
cleaned of lone surrogates on both sides, so that whoever reads a record can write it anywhere.
"""

from __future__ import annotations

import dataclasses
import json
import math
import types
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from harness.errors import UsageError
from harness.records import SCHEMA_VERSION, Episode

Convert = Callable[[Any], Any]
_MISSING = dataclasses.MISSING


class CodecError(ValueError):
    """A value that no record may hold, or a record that this version cannot read."""


def to_json(episode: Episode) -> dict[str, Any]:
    """An episode as a JSON object. Raises `CodecError` for NaN, infinity, or a value of a wrong type."""
    encoded: dict[str, Any] = _encode(Episode, episode)
    encoded["schema"] = episode.schema
    return encoded


def verify(kind: type, record: Any) -> None:
    """Raises `CodecError`, naming the field, when this part of an episode could not be stored."""
    _encode(kind, record)


def _encode(kind: type, record: Any) -> Any:
    try:
        return _encoder(kind)(record)
    except CodecError:
        raise
    except Exception as error:  # a stranger in a field (an array, say) may fail in its own way when looked at
        raise CodecError(f"{kind.__name__}: {type(error).__name__}: {error}") from error


def clean(text: str) -> str:
    """`text` itself, or with what UTF-8 cannot hold (lone surrogates) written out as `\\udcff`."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode(errors="backslashreplace").decode()
    return text


def from_json(data: Mapping[str, Any]) -> Episode:
    """The episode of `to_json`. Raises `CodecError` for another schema version or a damaged record."""
    schema = data.get("schema") if isinstance(data, Mapping) else None
    if schema != SCHEMA_VERSION:
        raise CodecError(f"record of schema {schema!r}; this version of cota-bench reads schema {SCHEMA_VERSION}")
    episode: Episode = _decoder(Episode)(data)
    return episode


def dump(value: Any) -> bytes:
    """Compact JSON bytes. Raises `CodecError` on NaN, infinity or what JSON cannot hold."""
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
    except UnicodeEncodeError:
        # Records are cleaned, other values may hold lone surrogates, which UTF-8 cannot: kept as JSON escapes.
        return json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":")).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise CodecError(f"not a JSON value: {error}") from error


def parse(data: bytes | str) -> Any:
    """A JSON value. Raises `CodecError` for broken JSON and for NaN or infinity."""

    def refuse(word: str) -> None:
        raise CodecError(f"{word} is no value of a record")

    try:
        return json.loads(data, parse_constant=refuse)
    except CodecError:
        raise
    except (ValueError, RecursionError) as error:  # syntax, encoding, a number of thousands of digits, nesting
        raise CodecError(f"broken JSON: {error}") from error


def _scalar(kinds: tuple[type, ...], where: str) -> Convert:
    exact = frozenset(kinds)

    def check(value: Any) -> Any:
        kind = type(value)
        if kind in exact and (kind is not float or math.isfinite(value)):  # nearly always
            return clean(value) if kind is str else value
        if isinstance(value, bool) and bool not in kinds:
            raise CodecError(f"{where}: {value!r} is no {kinds[0].__name__}")
        if isinstance(value, float) and not math.isfinite(value):
            raise CodecError(f"{where}: {value!r} is not finite; unknown is null")
        if not isinstance(value, kinds):
            hint = "; convert it with .item()" if hasattr(value, "item") else ""  # a NumPy scalar
            names = " or ".join(kind.__name__ for kind in kinds)
            raise CodecError(f"{where}: {type(value).__name__} where {names} belongs{hint}")
        return clean(value) if isinstance(value, str) else value

    return check


def _numbers(hint: Any) -> tuple[type, ...]:
    return (float, int) if hint is float else (hint,)


def _convert(hint: Any, where: str, nested: Callable[[type], Convert], sequence: type) -> Convert:
    """One converter; `nested` makes the one of a dataclass, `sequence` is what an array becomes."""
    origin, args = get_origin(hint), get_args(hint)
    if dataclasses.is_dataclass(hint) and isinstance(hint, type):
        return nested(hint)
    if origin in (Union, types.UnionType):
        return _optional(args, where, nested, sequence)
    if origin is Literal:
        return _choice(args, where)
    if origin is tuple:
        inner = _convert(args[0], where, nested, sequence)

        def many(value: Any) -> Any:
            if not isinstance(value, list | tuple):
                raise CodecError(f"{where}: {type(value).__name__} where a list belongs")
            return sequence([inner(item) for item in value])

        return many
    if origin is not None and issubclass(origin, Mapping):
        inner_value = _convert(args[1], where, nested, sequence)

        def mapping(value: Any) -> Any:
            if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
                raise CodecError(f"{where}: an object with string keys belongs here")
            return {clean(key): inner_value(item) for key, item in value.items()}

        return mapping
    if hint in (str, int, float, bool):
        return _scalar(_numbers(hint), where)
    raise TypeError(f"{where}: the codec knows no {hint!r}")


def _optional(args: tuple[Any, ...], where: str, nested: Callable[[type], Convert], sequence: type) -> Convert:
    rest = tuple(arg for arg in args if arg is not type(None))
    if all(arg in (str, int, float, bool) for arg in rest):
        inner = _scalar(tuple(kind for arg in rest for kind in _numbers(arg)), where)
    elif len(rest) == 1:
        inner = _convert(rest[0], where, nested, sequence)
    else:
        raise TypeError(f"{where}: the codec knows no union {args!r}")
    if len(rest) == len(args):
        return inner
    return lambda value: None if value is None else inner(value)


def _choice(options: tuple[Any, ...], where: str) -> Convert:
    def check(value: Any) -> Any:
        if value not in options:
            raise CodecError(f"{where}: {value!r} is none of {', '.join(map(str, options))}")
        return value

    return check


def _default(field: dataclasses.Field[Any]) -> Any:
    return field.default_factory() if field.default_factory is not _MISSING else field.default


@cache
def _encoder(kind: type) -> Convert:
    hints = get_type_hints(kind)
    parts = [
        (field.name, _convert(hints[field.name], f"{kind.__name__}.{field.name}", _encoder, list), _default(field))
        for field in dataclasses.fields(kind)
    ]

    def encode(record: Any) -> dict[str, Any]:
        if not isinstance(record, kind):
            raise CodecError(f"{type(record).__name__} where {kind.__name__} belongs")
        found = {}
        for name, convert, default in parts:
            value = getattr(record, name)
            if value is default:
                continue
            if default is _MISSING or value != default or type(value) is not type(default):
                found[name] = convert(value)
        return found

    return encode


@cache
def _decoder(kind: type) -> Convert:
    hints = get_type_hints(kind)
    parts = {
        field.name: _convert(hints[field.name], f"{kind.__name__}.{field.name}", _decoder, tuple)
        for field in dataclasses.fields(kind)
    }
    needed = {f.name for f in dataclasses.fields(kind) if _default(f) is _MISSING}

    def decode(data: Any) -> Any:
        if not isinstance(data, Mapping):
            raise CodecError(f"{type(data).__name__} where an object ({kind.__name__}) belongs")
        if not needed <= data.keys():
            raise CodecError(f"{kind.__name__} without {', '.join(sorted(needed - data.keys()))}")
        try:
            return kind(**{name: parts[name](value) for name, value in data.items()})
        except KeyError as error:
            raise CodecError(f"{kind.__name__} has no field {error}") from error

    return decode


def newer(schema: object, where: str) -> UsageError:
    """The message for a file of a schema that this version does not know."""
    return UsageError(
        f"{where} has schema {schema!r}; this version of cota-bench reads schema {SCHEMA_VERSION}. "
        "Read it with the version that wrote it, or upgrade cota-bench."
    )
