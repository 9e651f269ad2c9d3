"""Ledger: the truth about a study, one durable record an episode, in `<results>/<study>/ledger.jsonl.gz`.

One writer at a time (an advisory lock that dies with its process); any number of readers, also while it grows.
A record is written by one `write` and one `fsync` before `append` returns.  What a dead process left half written is
moved aside to `ledger.torn-*` and reported, never dropped in silence; a record damaged in the middle is stepped over,
reported, and its episode counts as not run.  Statuses are derived from records alone: nobody has to sign off.

An episode may be tried again only after `failed` or `timeout`; the last attempt counts.  A second row after a finished
one is a duplicate: refused at `append`, and at read.
"""

from __future__ import annotations

import errno
import fcntl
import json
import mmap
import os
import socket
import sys
import threading
import time
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any

from harness import frames
from harness.codec import CodecError, from_json, newer, to_json
from harness.errors import UsageError
from harness.frames import Damage, Frame
from harness.records import SCHEMA_VERSION, Episode

FILE = "ledger.jsonl.gz"
LOCK = "ledger.lock"
MAPPED = 256 << 20  # bytes
RETRYABLE = frozenset({"failed", "timeout"})
REMEMBERED = ("cell", "method", "actor", "environment", "seed", "status", "boundary", "attempt")
Key = tuple[str, str]


class LedgerError(UsageError):
    """The ledger cannot be written or believed; the run must stop, nothing written before is lost."""


class LedgerWarning(UserWarning):
    """Part of a ledger is damaged; the message says how many bytes where."""


def head_of(episode: Episode) -> dict[str, Any]:
    """The header line: all that planning, resuming and estimating need."""
    usage = {role: [u.calls, u.prompt, u.completion] for role, u in episode.usage.items()}
    names = ("schema", "cell", "task_id", "status", "attempt", "method", "actor", "environment", "seed", "boundary")
    head = {name: getattr(episode, name) for name in names}
    return head | {"reward": episode.reward, "steps": len(episode.steps), "wall_s": episode.wall_s, "usage": usage}


def stored(episode: Episode) -> tuple[Episode, bytes]:
    """(the episode as the ledger will give it back, its record for `Ledger.append`).

    Made where the episode ran, since the writer is one for all.  Raises `CodecError`.
    """
    encoded = to_json(episode)
    _in_microseconds(encoded)
    kept = from_json(encoded)
    return kept, frames.pack(head_of(kept), encoded)


def _in_microseconds(encoded: dict[str, Any]) -> None:
    """Times to the microsecond: finer digits are noise, and would be a fifth of a record."""
    for part in (encoded, *encoded["steps"]):
        part["seconds"] = {role: round(value, 6) for role, value in part["seconds"].items()}
        for review in part.get("reviews", ()):
            if "seconds" in review:
                review["seconds"] = round(review["seconds"], 6)
    for name in ("started_at", "wall_s"):
        if name in encoded:
            encoded[name] = round(encoded[name], 6)


