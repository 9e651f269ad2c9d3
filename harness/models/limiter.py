"""Limiter: how many requests one endpoint is sent at once, found by additive increase, multiplicative decrease.

All threads of a process share one limiter an endpoint, whatever role they ask for.  It judges in rounds of about as
many answers as the limit: a round with more overloads (rate limits, stalls) than `TOLERATED` takes the limit down in
proportion to them, at most to half; a round without that many raises it, by doubling until the first decrease and by
one afterwards, if the limit was used at all.  Judging shares rather than single rejections keeps a server that fails at
random from being asked one request at a time.  Requests that were in flight during a decrease do not count for another.

When the server rejects several requests in a row and names a time, the whole endpoint rests until then; a single
rejection makes only its own request wait.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass

STREAK = 3  # rejections in a row after which everyone rests
TOLERATED = 0.1  # share of overloads in a round that says nothing
SHORTEST = 4  # answers in a round, at least


@dataclass(frozen=True, slots=True)
class Ticket:
    """The right to send one request; `epoch` is the number of decreases before it was given out."""

    epoch: int


_processes = 1  # that ask the same endpoints for one run; the same for all threads, so a plain number will do


def share_endpoints(processes: int) -> None:
    """Say how many processes of this run there are: limiters made afterwards keep to their share of a ceiling."""
    global _processes
    _processes = max(1, processes)


class Limiter:
    """Adaptive number of requests in flight.

    Args:
        ceiling: never more than this in all processes together.
        start: the first limit.
    """

    def __init__(self, ceiling: int = 256, start: int = 64) -> None:
        self.ceiling = max(1, ceiling // _processes)
        self.limit = float(min(start, self.ceiling))
        self.flying = 0
        self.decreases = 0
        self._peak = 0
        self._answers = 0
        self._overloads = 0
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
                    self._peak = max(self._peak, self.flying)
                    return Ticket(self.decreases)
                else:
                    self._changed.wait(deadline - now)

    def release(self, ticket: Ticket, overload: bool = False, retry_after: float | None = None) -> None:
        """Give a ticket back and say how it went; `retry_after` in seconds."""
        with self._changed:
            self.flying -= 1
            self._streak = self._streak + 1 if overload else 0
            if retry_after is not None and self._streak >= STREAK:
                self._rest_until = max(self._rest_until, time.monotonic() + retry_after)
            if ticket.epoch == self.decreases:
                self._answers += 1
                self._overloads += overload
                if self._answers >= max(SHORTEST, int(self.limit)):
                    self._judge()
            self._changed.notify(max(1, int(self.limit) - self.flying))

    def _judge(self) -> None:
        """The end of a round."""
        share = self._overloads / self._answers
        if share > TOLERATED:
            self.limit = max(1.0, self.limit * (1.0 - share / 2))
            self.decreases += 1
        elif 2 * self._peak > self.limit:  # a limit that nobody comes near says nothing
            self.limit = min(float(self.ceiling), self.limit + (1.0 if self.decreases else self.limit))
        self._answers = self._overloads = 0
        self._peak = self.flying
