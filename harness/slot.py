"""Slot: what runs around a job in a worker, and the watchdog that looks after slots from outside.

A job that never returns (a native call that holds the interpreter lock) can only be ended with its process.  So a
worker leaves a marker (pid, start on the system-wide monotonic clock) while it runs a job, and the parent kills a
worker whose job is past the episode limit and then some.
"""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from harness.interrupt import StopNow, shield_worker
from harness.records import Episode
from harness.worker import Job, failed


@dataclass(frozen=True, slots=True)
class Ticket:
    """A job as handed out: the number is new at each try."""

    number: int
    job: Job


@dataclass(frozen=True)
class Slot:
    """Callable for the backend: runs `run(job)`, whatever it does, into a row."""

    run: Callable[[Job], Episode]
    markers: str | None

    def __call__(self, ticket: Ticket) -> tuple[int, Episode]:
        shield_worker()
        marker = Path(self.markers, str(ticket.number)) if self.markers else None
        if marker is not None:
            marker.write_text(f"{os.getpid()} {time.monotonic()}")
        began = time.time()
        try:
            episode = self.run(ticket.job)
            if not isinstance(episode, Episode) or (episode.cell, episode.task_id) != ticket.job.key:
                raise TypeError(f"the job returned {type(episode).__name__} where its own episode belongs")
        except StopNow:
            raise
        except BaseException as error:  # noqa: BLE001  becomes the episode's record; only the user's stop is no failure
            episode = failed(ticket.job, f"{type(error).__name__}: {error}", "harness", began=began)
        finally:
            if marker is not None:
                marker.unlink(missing_ok=True)
        return ticket.number, episode


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
            for marker in Path(self.folder or "").glob("[0-9]*"):
                self._look(marker, limit_s)

    def _look(self, marker: Path, limit_s: float) -> None:
        try:
            pid, since = marker.read_text().split()
            age = time.monotonic() - float(since)
        except (OSError, ValueError):
            return  # the job ended, or its marker is just being written
        if age > limit_s and self._overdue(int(marker.name), age):
            marker.unlink(missing_ok=True)
            try:
                os.kill(int(pid), signal.SIGKILL)
            except ProcessLookupError:
                return  # it ended in this very moment; its row says time-out all the same
