"""Batcher: calls of threads that wait at the same time become one call.

There is no engine thread and no waiting for company: whoever finds the worker free takes what has queued up meanwhile
and does it for everybody.  So a lone caller pays nothing, and the busier the worker is, the larger its batches are.
An error is its cause's alone: when a batch fails, each of its requests is tried by itself.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar, cast

Ask = TypeVar("Ask")
Got = TypeVar("Got")


@dataclass(eq=False)
class _Job(Generic[Ask, Got]):
    """One request on its way; `answer` or `error` is set once it is done."""

    ask: Ask
    deadline: float | None
    queued: float = field(default_factory=time.monotonic)
    begun: float = 0.0
    done: bool = False
    answer: Got | None = None
    error: BaseException | None = None

    @property
    def late(self) -> bool:
        return self.deadline is not None and time.monotonic() >= self.deadline


class Batcher(Generic[Ask, Got]):
    """Callable in front of a worker that answers one batch at a time.

    Args:
        run: answers a batch, in its order.
        fits: whether requests may share a batch; a single one always may.
    """

    def __init__(self, run: Callable[[list[Ask]], Sequence[Got]], fits: Callable[[list[Ask]], bool]) -> None:
        self.sizes: Counter[int] = Counter()  # how many batches there were of each size
        self._run = run
        self._fits = fits
        self._queue: list[_Job[Ask, Got]] = []
        self._busy = False
        self._changed = threading.Condition()

    def __call__(self, ask: Ask, deadline: float | None = None) -> tuple[Got, float]:
        """The answer to one request, and the seconds that it queued before its batch began.

        Raises:
            TimeoutError: `deadline` (`time.monotonic()`) passed before the answer came.
            Exception: what `run` raises for this request.
        """
        job: _Job[Ask, Got] = _Job(ask, deadline)
        with self._changed:
            self._queue.append(job)
            while self._busy and not job.done and not job.late:
                self._changed.wait(None if deadline is None else max(0.0, deadline - time.monotonic()))
            if not job.done and job.late:
                if job in self._queue:
                    self._queue.remove(job)
                raise TimeoutError("the deadline passed before the answer came")
            batch = [] if job.done else self._take(job)
        if batch:
            self._lead(batch)
        if job.error is not None:
            raise job.error
        return cast(Got, job.answer), job.begun - job.queued

    def _take(self, own: _Job[Ask, Got]) -> list[_Job[Ask, Got]]:
        """Own the worker, and take what fits one batch with `own`, first come first; the lock is held."""
        self._busy = True
        batch = [own]
        for job in self._queue:
            if job is not own and not job.late and self._fits([*(one.ask for one in batch), job.ask]):
                batch.append(job)
        self._queue = [job for job in self._queue if job not in batch]
        return batch

    def _lead(self, batch: list[_Job[Ask, Got]]) -> None:
        """Answer a batch for everybody in it."""
        try:
            self._answer(batch)
        except BaseException as error:  # an interrupt of this thread: the others must not wait for ever
            for job in batch:
                job.error = job.error or RuntimeError(f"the thread that led this batch was stopped ({error!r})")
            raise
        finally:
            with self._changed:
                self._busy = False
                for job in batch:
                    job.done = True
                self._changed.notify_all()

    def _answer(self, batch: list[_Job[Ask, Got]]) -> None:
        self.sizes[len(batch)] += 1
        for job in batch:
            job.begun = time.monotonic()
        try:
            answers = self._run([job.ask for job in batch])
        except Exception as error:  # noqa: BLE001  raised in the thread whose request it is
            if len(batch) == 1:
                batch[0].error = error
                return
            for job in batch:
                self._answer([job])
            return
        for job, answer in zip(batch, answers, strict=True):
            job.answer = answer
