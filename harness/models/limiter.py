"""Limiter: how many requests one endpoint is sent at once, found by additive increase, multiplicative decrease.

All threads of a process share one limiter an endpoint, whatever role they ask for.  It begins with a slow start: the
limit grows by one with each answer until the first overload, afterwards by about one a round; an overload takes it down
to a factor, at most once for the requests that were in flight together.  When the server rejects several requests in a
row and names a time, the whole endpoint rests until then; a single rejection makes only its own request wait.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass

STREAK = 3  # rejections in a row after which everyone rests


@dataclass(frozen=True, slots=True)
class Ticket:
    """The right to send one request; `epoch` is the number of decreases before it was given out."""

    epoch: int


class Limiter:
    """Adaptive number of requests in flight.

    Args:
        ceiling: never more than this.
        start: the first limit.
        factor: what an overload leaves of the limit.
    """

    def __init__(self, ceiling: int = 256, start: int = 32, factor: float = 0.7) -> None:
        self.ceiling = max(1, ceiling)
        self.limit = float(min(start, self.ceiling))
        self.factor = factor
        self.flying = 0
        self.decreases = 0
        self._slow_start = True
        self._streak = 0
        self._rest_until = 0.0
        self._changed = threading.Condition()

    def acquire(self, deadline: float) -> Ticket | None:
        """A ticket, or None when `deadline` (`time.monotonic()`) passed first."""
        with self._changed:
            while True:
                now = time.monotonic()
                if now >= deadline:
                    self._changed.notify()  # hand on a wake-up that was meant for whoever can use it
                    return None
                if now < self._rest_until:
                    self._changed.wait(min(deadline, self._rest_until) - now)
                elif self.flying < int(self.limit):
                    self.flying += 1
                    return Ticket(self.decreases)
                else:
                    self._changed.wait(deadline - now)

    def release(self, ticket: Ticket, overload: bool = False, retry_after: float | None = None) -> None:
        """Give a ticket back and say how it went; `retry_after` in seconds."""
        with self._changed:
            self.flying -= 1
            if overload:
                self._overloaded(ticket, retry_after)
            else:
                self._streak = 0
                step = 1.0 if self._slow_start else 1.0 / self.limit
                if self.flying + 1 > self.limit / 2:  # a limit that nobody reaches says nothing
                    self.limit = min(float(self.ceiling), self.limit + step)
            self._changed.notify(max(1, int(self.limit) - self.flying))

    def _overloaded(self, ticket: Ticket, retry_after: float | None) -> None:
        self._streak += 1
        if ticket.epoch == self.decreases:
            self.limit = max(1.0, self.limit * self.factor)
            self.decreases += 1
            self._slow_start = False
        if retry_after is not None and self._streak >= STREAK:
            self._rest_until = max(self._rest_until, time.monotonic() + retry_after)
