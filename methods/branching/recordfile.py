"""Record file: one durable JSON record per unit of work, appended by one writer, read at random by key.

Each record is a gzip member of its own (so `zcat` reads the file, and a reader can seek to any record), flushed to
disk before the next one is taken.  A torn last member is what a killed writer leaves; the next writer cuts it off and
the unit is simply not there.  The last record of a key counts.
"""

from __future__ import annotations

import fcntl
import gzip
import json
import os
import zlib
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import IO, Any

from harness.errors import UsageError

Record = dict[str, Any]
HEAD = ("status", "reason", "boundary", "attempt")


def _members(path: Path) -> Iterator[tuple[int, int, bytes]]:
    """(offset, end, content) of each whole gzip member; stops before a torn one."""
    with path.open("rb") as file:
        offset, rest = 0, b""
        while True:
            inflate, parts = zlib.decompressobj(wbits=31), []
            taken = 0
            while not inflate.eof:
                block = rest or file.read(1 << 16)
                rest = b""
                if not block:
                    return
                taken += len(block)
                try:
                    parts.append(inflate.decompress(block))
                except zlib.error as error:
                    raise UsageError(
                        f"{path} is damaged at byte {offset}: {error}. Restore it from a backup, or delete it and "
                        "collect again."
                    ) from error
            rest = inflate.unused_data
            end = offset + taken - len(rest)
            yield offset, end, b"".join(parts)
            offset = end


class RecordFile:
    """Records by key. As a context manager it is the only writer; without, a reader.

    Raises:
        UsageError: another process writes here, or the file is damaged in the middle.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._offsets: dict[str, int] = {}
        self._heads: dict[str, Record] = {}
        self._file: IO[bytes] | None = None
        self._end = 0
        if path.exists():
            self._scan()

    def _scan(self) -> None:
        self._offsets, self._heads, self._end = {}, {}, 0
        for offset, end, content in _members(self.path):
            self._note(json.loads(content), offset)
            self._end = end

    def _note(self, record: Record, offset: int) -> None:
        self._offsets[record["key"]] = offset
        self._heads[record["key"]] = {name: record.get(name) for name in HEAD}

    def __enter__(self) -> RecordFile:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        file = self.path.open("ab")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            file.close()
            message = f"Another process is writing {self.path}. Wait for it, or choose another folder."
            raise UsageError(message) from error
        self._scan()
        file.truncate(self._end)
        self._file = file
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def append(self, record: Record) -> None:
        """Write one record (its `key` names it) and wait until it is on disk. Raises ValueError on NaN."""
        if self._file is None:
            raise RuntimeError("append needs `with RecordFile(...)`")
        text = json.dumps(record, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        member = gzip.compress(text.encode() + b"\n", compresslevel=6, mtime=0)
        self._file.write(member)
        self._file.flush()
        os.fsync(self._file.fileno())
        self._note(record, self._end)
        self._end += len(member)

    def __len__(self) -> int:
        return len(self._offsets)

    def __contains__(self, key: str) -> bool:
        return key in self._offsets

    def keys(self) -> list[str]:
        """All keys, sorted."""
        return sorted(self._offsets)

    def head(self, key: str) -> Record:
        """Status, reason, boundary and attempt of the last record of a key, from memory."""
        return self._heads[key]

    def read(self, key: str) -> Record:
        """The last record of a key."""
        with self.path.open("rb") as raw:
            raw.seek(self._offsets[key])
            with gzip.GzipFile(fileobj=raw) as file:
                record: Record = json.loads(file.readline())
        return record

    def records(self) -> Iterator[Record]:
        """The last record of every key in the order of the keys, one at a time."""
        for key in self.keys():
            yield self.read(key)
