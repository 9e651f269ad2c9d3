"""Reading the official JSON files record by record, in bounded memory, with messages that name file and record.

The full catalogue is one JSON array of 5.5 GB and its attributes one object of 186 MB; both are decoded an element at a
time from a buffer that never holds more than a few records.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from harness.errors import UsageError

_BLOCK = 1 << 20
_LONGEST = 1 << 24  # no record of the official files comes near 16 MB: what does not end by then is corrupt
_SPACE = " \t\r\n"


class _Buffer:
    """A sliding window over a text file."""

    def __init__(self, path: Path, file: IO[str]) -> None:
        self.path = path
        self._file = file
        self._text = ""
        self._at = 0
        self._decoder = json.JSONDecoder()

    def _fill(self) -> bool:
        try:
            more = self._file.read(_BLOCK)
        except UnicodeDecodeError as error:
            raise UsageError(f"{self.path} is not UTF-8 text: {error}. Fetch the file again.") from error
        self._text = self._text[self._at :] + more
        self._at = 0
        return bool(more)

    def peek(self) -> str:
        """The next character that is no white space, "" at the end."""
        while True:
            while self._at < len(self._text) and self._text[self._at] in _SPACE:
                self._at += 1
            if self._at < len(self._text):
                return self._text[self._at]
            if not self._fill():
                return ""

    def take(self, valid: str, where: str) -> str:
        """Consume one of the `valid` characters."""
        char = self.peek()
        if not char or char not in valid:
            found = repr(char) if char else "the end of the file"
            raise UsageError(f"{self.path}: broken JSON {where}: {found} instead of {' or '.join(valid)}. {_FIX}")
        self._at += 1
        return char

    def value(self, where: str) -> Any:
        """Decode one JSON value."""
        self.peek()
        while True:
            try:
                value, end = self._decoder.raw_decode(self._text, self._at)
            except json.JSONDecodeError as error:
                if len(self._text) - self._at < _LONGEST and self._fill():
                    continue
                raise UsageError(f"{self.path}: broken JSON in {where}: {error.msg}. {_FIX}") from error
            size = end - self._at
            if end == len(self._text) and self._fill():
                continue  # a number may go on in the next block
            self._at += size
            return value


_FIX = "Fetch the file again, or repair or remove that record."


def _open(path: Path) -> IO[str]:
    if not path.is_file():
        raise UsageError(f"{path} is missing or no file.")
    if path.suffix == ".gz":
        return gzip.open(path, "rt", encoding="utf-8")
    return path.open(encoding="utf-8")


def array(path: Path) -> Iterator[tuple[int, Any]]:
    """(number, element) of a JSON array, numbers from 0. Raises `UsageError` naming file and record."""
    with _open(path) as file:
        buffer = _Buffer(path, file)
        buffer.take("[", "at its beginning (a JSON array of products is expected)")
        if buffer.peek() == "]":
            return
        number = 0
        while True:
            yield number, buffer.value(f"record {number}")
            if buffer.take(",]", f"after record {number}") == "]":
                return
            number += 1


def members(path: Path) -> Iterator[tuple[str, Any]]:
    """(key, value) of a JSON object. Raises `UsageError` naming file and record."""
    with _open(path) as file:
        buffer = _Buffer(path, file)
        buffer.take("{", "at its beginning (a JSON object keyed by product id is expected)")
        if buffer.peek() == "}":
            return
        key = "the first record"
        while True:
            found = buffer.value(f"the key after {key}")
            if not isinstance(found, str):
                raise UsageError(f"{path}: the key after {key} is no string. {_FIX}")
            key = found
            buffer.take(":", f"after the key {key!r}")
            yield key, buffer.value(f"record {key!r}")
            if buffer.take(",}", f"after record {key!r}") == "}":
                return
