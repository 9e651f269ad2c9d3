"""YAML as people expect it: safe types only, no key twice, and every value knows its line.

Differences from PyYAML's safe loader: a repeated key is an error instead of a silent overwrite, `1e-3` is a number,
dates, `007` and `yes`/`no`/`on`/`off` stay text (so a method may be called `no`), and a document that would blow up
through aliases is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml

from harness.errors import UsageError

Path_ = tuple[str | int, ...]
MAX_NODES = 100_000
MAX_BYTES = 4 << 20
LOOSE = ("timestamp", "bool", "float", "int")


class _Loader(yaml.SafeLoader):
    """The safe loader with the YAML 1.2 reading of plain scalars."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in rules if tag.rpartition(":")[2] not in LOOSE]
    for first, rules in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_Loader.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile(r"^(?:true|True|TRUE|false|False|FALSE)$"), "tTfF")
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"^[-+]?(?:[0-9]+\.[0-9]*(?:[eE][-+]?[0-9]+)?|\.[0-9]+(?:[eE][-+]?[0-9]+)?|[0-9]+[eE][-+]?[0-9]+)$"),
    "-+.0123456789",
)

_Loader.add_implicit_resolver("tag:yaml.org,2002:int", re.compile(r"^[-+]?(?:0|[1-9][0-9]*)$"), "-+0123456789")


class Document:
    """A loaded file: `data`, and where each value stands."""

    def __init__(
        self,
        data: Any,
        lines: Mapping[Path_, tuple[int, int]],
        source: str,
        elsewhere: Mapping[Path_, str] | None = None,
    ) -> None:
        self.data = data
        self.source = source
        self._lines = lines
        self._elsewhere = elsewhere or {}

    def where(self, path: Path_) -> str:
        """`file:line:column` of a value, or of the nearest thing around it that has a place."""
        for length in range(len(path), -1, -1):
            if path[:length] in self._elsewhere:
                return self._elsewhere[path[:length]]
            if path[:length] in self._lines:
                line, column = self._lines[path[:length]]
                return f"{self.source}:{line}:{column}"
        return self.source

    def paths(self) -> Iterable[Path_]:
        """Every value that has a place."""
        return {*self._lines, *self._elsewhere}

    def joined(self, data: Any, elsewhere: Mapping[Path_, str]) -> Document:
        """This document with other data, some of it written in another file at the places given."""
        return Document(data, self._lines, self.source, elsewhere)


def load(path: Path) -> Document:
    """Read a file. Raises `UsageError` with line and column for anything that is not safe, plain YAML."""
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise UsageError(f"Cannot read {path}: {error.strerror or error}.") from error
    if len(raw) > MAX_BYTES:
        raise UsageError(f"{path} has {len(raw)} bytes; a study file may have {MAX_BYTES}.")
    return loads(raw, str(path))


def loads(raw: bytes | str, source: str) -> Document:
    """As `load`, from memory; `source` is the name used in messages."""
    try:
        loader = _Loader(raw)
        try:
            node = loader.get_single_node()
            if node is None:
                raise UsageError(f"{source} is empty; a study needs at least `study:`, `environments:` and `methods:`.")
            lines: dict[Path_, tuple[int, int]] = {}
            _walk(node, (), lines, source, 0)
            data = loader.construct_document(node)
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f"{source}:{mark.line + 1}:{mark.column + 1}" if mark else source
        raise UsageError(f"{place}: {error.problem or error.context}. Fix the YAML there.") from error
    except RecursionError as error:
        raise UsageError(f"{source}: its values are nested too deeply for a study file; flatten them.") from error
    except (yaml.YAMLError, ValueError, LookupError, TypeError, AttributeError, ArithmeticError) as error:
        # An explicit tag on a value that it does not fit (`!!int x`, `!!bool maybe`) fails in PyYAML's own ways.
        raise UsageError(f"{source}: {type(error).__name__}: {error}. Fix the YAML there.") from error
    return Document(data, lines, source)


def _walk(node: yaml.Node, path: Path_, lines: dict[Path_, tuple[int, int]], source: str, depth: int) -> None:
    mark = node.start_mark
    lines.setdefault(path, (mark.line + 1, mark.column + 1))
    if len(lines) > MAX_NODES or depth > 50:
        raise UsageError(f"{source}:{mark.line + 1}: too many or too deeply nested values (aliases that repeat?).")
    if isinstance(node, yaml.SequenceNode):
        for index, item in enumerate(node.value):
            _walk(item, (*path, index), lines, source, depth + 1)
    elif isinstance(node, yaml.MappingNode):
        seen: dict[str, int] = {}
        for key, value in node.value:
            place = f"{source}:{key.start_mark.line + 1}:{key.start_mark.column + 1}"
            if not isinstance(key, yaml.ScalarNode):
                raise UsageError(f"{place}: a key must be plain text.")
            if key.value in seen and key.tag != "tag:yaml.org,2002:merge":
                raise UsageError(
                    f"{place}: the key {key.value!r} stands twice (first in line {seen[key.value]}). Remove one."
                )
            seen[key.value] = key.start_mark.line + 1
            if key.tag not in ("tag:yaml.org,2002:str", "tag:yaml.org,2002:merge"):
                raise UsageError(f"{place}: the key {key.value!r} is no text for YAML; write it in quotes.")
            lines[(*path, key.value)] = (key.start_mark.line + 1, key.start_mark.column + 1)
            _walk(value, (*path, key.value), lines, source, depth + 1)
