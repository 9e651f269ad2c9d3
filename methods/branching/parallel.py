"""Running units in parallel: results as they come, one thing kept open per worker."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from methods.branching.spec import Throughput

T = TypeVar("T")
_local = threading.local()


def run_all(work: Callable[..., T], jobs: Sequence[tuple[Any, ...]], throughput: Throughput) -> Iterator[T]:
    """`work(*job)` for each job, in any order; `work` must return failures as values."""
    if throughput.backend == "sequential" or throughput.workers == 1 or len(jobs) < 2:
        try:
            for job in jobs:
                yield work(*job)
        finally:
            forget()
        return
    from joblib import Parallel, delayed

    pool = Parallel(
        n_jobs=throughput.workers,
        backend=throughput.backend,
        return_as="generator_unordered",
        pre_dispatch="2*n_jobs",
        batch_size=1,
    )
    yield from pool(delayed(work)(*job) for job in jobs)


def kept(name: object, make: Callable[[], T]) -> T:
    """This thread's object of that name; opening an environment can take seconds, so the last one stays open."""
    held = getattr(_local, "held", None)
    if held is None or held[0] != name:
        forget()
        held = (name, make())
        _local.held = held
    found: T = held[1]
    return found


def forget(close: bool = True) -> None:
    """Let go of what this thread keeps; without `close` when an abandoned call may still be inside it."""
    held = getattr(_local, "held", None)
    _local.held = None
    if held is not None and close:
        held[1].environment.close()
