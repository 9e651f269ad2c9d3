"""Guard: one call with a time limit, and a clock that knows whose time it is.

Calls run on a helper thread so that a hanging plugin cannot hold an episode; a call that outlives its limit is
abandoned with its thread, and whoever owns the object it was using must not use that object again.  A call that holds
the interpreter lock for ever can only be stopped by killing the process, which is the scheduler's business.
"""

from __future__ import annotations

import math
import os
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, TypeVar

from harness.interrupt import StopNow
from harness.records import Role

T = TypeVar("T")
Tasks = queue.SimpleQueue[Callable[[], bool]]  # each says whether its guard still has the thread
SLACK_S = 0.001  # a limit is held so much late rather than wake the watching thread for each call
GRACE_S = 1.0  # a call that knows its limit ends itself so much earlier, at most


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


_NOW = threading.local()


def ends_at() -> float | None:
    """When the guarded call that this thread is in should end by itself, by `time.monotonic()`; None: no limit.

    For who is called without a deadline: an environment's step may ask a model for the simulated customer.
    """
    found: float | None = getattr(_NOW, "ends_at", None)
    return found


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


@dataclass(frozen=True, slots=True)
class Call:
    """What a plan wants done; `limit` in seconds, None: none."""

    work: Callable[[], Any]
    limit: float | None


Plan = Generator[Call, Any, T]  # yields calls, is sent what they gave (or thrown what they raised), returns a T


class Guard:
    """Runs calls, on a helper thread when they have a limit."""

    def __init__(self) -> None:
        self._tasks: Tasks | None = None

    def _put(self, task: Callable[[], bool]) -> None:
        if self._tasks is None:
            self._tasks = _rested()
        self._tasks.put(task)

    def call(self, work: Callable[[], T], limit: float | None = None) -> T:
        """`work()`; raises `CallTimeout` when it takes longer than `limit` seconds, else what `work` raises.

        What `work` raises beside errors proper (`KeyboardInterrupt`, a cancelled coroutine) comes as `RuntimeError`:
        from a plugin it is a mistake, and must not stop the study.
        """
        return _proper(work) if limit is None else self.run(_alone(work, limit))

    def run(self, plan: Plan[T], limited: bool = True) -> T:
        """What the plan returns, or raise what it raises; a call past its limit raises `CallTimeout` in the plan.

        Plan and calls run on the helper thread, while this one watches.  When a call is past its limit, the plan goes
        on on a new thread: nothing is handed between threads for a call that comes back, which with many episodes in
        one process was a third of their CPU time.

        Args:
            plan: a generator of `Call`.
            limited: whether any call has a limit; if not, everything runs on this thread.
        """
        relay = Relay(plan)
        if not limited:
            relay.lead(0)
            return relay.result()
        try:
            self._put(partial(relay.lead, 0))
            while (late := relay.watch()) is not None:
                self._tasks = None  # the thread is lost with the call
                self._put(partial(relay.lead, late.leader, late.error))
            return relay.result()
        finally:
            if relay.leave():
                self._tasks = None

    def close(self) -> None:
        """Give the helper thread back, to whoever needs one next."""
        if self._tasks is not None:
            _RESTING.append(self._tasks)
            self._tasks = None


@dataclass(frozen=True, slots=True)
class Late:
    """A call is past its limit: the number of the thread that goes on, and what it is to raise in the plan."""

    leader: int
    error: CallTimeout


class Relay(Generic[T]):
    """A plan on its way through one or more threads, of which one leads.

    While a call runs the plan is suspended, so another thread can go on with it; the one that still waits for the call
    finds out that it no longer leads.
    """

    def __init__(self, plan: Plan[T]) -> None:
        self._plan = plan
        self._changed = threading.Condition()
        self._leader = 0
        self._until = math.inf  # when the call that runs is late
        self._limit = 0.0
        self._looks_at = math.inf  # when the watching thread wakes up by itself
        self._end: tuple[bool, Any] | None = None

    def lead(self, me: int, error: BaseException | None = None) -> bool:
        """Go on with the plan until it ends (true) or the lead is taken away (false)."""
        value: Any = None
        while True:
            try:
                call = self._plan.send(value) if error is None else self._plan.throw(error)
            except StopIteration as stop:
                return self._ended(me, True, stop.value)
            except BaseException as wrong:  # noqa: BLE001  handed to the watching thread, which raises it
                return self._ended(me, False, wrong)
            value, error = None, None
            if call.limit is not None and call.limit <= 0:
                error = CallTimeout(call.limit)
                continue
            self._begins(call.limit)
            _NOW.ends_at = give_up_at(None, call.limit)
            try:
                value = _proper(call.work)
            except BaseException as wrong:  # noqa: BLE001  raised in the plan
                error = wrong
            finally:
                _NOW.ends_at = None
            if not self._leads(me):
                return False

    def _begins(self, limit: float | None) -> None:
        if limit is None:
            return
        with self._changed:
            self._until, self._limit = time.monotonic() + limit, limit
            if self._until < self._looks_at - SLACK_S:
                self._changed.notify_all()

    def _leads(self, me: int) -> bool:
        """Whether this thread still leads when its call came back."""
        with self._changed:
            if self._leader != me:
                return False
            self._until = math.inf
            return True

    def _ended(self, me: int, fine: bool, value: Any) -> bool:
        with self._changed:
            if self._leader != me:
                return False
            self._end = fine, value
            self._changed.notify_all()
            return True

    def watch(self) -> Late | None:
        """Wait for the end, or for a call that is late: the lead is taken away from the thread that waits for it."""
        with self._changed:
            while self._end is None:
                left = self._until - time.monotonic()
                if left <= 0:
                    self._leader, self._until = self._leader + 1, math.inf
                    return Late(self._leader, CallTimeout(self._limit))
                self._looks_at = self._until
                self._changed.wait(None if left == math.inf else left)
            return None

    def leave(self) -> bool:
        """Nobody watches any more; whether that took the lead from a thread, which is lost with its call."""
        with self._changed:
            self._leader += 1
            return self._end is None

    def result(self) -> T:
        """What the plan returned; raises what it raised."""
        if self._end is None:
            raise RuntimeError("the plan has not ended")
        fine, value = self._end
        if not fine:
            raise value
        result: T = value
        return result


def _alone(work: Callable[[], T], limit: float | None) -> Plan[T]:
    result: T = yield Call(work, limit)
    return result


def _proper(work: Callable[[], T]) -> T:
    try:
        return work()
    except (SystemExit, StopNow):
        raise
    except BaseException as error:
        if isinstance(error, Exception) and not isinstance(error, StopIteration | StopAsyncIteration):
            raise
        raise RuntimeError(f"it raised {type(error).__name__}: {error}".rstrip(": ")) from error


_RESTING: deque[Tasks] = deque()  # of helper threads without a guard; starting one costs as much as a step


def _rested() -> Tasks:
    try:
        return _RESTING.pop()
    except IndexError:
        tasks: Tasks = queue.SimpleQueue()
        threading.Thread(target=_serve, args=(tasks,), daemon=True, name="guard").start()
        return tasks


_WORKING: set[threading.Thread] = set()  # helper threads in a task


def left_behind() -> int:
    """How many helper threads are in a call; when nobody waits for one any more, these were abandoned."""
    return len(_WORKING)


def _serve(tasks: Tasks) -> None:
    me = threading.current_thread()
    while True:
        task = tasks.get()
        _WORKING.add(me)
        try:
            kept = task()
        finally:
            _WORKING.discard(me)
        if not kept:
            _RESTING.append(tasks)  # its guard went on without it


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_RESTING.clear)  # the threads stayed with the parent
