"""Progress: how far a run is, and failures by kind while they happen.

On a terminal a live bar (rich, imported only then), otherwise plain lines at a steady pace, so that a log file stays
readable.  The rate is measured from the first row that comes in, because building environments is no measure of the
rest.
"""

from __future__ import annotations

import sys
import threading
import time
from collections import Counter
from typing import Any, Protocol, TextIO

from harness.estimate import clock, state
from harness.records import Episode


class Display(Protocol):
    """Where progress goes; called from several threads, one at a time."""

    def show(self, text: str, finished: int) -> None:
        """The state of the run in one line."""

    def tell(self, text: str) -> None:
        """Something to read that stays."""

    def close(self) -> None:
        """The run is over."""


class Progress:
    """Counts episodes and says how it goes. Thread-safe."""

    def __init__(self, total: int, display: Display) -> None:
        self._total = total
        self._display = display
        self._mutex = threading.Lock()
        self._ran: Counter[str] = Counter()
        self._kinds: Counter[str] = Counter()
        self._first: float | None = None
        self._open: set[tuple[str, str]] = set()

    def seen(self, episode: Episode) -> None:
        """Count one row; a second attempt takes the place of the first."""
        with self._mutex:
            key, kind = (episode.cell, episode.task_id), state(episode.status)
            if key in self._open:
                self._ran["failed"] -= 1
                self._open.discard(key)
            if kind == "failed":
                self._open.add(key)
                self._kinds[f"{episode.boundary or '?'} {episode.status}"] += 1
            self._ran[kind] += 1
            self._first = time.monotonic() if self._first is None else self._first
            self._display.show(self.line(), self._ran.total())

    def tell(self, text: str) -> None:
        """Pass a message on."""
        with self._mutex:
            self._display.tell(text)

    def close(self) -> None:
        """The run is over."""
        with self._mutex:
            self._display.close()

    def line(self) -> str:
        """`12 done, 1 failed, 7 left; 3.1/s, 2.3 s to go; failures: 1 actor timeout`."""
        ran = self._ran.total()
        left = self._total - ran
        parts = [f"{self._ran['done']} done, {self._ran['failed']} failed, {left} left"]
        if self._ran["skipped"]:
            parts[0] += f", {self._ran['skipped']} skipped"
        if ran > 1 and self._first is not None:
            rate = (ran - 1) / max(time.monotonic() - self._first, 1e-9)
            parts.append(f"{rate:.3g}/s, {clock(left / rate)} to go")
        if self._kinds:
            kinds = ", ".join(f"{count} {kind}" for kind, count in self._kinds.most_common(4))
            parts.append(f"failures: {kinds}")
        return "; ".join(parts)


class Lines:
    """Plain lines, at most one every `every_s` seconds."""

    def __init__(self, stream: TextIO, every_s: float = 10.0) -> None:
        self._stream = stream
        self._every_s = every_s
        self._due = time.monotonic() + every_s
        self._last = ""

    def show(self, text: str, finished: int) -> None:
        self._last = text
        if time.monotonic() >= self._due:
            self.tell(text)
            self._last = ""
            self._due = time.monotonic() + self._every_s

    def tell(self, text: str) -> None:
        print(text, file=self._stream, flush=True)

    def close(self) -> None:
        if self._last:
            self.tell(self._last)


class Bar:
    """A live bar with rich."""

    def __init__(self, total: int, stream: TextIO) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, SpinnerColumn, TextColumn
        from rich.progress import Progress as RichProgress

        columns = (SpinnerColumn(), BarColumn(bar_width=24), TextColumn("{task.description}", markup=False))
        self._rich = RichProgress(*columns, console=Console(file=stream), refresh_per_second=5)
        self._task: Any = self._rich.add_task(f"{total} to run", total=total)
        self._rich.start()

    def show(self, text: str, finished: int) -> None:
        self._rich.update(self._task, description=text, completed=finished)

    def tell(self, text: str) -> None:
        self._rich.console.print(text, markup=False, highlight=False)

    def close(self) -> None:
        self._rich.stop()


def display(total: int, stream: TextIO | None = None, live: bool | None = None) -> Display:
    """A bar on a terminal, lines elsewhere; on standard error, so that output can be piped."""
    out = stream or sys.stderr
    return Bar(total, out) if (out.isatty() if live is None else live) else Lines(out)
