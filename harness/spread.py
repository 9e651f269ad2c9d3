"""Spread: the episodes of one machine over several processes with many threads each.

A thread an episode is right for models behind endpoints, until one interpreter is the ceiling.  joblib knows threads or
processes, and a thread of a dask cluster costs as much CPU time an episode (17 ms, measured) as twenty calls.  So this
is the one pool that is our own: a pipe to each process, tickets one way, results the other.

The contract is that of `harness.backends.stream`.  A process that dies ends its pipe, which raises here; the scheduler
then deals with what was lost as with a lost pool of joblib's.
"""

from __future__ import annotations

import math
import os
import queue
import threading
import traceback
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from multiprocessing import get_context, resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, Final

from harness.interrupt import shield_worker, sigint_held
from harness.models.limiter import share_endpoints
from harness.models.threads import cores
from harness.slot import Done
from harness.study import Throughput

EACH: Final = 32  # episodes a process when it is left to us: past that one interpreter delays its own threads
END_S: Final = 2.0  # for a process to find out that it is not needed any more


class WorkerLost(RuntimeError):
    """A worker process died with what it ran."""


def processes_for(throughput: Throughput, workers: int) -> int:
    """Processes that `workers` episodes at once are spread over; 1: the threads are this process's own."""
    if throughput.backend != "threading":
        return 1
    wanted = throughput.processes
    return min(workers, cores(), math.ceil(workers / EACH)) if wanted == "auto" else min(workers, wanted)


@dataclass
class _Member:
    process: BaseProcess
    pipe: Connection
    running: int = 0


def stream(
    work: Callable[[Any], Done],
    jobs: Iterator[Any],
    *,
    workers: int,
    processes: int,
    settle: Callable[[Done], None],
    stopped: Callable[[], bool],
) -> Generator[Done, None, None]:
    """Dones as they complete, each settled first.

    Args:
        work: what to do with a job, picklable.
        jobs: pulled lazily, one a free thread.
        workers: jobs at once, in all processes together.
        processes: how many there are.
        settle: called in this thread with each result before its thread takes another job.
        stopped: when true, nothing more is started.

    Raises:
        WorkerLost: a process died.
    """
    members = [_start(work, math.ceil(workers / processes), processes) for _ in range(processes)]
    pipes = {member.pipe: member for member in members}
    try:
        while True:
            _hand_out(members, jobs, workers, stopped)
            if not any(member.running for member in members):
                return
            for pipe in wait(list(pipes)):
                member = pipes[pipe]  # type: ignore[index]  # what `wait` gives is among what it was given
                result = _received(member)
                member.running -= 1
                settle(result)
                yield result
    finally:
        _end(members)


def _start(work: Callable[[Any], Done], threads: int, processes: int) -> _Member:
    context = get_context("spawn")  # a forked child would inherit locks that threads hold
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(theirs, work, threads, processes), daemon=True, name="spread")
    resource_tracker.ensure_running()  # which comes with the first process and would let Ctrl-C through again
    with sigint_held():  # Ctrl-C of the terminal is this process's business
        process.start()
    theirs.close()  # so that its death ends the pipe
    return _Member(process, ours)


def _hand_out(members: list[_Member], jobs: Iterator[Any], workers: int, stopped: Callable[[], bool]) -> None:
    """To whoever has least to do, until all threads are busy or nothing is left."""
    while sum(member.running for member in members) < workers and not stopped():
        job = next(jobs, None)
        if job is None:
            return
        member = min(members, key=lambda one: one.running)
        try:
            member.pipe.send(job)
        except OSError:
            raise _lost(member) from None
        member.running += 1


def _received(member: _Member) -> Done:
    try:
        result: Done = member.pipe.recv()
    except (EOFError, OSError):
        raise _lost(member) from None
    return result


def _lost(member: _Member) -> WorkerLost:
    member.process.join(END_S)
    return WorkerLost(f"exit code {member.process.exitcode}")


def _end(members: list[_Member]) -> None:
    """Processes end when their pipe does, whatever they are at."""
    for member in members:
        member.pipe.close()
    for member in members:
        member.process.join(END_S)
        if member.process.is_alive():
            member.process.kill()
            member.process.join()
        member.process.close()


def _serve(pipe: Connection, work: Callable[[Any], Done], threads: int, processes: int) -> None:
    """The life of a worker process."""
    shield_worker()
    share_endpoints(processes)
    jobs: queue.SimpleQueue[Any] = queue.SimpleQueue()
    sending = threading.Lock()

    def lane() -> None:
        while True:
            result = work(jobs.get())
            with sending:
                pipe.send(result)

    for _ in range(threads):
        threading.Thread(target=_or_end, args=(lane,), daemon=True, name="lane").start()
    try:
        while True:
            jobs.put(pipe.recv())
    except (EOFError, OSError):
        os._exit(0)  # nobody wants what may still be running, and threads in native code cannot be waited for


def _or_end(lane: Callable[[], None]) -> None:
    """A lane that breaks takes its process along, or its job would be waited for without end."""
    try:
        lane()
    except BaseException:  # noqa: BLE001  said, and the parent finds the pipe ended
        traceback.print_exc()
        os._exit(1)
