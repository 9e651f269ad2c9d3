"""Threads: several workers in one process share its cores instead of each taking all of them.

Torch runs every operation on as many threads as there are cores.  When several workers do so at once, they wait for
each other's threads at the end of each operation (with two workers on two cores that alone made both 8 to 15 times
slower).  Worker processes get their share from joblib (`harness.backends.threads_each`); threads get it here.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

VARIABLE = "OMP_NUM_THREADS"


@contextmanager
def cap_threads(workers: int | None) -> Iterator[int]:
    """For the block, cores // workers torch threads an operation (at least 1); a smaller number already set stays.

    Threads that are started inside the block get the cap, whether torch is loaded before it or within it.

    Args:
        workers: how many will run at once in this process; None or 1 changes nothing.
    """
    import joblib

    given = os.environ.get(VARIABLE, "")
    before = int(given) if given.isdigit() and int(given) > 0 else int(joblib.cpu_count())
    share = max(1, min(before, int(joblib.cpu_count()) // (workers or 1)))
    loaded = sys.modules.get("torch")
    threads = loaded.get_num_threads() if loaded else before
    if share >= threads:
        yield threads
        return
    os.environ[VARIABLE] = str(share)
    _set(share)
    try:
        yield share
    finally:
        if given:
            os.environ[VARIABLE] = given
        else:
            del os.environ[VARIABLE]
        _set(threads)


def _set(threads: int) -> None:
    """Set torch's number in this process, if torch is loaded."""
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.set_num_threads(threads)
