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
from collections.abc import Hashable, Mapping
from types import TracebackType
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
    """Counts episodes, or other units of work, and says how it goes. Thread-safe."""

    def __init__(self, total: int, display: Display, name: str = "") -> None:
        self._total = total
        self._name = f"{name}: " if name else ""
        self._display = display
        self._mutex = threading.Lock()
        self._ran: Counter[str] = Counter()
        self._kinds: Counter[str] = Counter()
        self._first: float | None = None
        self._open: set[Hashable] = set()

    def seen(self, episode: Episode) -> None:
        """Count one row; a second attempt takes the place of the first."""
        key, kind = (episode.cell, episode.task_id), state(episode.status)
        self.count(key, kind, f"{episode.boundary or '?'} {episode.status}")

    def count(self, key: Hashable, kind: str, failure: str = "") -> None:
        """Count one unit: its key, done / failed / skipped, and what to call its failure."""
        with self._mutex:
            if key in self._open:
                self._ran["failed"] -= 1
                self._open.discard(key)
            if kind == "failed":
                self._open.add(key)
                self._kinds[failure] += 1
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
        parts = [f"{self._name}{self._ran['done']} done, {self._ran['failed']} failed, {left} left"]
        if self._ran["skipped"]:
            parts[0] += f", {self._ran['skipped']} skipped"
        if ran > 1 and self._first is not None:
            rate = (ran - 1) / max(time.monotonic() - self._first, 1e-9)
            parts.append(f"{rate:.3g}/s, {clock(left / rate)} to go")
        if self._kinds:
            kinds = ", ".join(f"{count} {kind}" for kind, count in self._kinds.most_common(4))
            parts.append(f"failures: {kinds}")
        return "; ".join(parts)


class Units:
    """Progress of units whose number is known when the first one comes in; nothing to do shows nothing."""

    def __init__(self, name: str, stream: TextIO | None = None) -> None:
        self._name = name
        self._stream = stream
        self._progress: Progress | None = None

    def __call__(self, done: int, total: int, record: Mapping[str, Any]) -> None:
        """One record with `key`, `status` and `boundary` is on disk: number `done` of `total`."""
        if self._progress is None:
            self._progress = Progress(total, display(total, self._stream), self._name)
        status = str(record.get("status", "done"))
        self._progress.count(record.get("key", done), state(status), f"{record.get('boundary') or '?'} {status}")

    def __enter__(self) -> Units:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, at: TracebackType | None) -> None:
        if self._progress is not None:
            self._progress.close()


class Steps:
    """Progress of one long thing in equal steps: training, scoring. The pace is that from the first report on."""

    def __init__(self, name: str, stream: TextIO | None = None) -> None:
        self._name = name
        self._stream = stream
        self._display: Display | None = None
        self._first: tuple[int, float] | None = None

    def __call__(self, step: int, total: int, numbers: Mapping[str, Any] | None = None) -> None:
        """`step` of `total` is done; `numbers` are shown beside it."""
        now = time.monotonic()
        if self._display is None:
            self._display, self._first = display(total, self._stream), (step, now)
        began = self._first or (step, now)
        parts = [f"{self._name}: {step} done, {total - step} left"]
        if step > began[0]:
            rate = (step - began[0]) / max(now - began[1], 1e-9)
            parts.append(f"{rate:.3g}/s, {clock((total - step) / rate)} to go")
        parts += [f"{name} {value:.3g}" for name, value in (numbers or {}).items() if isinstance(value, float)]
        self._display.show("; ".join(parts), step)

    def __enter__(self) -> Steps:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, at: TracebackType | None) -> None:
        if self._display is not None:
            self._display.close()


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
