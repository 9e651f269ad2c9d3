"""Slot: what runs around a job in a worker, and the watchdog that looks after slots from outside.

A job that never returns (a native call that holds the interpreter lock) can only be ended with its process.  So a
worker leaves a marker (pid, start on the system-wide monotonic clock) while it runs a job, and the parent kills a
worker whose job is past the episode limit and then some.  A worker on another machine is out of reach: it ends itself.
"""

from __future__ import annotations

import faulthandler
import os
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from harness.codec import CodecError
from harness.errors import UsageError
from harness.interrupt import StopNow, shield_worker
from harness.ledger import stored
from harness.models.threads import share_cores
from harness.records import Episode
from harness.registry import Kind
from harness.worker import Began, Job, failed

SENT_S: Final = 0.01  # dask sends what it has every 2 ms
PARENT_FIRST_S: Final = 5.0  # a worker that ends itself leaves the parent this long to write the row and call it off


@dataclass(frozen=True, slots=True)
class Ticket:
    """A job as handed out: the number is new at each try."""

    number: int
    job: Job


@dataclass(frozen=True, slots=True)
class Done:
    """What comes of a ticket: the episode as the ledger will give it back, and its record there (None: to be made)."""

    number: int
    episode: Episode
    row: bytes | None = None

    @classmethod
    def of(cls, ticket: Ticket, run: Callable[[Job], Episode]) -> Done:
        """Run a ticket's job. An episode that cannot be stored is its own failure, not the study's."""
        began = Began()
        try:
            return cls(ticket.number, *stored(attempted(run, ticket.job)))
        except CodecError as error:
            reason = f"the record of this episode cannot be stored: {error}"
            return cls(ticket.number, *stored(failed(ticket.job, reason, "harness", began=began)))


@dataclass(frozen=True)
class Slot:
    """Callable for the backend: runs `run(job)`, whatever it does, into a row."""

    run: Callable[[Job], Episode]
    markers: str | None
    jobs: int = 1  # that run on this machine at once

    def __call__(self, ticket: Ticket) -> Done:
        shield_worker()
        share_cores(self.jobs)
        marker = Path(self.markers, str(ticket.number)) if self.markers else None
        if marker is not None:
            marker.write_text(f"{os.getpid()} {time.monotonic()}")
        try:
            return Done.of(ticket, self.run)
        finally:
            if marker is not None:
                marker.unlink(missing_ok=True)


def attempted(run: Callable[[Job], Episode], job: Job) -> Episode:
    """The episode of a job, or the row that says why there is none. Only the user's stop is raised."""
    began = Began()
    try:
        episode = run(job)
        if not isinstance(episode, Episode) or (episode.cell, episode.task_id) != job.key:
            raise TypeError(f"the job returned {type(episode).__name__} where its own episode belongs")
    except StopNow:
        raise
    except BaseException as error:  # noqa: BLE001  becomes the episode's record; only the user's stop is no failure
        return failed(job, f"{type(error).__name__}: {error}", "harness", began=began)
    return episode


class Reaper:
    """Ends this process when a job in it is past its limit, even one that holds the interpreter lock.

    The timer of `faulthandler` is a thread of the system that needs no lock; there is one, for the earliest end.
    """

    def __init__(self) -> None:
        self._ends: dict[object, float] = {}
        self._mutex = threading.Lock()

    @contextmanager
    def watching(self, seconds: float) -> Iterator[None]:
        """The block has so many seconds; afterwards the stacks go to standard error and the process ends."""
        token = object()
        with self._mutex:
            self._ends[token] = time.monotonic() + seconds
            self._arm()
        try:
            yield
        finally:
            with self._mutex:
                del self._ends[token]
                self._arm()

    def _arm(self) -> None:
        faulthandler.cancel_dump_traceback_later()
        if self._ends:
            left = min(self._ends.values()) - time.monotonic()
            faulthandler.dump_traceback_later(max(0.01, left), exit=True, file=sys.__stderr__ or sys.stderr)


_REAPER = Reaper()


@dataclass(frozen=True)
class RemoteSlot:
    """`Slot` for a worker of a dask cluster: says when it begins, refuses to run with other code than the parent's."""

    run: Callable[[Job], Episode]
    topic: str
    limit_s: float | None
    sources: tuple[tuple[Kind, str, str], ...]

    def __call__(self, ticket: Ticket) -> Done:
        self._check()
        if self.limit_s is not None:
            self._say(ticket.number)
        with nullcontext() if self.limit_s is None else _REAPER.watching(self.limit_s + PARENT_FIRST_S):
            return Done.of(ticket, self.run)

    def _say(self, number: int) -> None:
        """Tell the parent which job begins, and see the message off: the job may never let go of the interpreter."""
        from distributed import get_worker

        worker, sent = get_worker(), threading.Event()

        def say() -> None:
            worker.log_event(self.topic, number)
            worker.loop.call_later(SENT_S, sent.set)

        worker.loop.add_callback(say)
        sent.wait(PARENT_FIRST_S)

    def _check(self) -> None:
        """Raises `UsageError`. What a process had at its first job it keeps: new files need a new process."""
        from harness.cluster import source

        for kind, name, wanted in self.sources:
            if source(kind, name) != wanted:
                raise UsageError(
                    f"on {os.uname().nodename} the {kind[:-1]} plugin {name!r} or cota-bench itself is not that of the "
                    "machine that runs the study. Install the same versions (and copy plugin files) there, then "
                    "restart the worker."
                )


class Watchdog:
    """Kills worker processes whose job is past `limit_s`; `overdue` is told first, with ticket number and seconds."""

    def __init__(self, limit_s: float | None, overdue: Callable[[int, float], bool]) -> None:
        self.folder = tempfile.mkdtemp(prefix="cota-bench-slots-") if limit_s is not None else None
        self._limit_s = limit_s
        self._overdue = overdue
        self._ended = threading.Event()
        if limit_s is not None:
            threading.Thread(target=self._watch, args=(limit_s,), daemon=True, name="watchdog").start()

    def close(self) -> None:
        """Stop watching and remove the markers."""
        self._ended.set()
        if self.folder is not None:
            shutil.rmtree(self.folder, ignore_errors=True)

    def _watch(self, limit_s: float) -> None:
        while not self._ended.wait(min(1.0, limit_s / 4)):
            processes: dict[int, list[tuple[Path, float]]] = {}
            for marker in Path(self.folder or "").glob("[0-9]*"):
                pid, age = _read(marker)
                processes.setdefault(pid, []).append((marker, age))
            for pid, jobs in processes.items():
                if pid and any(age > limit_s for _, age in jobs):
                    self._shoot(pid, jobs)

    def _shoot(self, pid: int, jobs: list[tuple[Path, float]]) -> None:
        """One job in the process: the row is its own.  Several: whose fault it is shows when each is run alone."""
        if len(jobs) == 1 and not self._overdue(int(jobs[0][0].name), jobs[0][1]):
            return
        for marker, _ in jobs:
            marker.unlink(missing_ok=True)
        with suppress(ProcessLookupError):  # it ended in this very moment
            os.kill(pid, signal.SIGKILL)


def _read(marker: Path) -> tuple[int, float]:
    """(process, seconds) of a job; process 0 when it has just ended, or its marker is just being written."""
    try:
        pid, since = marker.read_text().split()
        return int(pid), time.monotonic() - float(since)
    except (OSError, ValueError):
        return 0, 0.0
