"""Guard: one call with a time limit, and a clock that knows whose time it is.

Calls run on a helper thread so that a hanging plugin cannot hold an episode; a call that outlives its limit is
abandoned with its thread, and whoever owns the object it was using must not use that object again.  A call that holds
the interpreter lock for ever can only be stopped by killing the process, which is the scheduler's business.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from harness.interrupt import StopNow
from harness.records import Role

T = TypeVar("T")
GRACE_S = 1.0  # a call that knows its limit ends itself so much earlier, at most
Job = tuple[Callable[[], Any], "queue.SimpleQueue[tuple[bool, Any]]"]


class CallTimeout(Exception):
    """A call did not come back in time; `seconds` is the limit it had."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"no answer within {seconds:.3g} s")
        self.seconds = seconds


def give_up_at(deadline: float | None, call_s: float | None) -> float | None:
    """When a call that begins now should end by itself: a little before it is abandoned with its thread.

    Args:
        deadline: `time.monotonic()` at which the step or the episode ends, or None.
        call_s: seconds that one call may take, or None.
    """
    now = time.monotonic()
    ends = [end for end in (deadline, None if call_s is None else now + call_s) if end is not None]
    return min(ends) - min(GRACE_S, 0.1 * max(0.0, min(ends) - now)) if ends else None


class Clock:
    """Working seconds by role; a nested role stops the outer one, so that roles add up to the whole."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._stack: list[tuple[str, object]] = []
        self._since = 0.0

    def _settle(self) -> None:
        now = time.perf_counter()
        if self._stack:
            top = self._stack[-1][0]
            self.seconds[top] = self.seconds.get(top, 0.0) + now - self._since
        self._since = now

    @contextmanager
    def role(self, role: Role) -> Iterator[None]:
        """Time inside the block goes to `role`."""
        self._settle()
        entry = (role, object())
        self._stack.append(entry)
        try:
            yield
        finally:
            # An abandoned call may end long after the blocks around it did: then there is nothing left to close.
            if entry in self._stack:
                self._settle()
                del self._stack[self._stack.index(entry) :]

    def move(self, source: Role, target: Role, seconds: float) -> None:
        """Give time that `source` was charged for to `target` (a simulator working inside an environment's step)."""
        if seconds > 0:
            self.seconds[source] = self.seconds.get(source, 0.0) - seconds
            self.seconds[target] = self.seconds.get(target, 0.0) + seconds

    def take(self) -> dict[str, float]:
        """Seconds since the last `take`, and start again."""
        self._settle()
        taken, self.seconds = self.seconds, {}
        return taken


class Guard:
    """Runs calls, on a helper thread when they have a limit."""

    def __init__(self) -> None:
        self._jobs: queue.SimpleQueue[Job | None] | None = None

    def _thread(self) -> queue.SimpleQueue[Job | None]:
        if self._jobs is None:
            jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
            threading.Thread(target=_serve, args=(jobs,), daemon=True, name="guard").start()
            self._jobs = jobs
        return self._jobs

    def call(self, work: Callable[[], T], limit: float | None = None) -> T:
        """`work()`; raises `CallTimeout` when it takes longer than `limit` seconds, else what `work` raises.

        What `work` raises beside errors proper (`KeyboardInterrupt`, a cancelled coroutine) comes as `RuntimeError`:
        from a plugin it is a mistake, and must not stop the study.
        """
        if limit is None:
            return _proper(work)
        if limit <= 0:
            raise CallTimeout(limit)
        answer: queue.SimpleQueue[tuple[bool, Any]] = queue.SimpleQueue()
        self._thread().put((work, answer))
        try:
            fine, value = answer.get(timeout=limit)
        except queue.Empty:
            self._jobs = None  # the thread is lost with the call; the next call gets a new one
            raise CallTimeout(limit) from None
        if not fine:
            raise value
        result: T = value
        return result

    def close(self) -> None:
        """End the helper thread."""
        if self._jobs is not None:
            self._jobs.put(None)
            self._jobs = None


def _proper(work: Callable[[], T]) -> T:
    try:
        return work()
    except (Exception, SystemExit, StopNow):
        raise
    except BaseException as error:
        raise RuntimeError(f"it raised {type(error).__name__}: {error}".rstrip(": ")) from error


def _serve(jobs: queue.SimpleQueue[Job | None]) -> None:
    while (job := jobs.get()) is not None:
        work, answer = job
        try:
            answer.put((True, _proper(work)))
        except BaseException as error:  # noqa: BLE001  handed to the caller, who raises it
            answer.put((False, error))