class Ledger:
    """The single writer of one results folder; use it as a context manager, from any thread."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / FILE
        self.damage: tuple[Damage, ...] = ()
        self.torn: Path | None = None
        self._mutex = threading.Lock()
        self._latest: dict[Key, Mapping[str, Any]] = {}
        self._shared: dict[tuple[Any, ...], Mapping[str, Any]] = {}
        with _explained(folder):
            folder.mkdir(parents=True, exist_ok=True)
            self._lock = _lock(folder / LOCK)
            try:
                self._fd = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
            except BaseException:
                os.close(self._lock)
                raise
        try:
            self._recover(folder)
        except BaseException:
            self.close()
            raise

    def _recover(self, folder: Path) -> None:
        found = read(folder)
        for head in _latest(found.frames).values():
            self._remember(head)
        tails = [damage for damage in found.damage if damage.tail]
        self.damage = tuple(damage for damage in found.damage if not damage.tail)
        with _explained(folder):
            for tail in tails:
                self.torn = _set_aside(self.path, self._fd, tail)
            self._size = os.fstat(self._fd).st_size
            _sync_folder(folder)

    def __enter__(self) -> Ledger:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Give the lock back; safe to call twice."""
        with self._mutex:
            for name in ("_fd", "_lock"):
                handle = getattr(self, name, -1)
                if handle >= 0:
                    os.close(handle)
                setattr(self, name, -1)

    def append(self, episode: Episode, row: bytes | None = None) -> None:
        """Durable when it returns; `row` is its record, if `stored` made it already.

        Raises `LedgerError` for a duplicate, a full disk, or a ledger that is gone.
        """
        head = head_of(episode)
        try:
            record = frames.pack(head, to_json(episode)) if row is None else row
        except CodecError as error:
            raise LedgerError(f"Task {episode.task_id!r} of cell {episode.cell} cannot be stored: {error}") from error
        key = (episode.cell, episode.task_id)
        with self._mutex:
            earlier = self._latest.get(key)
            if earlier is not None and earlier["status"] not in RETRYABLE:
                raise LedgerError(
                    f"Duplicate episode refused: cell {key[0]}, task {key[1]!r} is {earlier['status']!r} already."
                )
            self._write(record)
            self._remember(head)

    def _remember(self, head: Mapping[str, Any]) -> None:
        """Keep what a run needs to know of a row. Equal parts are one object: a long run must not grow with its rows.

        A head of its own, its strings fresh from a worker, is 1 KB an episode; this is a tenth of it.
        """
        parts = tuple(head.get(name) for name in REMEMBERED)
        if parts not in self._shared:
            self._shared[parts] = dict(zip(REMEMBERED, parts, strict=True))
        kept = self._shared[parts]
        self._latest[kept["cell"], sys.intern(str(head["task_id"]))] = kept

    def _write(self, record: bytes) -> None:
        if self._fd < 0:
            raise LedgerError(f"{self.path} is closed; the episode was not stored.")
        if os.fstat(self._fd).st_nlink == 0:
            raise LedgerError(f"{self.path} was deleted while the study ran; run the same command again to go on.")
        try:
            written = os.write(self._fd, record)
            if written != len(record):
                raise OSError(errno.ENOSPC, f"no space left, only {written} of {len(record)} bytes written")
            os.fsync(self._fd)
        except OSError as error:
            # Cut back to the last whole record; if even that fails, the next opening sets the torn tail aside.
            _cut(self._fd, self._size)
            raise LedgerError(
                f"Cannot write to {self.path}: {error.strerror or error}. All earlier episodes are stored; "
                "make room (or fix the disk) and run the same command again."
            ) from error
        self._size += len(record)

    def heads(self) -> dict[Key, Mapping[str, Any]]:
        """`REMEMBERED` of the last attempt of each (cell, task_id); `read_heads` gives whole header lines."""
        with self._mutex:
            return dict(self._latest)

    def statuses(self) -> dict[Key, str]:
        """Status of the last attempt of each (cell, task_id)."""
        return {key: head["status"] for key, head in self.heads().items()}


