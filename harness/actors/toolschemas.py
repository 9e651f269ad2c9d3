"""Tool schemas: native tool definitions from an environment's action schemas `name({"key": type}) - what it does`."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

_SCHEMA = re.compile(r"\A(\w+)\(\{(.*?)\}\)(?:\s*-\s*(.*))?\Z", re.DOTALL)
_KEY = re.compile(r'"(\w+)":\s*(\[?)(\w+)\]?')
_TYPES = {"string", "number", "integer", "boolean", "object"}


@lru_cache(maxsize=64)
def native_tools(schemas: tuple[str, ...], leave_out: tuple[str, ...] = ("respond",)) -> tuple[dict[str, Any], ...]:
    """OpenAI tool definitions; schemas of another form are left out, as are those named."""
    return tuple(tool for tool in _tools(schemas) if tool["function"]["name"] not in leave_out)


def _tools(schemas: Iterable[str]) -> Iterable[dict[str, Any]]:
    for schema in schemas:
        found = _SCHEMA.match(schema.strip())
        if found is None:
            continue
        name, keys, summary = found.groups()
        properties = {key: _type(bool(many), kind) for key, many, kind in _KEY.findall(keys)}
        parameters = {"type": "object", "properties": properties, "required": sorted(properties)}
        yield {
            "type": "function",
            "function": {"name": name, "description": (summary or "").strip(), "parameters": parameters},
        }


def _type(many: bool, kind: str) -> dict[str, Any]:
    plain: dict[str, Any] = {"type": kind if kind in _TYPES else "string"}
    return {"type": "array", "items": plain} if many else plain
