"""Record file: one durable JSON record per unit of work, appended by one writer, read at random by key.

The bytes are the ledger's (`harness.frames`): a gzip member a record, checked without inflating it, so that what is
done is learnt from header lines alone and `zcat` reads the file.  A record is flushed to disk before the next one is
taken.  A torn last record is what a killed writer leaves: the next writer cuts it off, and the unit is simply not
there.  A record damaged in the middle is stepped over and its unit is done again.  The last record of a key counts.
"""

from __future__ import annotations

import fcntl
import mmap
import os
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from harness import frames
from harness.codec import CodecError
from harness.errors import UsageError

Record = dict[str, Any]
HEAD = ("key", "status", "reason", "boundary", "attempt")


class RecordFile:
    """Records by key. As a context manager it is the only writer; without, a reader of what was there.

    Raises:
        UsageError: another process writes here, or the file is no record file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._frames: dict[str, frames.Frame] = {}
        self._handle = -1
        self._end = 0
        self._scan()

    def _scan(self) -> None:
        self._frames, self._end = {}, 0
        data = _load(self.path)
        if len(data) and not frames.plausible(bytes(data[:16])):
            raise UsageError(f"{self.path} is no record file of cota-bench. Choose another folder.")
        for part in frames.scan(data):
            if isinstance(part, frames.Frame):
                self._frames[part.head["key"]] = part
                self._end = part.offset + part.size
            elif not part.tail:
                warnings.warn(
                    f"{self.path}: {part.size} damaged bytes at {part.offset}; the units in them are done again.",
                    stacklevel=4,
                )

    def __enter__(self) -> RecordFile:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._handle = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            self.__exit__(None, None, None)
            message = f"Another process is writing {self.path}. Wait for it, or choose another folder."
            raise UsageError(message) from error
        self._scan()
        os.ftruncate(self._handle, self._end)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1

    def append(self, record: Record) -> None:
        """Write one record (its `key` names it) and wait until it is on disk.

        Raises:
            CodecError: NaN, or what JSON cannot hold.
            UsageError: the disk is full or the like; nothing written before is lost.
        """
        if self._handle < 0:
            raise RuntimeError("append needs `with RecordFile(...)`")
        head = {name: record.get(name) for name in HEAD}
        member = frames.pack(head, record)
        try:
            if os.write(self._handle, member) != len(member):
                raise OSError("only part of the record was written")
            os.fsync(self._handle)
        except OSError as error:
            os.ftruncate(self._handle, self._end)
            raise UsageError(f"Cannot write {self.path}: {error}. Make room and run the same command again.") from error
        self._frames[record["key"]] = frames.Frame(self._end, len(member), head)
        self._end += len(member)

    def __len__(self) -> int:
        return len(self._frames)

    def __contains__(self, key: str) -> bool:
        return key in self._frames

    def keys(self) -> list[str]:
        """All keys, sorted."""
        return sorted(self._frames)

    def head(self, key: str) -> Mapping[str, Any]:
        """Status, reason, boundary and attempt of the last record of a key, from memory."""
        return self._frames[key].head

    def read(self, key: str) -> Record:
        """The last record of a key."""
        return self._body(_load(self.path), key)

    def records(self) -> Iterator[Record]:
        """The last record of every key in the order of the keys, one at a time."""
        data = _load(self.path)
        for key in self.keys():
            yield self._body(data, key)

    def _body(self, data: memoryview, key: str) -> Record:
        try:
            record: Record = frames.body(data, self._frames[key])
        except CodecError as error:
            raise UsageError(f"{self.path}: the record of {key!r} cannot be read: {error}") from error
        return record


def _load(path: Path) -> memoryview:
    """The file as mapped memory, so that its size does not matter."""
    if not path.exists() or not path.stat().st_size:
        return memoryview(b"")
    with path.open("rb") as file:
        return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