class Found:
    """What a ledger file holds: good frames in order, damaged stretches, and access to the bodies."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.data = _load(path)
        parts = list(frames.scan(self.data))
        self.frames = [part for part in parts if isinstance(part, Frame)]
        self.damage = [part for part in parts if isinstance(part, Damage)]
        if not self.frames and len(self.data) and not frames.plausible(bytes(self.data[:16])):
            raise LedgerError(f"{path} is no ledger of cota-bench. Choose another folder, or move the file away.")
        for frame in self.frames:
            if frame.head.get("schema") != SCHEMA_VERSION:
                raise newer(frame.head.get("schema"), f"A record of {path}")
            if not all(isinstance(frame.head.get(name), str) for name in ("cell", "task_id", "status")):
                raise LedgerError(f"{path}, byte {frame.offset}: a record of another program, not of an episode.")

    def last_attempts(self) -> list[Frame]:
        """The frames that count, in the order written. Raises `LedgerError` for duplicates; warns about damage."""
        inner = [damage for damage in self.damage if not damage.tail]
        if inner:
            lost = sum(damage.size for damage in inner)
            warnings.warn(
                f"{self.path}: {len(inner)} damaged stretch(es), {lost} bytes; the episodes in them count as not run.",
                LedgerWarning,
                stacklevel=3,
            )
        last = {_key(frame): frame.offset for frame in self.frames}
        _latest(self.frames)
        return [frame for frame in self.frames if last[_key(frame)] == frame.offset]

    def text(self, frame: Frame) -> str:
        """The record as JSON text, for who copies or counts it without building the episode."""
        return frames.body_text(self.data, frame).decode()

    def episode(self, frame: Frame) -> Episode:
        """The whole record. Raises `LedgerError` when its body cannot be read."""
        try:
            return from_json(frames.body(self.data, frame))
        except CodecError as error:
            raise LedgerError(f"{self.path}, byte {frame.offset}: {error}") from error


def read(folder: Path) -> Found:
    """All records of a results folder; an absent ledger is an empty one."""
    return Found(folder / FILE)


def read_heads(folder: Path) -> dict[Key, Mapping[str, Any]]:
    """Header lines of the last attempts, without a lock and without inflating any body."""
    return _latest(read(folder).frames)


def read_episodes(folder: Path) -> Iterator[Episode]:
    """Last attempt of each episode in the order written.

    Raises:
        LedgerError: two rows of one key of which an earlier one is finished, an unreadable body, another schema.

    Damage between records is warned about (`LedgerWarning`); a torn tail is what a running writer looks like.
    """
    found = read(folder)
    for frame in found.last_attempts():
        yield found.episode(frame)


def _key(frame: Frame) -> Key:
    return frame.head["cell"], frame.head["task_id"]


def _latest(records: Iterable[Frame]) -> dict[Key, Mapping[str, Any]]:
    latest: dict[Key, Mapping[str, Any]] = {}
    for frame in records:
        earlier = latest.get(_key(frame))
        if earlier is not None and earlier["status"] not in RETRYABLE:
            raise LedgerError(
                f"Duplicate rows: cell {frame.head['cell']}, task {frame.head['task_id']!r} has a row of status "
                f"{frame.head['status']!r} (byte {frame.offset}) after one of status {earlier['status']!r}. "
                "Two ledgers were joined, or one was edited; restore the file from before that."
            )
        latest[_key(frame)] = frame.head
    return latest


def _load(path: Path) -> memoryview:
    """Small files are read (a writer may cut a torn tail off under a map), large ones mapped."""
    try:
        with path.open("rb") as file:
            if os.fstat(file.fileno()).st_size < MAPPED:
                return memoryview(file.read())
            return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    except FileNotFoundError:
        return memoryview(b"")


def _lock(path: Path) -> int:
    """An exclusive lock that ends with the process (close-on-exec: workers do not keep it)."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        holder = _holder(handle)
        os.close(handle)
        raise LedgerError(
            f"Another run is writing to {path.parent} ({holder}). Wait for it or stop it; "
            "to run beside it choose another folder with --results."
        ) from None
    os.ftruncate(handle, 0)
    owner = {"pid": os.getpid(), "host": socket.gethostname(), "since": time.strftime("%Y-%m-%d %H:%M:%S")}
    os.pwrite(handle, json.dumps(owner).encode(), 0)
    return handle


def _holder(handle: int) -> str:
    try:
        owner = json.loads(os.pread(handle, 4096, 0))
        return f"pid {owner['pid']} on {owner['host']} since {owner['since']}"
    except (ValueError, KeyError, TypeError):
        return "it did not leave its pid"


def _set_aside(path: Path, handle: int, tail: Damage) -> Path:
    """Copy a torn tail to a side file, durably, and only then cut it off."""
    side = path.with_name(f"ledger.torn-{time.strftime('%Y%m%d-%H%M%S')}-{tail.offset}")
    with side.open("wb") as file:
        file.write(os.pread(handle, tail.size, tail.offset))
        file.flush()
        os.fsync(file.fileno())
    os.ftruncate(handle, tail.offset)
    os.fsync(handle)
    return side


def _cut(handle: int, size: int) -> None:
    try:
        os.ftruncate(handle, size)
    except OSError as error:
        warnings.warn(f"could not cut the torn record off: {error}", LedgerWarning, stacklevel=3)


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def _explained(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise LedgerError(
            f"Cannot write to the results folder {folder}: {error.strerror or error}. "
            "Choose a writable one with --results DIR."
        ) from error
