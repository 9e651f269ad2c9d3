"""Interrupt: Ctrl-C (and SIGTERM) stop a run cleanly.

The first signal only sets a flag: nothing more is handed out, running episodes may end.  The second, or the end of the
grace time, raises `StopNow` in the main thread and what is running is given up.  A handler writes nothing: every
episode that ended is in the ledger already, so there is nothing to save.  It takes no lock either (the thread that it
interrupts may hold it): a helper thread does the talking and the waiting.

A third signal right after the second would tear up the clean-up and the summary, so for a moment it is not heard; when
the clean-up itself hangs, a later one is.  `StopNow` is a class of its own so that a `KeyboardInterrupt` raised by a
plugin is told apart from the user's.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Any, Final

SIGNALS = (signal.SIGINT, signal.SIGTERM)
BOUNCE_S: Final = 1.0  # after a stop at once, while it finds its way out of whatever was running
WIND_UP_S: Final = 10.0  # while workers are ended


class StopNow(KeyboardInterrupt):
    """The user (or the end of the grace time) wants the run to stop at once."""


class Interrupt:
    """Context manager; `requested` is true once a signal came. Outside the main thread it listens to nothing."""

    def __init__(self, grace_s: float, tell: Callable[[str], None]) -> None:
        self.signal: int | None = None
        self._grace_s = grace_s
        self._tell = tell
        self._old: dict[int, Any] = {}
        self._over = threading.Event()
        self._deaf_until = 0.0

    @property
    def requested(self) -> bool:
        """Whether to stop handing out work."""
        return self.signal is not None

    @property
    def exit_status(self) -> int:
        """128 + signal number, the shell's convention (130 for Ctrl-C)."""
        return 128 + (self.signal or 0)

    def __enter__(self) -> Interrupt:
        if threading.current_thread() is threading.main_thread():
            threading.Thread(target=self._attend, daemon=True, name="interrupt").start()
            self._old = {number: signal.signal(number, self._handle) for number in SIGNALS}
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, at: TracebackType | None) -> None:
        self._over.set()
        for number, handler in self._old.items():
            if self.requested and isinstance(handler, LastWord):
                handler.stopped = True
            signal.signal(number, handler)

    def wind_up(self) -> None:
        """Clean-up begins: not to be disturbed for a while, yet not for ever."""
        self._deaf_until = time.monotonic() + WIND_UP_S

    def _handle(self, number: int, _frame: FrameType | None) -> None:
        if not self.requested:
            self.signal = number
        elif time.monotonic() >= self._deaf_until:
            self._deaf_until = time.monotonic() + BOUNCE_S
            raise StopNow

    def _attend(self) -> None:
        while not self.requested:
            if self._over.wait(0.05):
                return
        self._tell(
            f"Stopping: no more episodes are started, running ones have {self._grace_s:g} s to end. "
            "Press Ctrl-C again to stop at once."
        )
        if not self._over.wait(self._grace_s):
            os.kill(os.getpid(), self.signal or signal.SIGINT)


@contextmanager
def stoppable(tell: Callable[[str], None], what: str) -> Iterator[None]:
    """Work that keeps what is finished: Ctrl-C becomes one sentence and exit status 130."""
    try:
        yield
    except KeyboardInterrupt:
        tell(f"\nStopped during {what}. What was finished is kept: run the same command again to go on.")
        raise SystemExit(128 + signal.SIGINT) from None


class LastWord:
    """Ctrl-C handler of a command around its run: after a run that was stopped, only the summary is left to print."""

    def __init__(self) -> None:
        self.stopped = False

    def __call__(self, _number: int, _frame: FrameType | None) -> None:
        """Not heard after a stop; before it, what Python does anyway."""
        if not self.stopped:
            raise KeyboardInterrupt


@contextmanager
def last_word() -> Iterator[None]:
    """Let a stopped run say its summary and end with its status however often Ctrl-C is pressed.

    For a command whose process ends after a stop: Ctrl-C stays unheard then.  Outside the main thread it does nothing.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handler = LastWord()
    before = signal.signal(signal.SIGINT, handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN if handler.stopped else before)


@contextmanager
def sigint_held() -> Iterator[None]:
    """Hold Ctrl-C back in this thread: worker processes that are started meanwhile inherit that for life.

    A worker ignores Ctrl-C once it runs a job, but until then it would die of it with a traceback.  A signal that
    comes meanwhile is delivered when the block ends.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def shield_worker(parent: int | None = None) -> None:
    """In a worker process: Ctrl-C of the terminal is the parent's business; end when the parent is gone.

    `parent` is the process that asked for the worker, which may be dead before the worker can ask who it was.
    """
    if _SHIELDED.is_set() or not _is_worker():
        return
    _SHIELDED.set()
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    _let_caches_grow()
    threading.Thread(target=_follow, args=(parent or os.getppid(),), daemon=True, name="parent-watch").start()


_SHIELDED = threading.Event()


def _is_worker() -> bool:
    from multiprocessing import process

    return process.parent_process() is not None or "Loky" in process.current_process().name


def _let_caches_grow() -> None:
    """Loky replaces a worker that grew by 300 MB, which here is environments and judges kept on purpose (and bounded).

    It looks only where psutil is installed, and has no public switch.
    """
    executor: Any = sys.modules.get("joblib.externals.loky.process_executor")
    if hasattr(executor, "_MAX_MEMORY_LEAK_SIZE"):
        executor._MAX_MEMORY_LEAK_SIZE = sys.maxsize


def _follow(parent: int) -> None:
    """A parent that was killed cannot say so; an orphan that goes on would only burn the machine."""
    never = threading.Event()
    while os.getppid() == parent:
        never.wait(1.0)
    os._exit(1)
