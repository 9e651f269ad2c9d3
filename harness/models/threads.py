"""Threads: how many CPU threads a model may use when several episodes run on this machine at once.

Torch takes one thread a core for itself.  With a worker a core that is cores squared, and threads that wait for each
other by spinning slow each other down (8 to 15 times, measured).  So whoever runs jobs says how many run at once, and
every model that is loaded afterwards takes its share of them.  A number that was asked for is obeyed, and so is
`OMP_NUM_THREADS`.
"""

from __future__ import annotations

import os

_jobs = 1  # running at once on this machine; the same for all threads of a process, so a plain number will do


def share_cores(jobs: int) -> None:
    """Say how many jobs run on this machine at once."""
    global _jobs
    _jobs = max(1, jobs)


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def cap(threads: int | None = None) -> int:
    """Limit torch's CPU threads to a job's share of the cores, or set them to `threads`; gives what holds now."""
    import torch

    torch.set_num_threads(min(torch.get_num_threads(), max(1, cores() // _jobs)) if threads is None else threads)
    return int(torch.get_num_threads())
