"""Joblib backends that make an episode durable before its slot takes new work.

How joblib 1.6 dispatches (read in its source): when a task ends, a callback thread fetches the result
(`retrieve_result_callback`), puts it into a queue for the consumer, and under one lock pulls the next task from the
iterator.  The consumer needs the same lock to take results.  So an iterator that waits for the consumer ("a permit
released after append") deadlocks.  The place that is strictly between a result and the next task is
`retrieve_result_callback`, a public part of the backend interface: a mixin settles the result there.

Two more gaps are closed in `submit`.  A pool that breaks between two tasks raises inside the callback thread, where the
exception is lost and the consumer waits for ever: it is turned into a result that raises.  And after a stop, tasks that
joblib had looked ahead to are answered as not run instead of being started.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass
from typing import Any

from harness.interrupt import shield_worker, sigint_held


@dataclass(frozen=True)
class _NotRun:
    """Stands for the result of a task that was not started; `error` is raised in the consumer."""

    error: BaseException | None = None


class Settling:
    """Mixin for a joblib backend: settles each result in the callback, before more work is handed out."""

    settle: Callable[[Any], None]
    stopped: Callable[[], bool]
    unanswered: deque[tuple[Callable[[Any], None], _NotRun]]
    answering: bool = False

    def submit(self, func: Any, callback: Callable[[Any], None]) -> Any:
        """Start a task, unless the run was stopped or the pool is broken."""
        if self.stopped():
            return self._answer(callback, _NotRun())
        try:
            with sigint_held():
                return super().submit(func, callback)  # type: ignore[misc]
        except Exception as error:  # noqa: BLE001  raised in the consumer instead of being lost in a callback thread
            return self._answer(callback, _NotRun(error))

    def _answer(self, callback: Callable[[Any], None], out: _NotRun) -> None:
        """Call back in a loop: each callback submits the next task, which would nest as deep as joblib looked ahead.

        joblib submits under its lock, so only one thread is ever here.
        """
        self.unanswered.append((callback, out))
        if self.answering:
            return
        self.answering = True
        try:
            while self.unanswered:
                earliest, answer = self.unanswered.popleft()
                earliest(answer)
        finally:
            self.answering = False

    def retrieve_result_callback(self, out: Any) -> list[Any]:
        """Results of a batch, each settled. What this raises, the consumer's loop raises."""
        if isinstance(out, _NotRun):
            if out.error is not None:
                raise out.error
            return []
        results: list[Any] = super().retrieve_result_callback(out)  # type: ignore[misc]
        for result in results:
            self.settle(result)
        return results


def stream(
    work: Callable[[Any], Any],
    jobs: Iterable[Any],
    *,
    backend: str,
    workers: int,
    settle: Callable[[Any], None],
    stopped: Callable[[], bool],
    alone: bool = False,
) -> Generator[Any, None, None]:
    """Results as they complete, each settled first.

    Args:
        work: what to do with a job, picklable for loky.
        jobs: pulled lazily; joblib looks `workers` jobs ahead.
        backend: "loky", "threading" or "sequential".
        workers: tasks in flight; 1 of loky or threading runs here, in sequence, unless `alone`.
        settle: called with each result before its slot takes another job (in a callback thread; must be thread-safe).
        stopped: when true, nothing more is started.
        alone: one job at a time in a worker process, so that a death has one suspect.
    """
    if backend == "sequential" or (workers == 1 and not alone):
        for job in jobs:
            if stopped():
                return
            result = work(job)
            settle(result)
            yield result
        return
    from joblib import Parallel, delayed  # 0.2 s that an invocation with nothing to do need not pay

    workers = max(2, workers)
    chosen = _backend(backend, settle, stopped, workers)
    parallel = Parallel(
        n_jobs=workers,
        backend=chosen,
        return_as="generator_unordered",
        pre_dispatch=1 if alone else workers,
        batch_size=1,
        max_nbytes=None,
    )
    yield from parallel(delayed(work)(job) for job in jobs)


def _backend(name: str, settle: Callable[[Any], None], stopped: Callable[[], bool], workers: int) -> Any:
    from joblib.parallel import BACKENDS

    base = BACKENDS[name]
    if name == "loky":
        from multiprocessing import resource_tracker

        # Loky starts it with the first worker, and starting it lets Ctrl-C through again in the thread that does.
        resource_tracker.ensure_running()
    kind = type(f"Settling{base.__name__}", (Settling, base), {})
    options: dict[str, Any] = {}
    if base.supports_inner_max_num_threads:
        options["inner_max_num_threads"] = threads_each(workers)
    if name == "loky":
        # Not only at the first job: a worker whose parent dies before that would wait for work for minutes.
        options |= {"initializer": shield_worker, "initargs": (os.getpid(),)}
    made = kind(**options)
    made.settle, made.stopped, made.unanswered = settle, stopped, deque()
    return made


def threads_each(workers: int) -> int:
    """OpenMP, BLAS and torch threads for each worker process (joblib sets the variables that they read)."""
    import joblib

    return max(1, int(joblib.cpu_count()) // workers)
