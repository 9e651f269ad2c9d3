"""Spread: the episodes of one machine over several processes with many threads each.

A thread an episode is right for models behind endpoints, until one interpreter is the ceiling.  joblib knows threads or
processes, and a thread of a dask cluster costs as much CPU time an episode (17 ms, measured) as twenty calls.  So this
is the one pool that is our own: a pipe to each process, tickets one way, results the other.

The contract is that of `harness.backends.stream`, but for a death: `lost` is told what ran in the process that died,
another takes its place, and the others never notice.  A process that dies before it could take work says that none can.
"""

from __future__ import annotations

import math
import os
import queue
import threading
import traceback
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, field
from multiprocessing import get_context, resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, Final

from harness.errors import UsageError
from harness.interrupt import shield_worker, sigint_held
from harness.models.limiter import share_endpoints
from harness.models.threads import cores
from harness.slot import Done, Ticket
from harness.study import Throughput

EACH: Final = 32  # episodes a process when it is left to us: past that one interpreter delays its own threads
END_S: Final = 2.0  # for a process to find out that it is not needed any more
LOOK_S: Final = 0.5  # between two looks at whether processes live: a child of theirs may hold a dead one's pipe open


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
    ready: bool = False
    running: set[int] = field(default_factory=set)


def stream(
    work: Callable[[Ticket], Done],
    tickets: Iterator[Ticket],
    *,
    workers: int,
    processes: int,
    settle: Callable[[Done], None],
    stopped: Callable[[], bool],
    lost: Callable[[set[int], WorkerLost], None],
) -> Generator[Done, None, None]:
    """Results as they complete, each settled first.

    Args:
        work: what to do with a ticket, picklable.
        tickets: pulled lazily, one a free thread.
        workers: tickets at once, in all processes together.
        processes: how many there are.
        settle: called in this thread with each result before its thread takes another ticket.
        stopped: when true, nothing more is started.
        lost: told the numbers of the tickets that were in a process that died.

    Raises:
        UsageError: processes cannot be started.
    """
    crew = _Crew(work, math.ceil(workers / processes), processes)
    try:
        while crew.hand_out(tickets, workers, stopped):
            for done in crew.results(lost):
                settle(done)
                yield done
    finally:
        crew.end()


class _Crew:
    """The processes; one that dies is replaced."""

    def __init__(self, work: Callable[[Ticket], Done], threads: int, processes: int) -> None:
        self._arguments = (work, threads, processes)
        self._members: list[_Member] = []
        self._wanted = processes

    def hand_out(self, tickets: Iterator[Ticket], workers: int, stopped: Callable[[], bool]) -> bool:
        """To whoever has least to do, while threads are free; gives whether there is anything to wait for."""
        while len(self._members) < self._wanted:
            self._members.append(_start(*self._arguments))
        ready = [member for member in self._members if member.ready]
        threads = self._arguments[1]
        while ready and sum(len(member.running) for member in ready) < workers and not stopped():
            member = min(ready, key=lambda one: len(one.running))
            ticket = next(tickets, None) if len(member.running) < threads else None
            if ticket is None:
                break
            member.running.add(ticket.number)
            try:
                member.pipe.send(ticket)
            except OSError:
                break  # it is dead, which `results` will find
        return any(member.running for member in self._members) or not (ready or stopped())

    def results(self, lost: Callable[[set[int], WorkerLost], None]) -> Iterator[Done]:
        """What is there, or nothing after a while."""
        pipes = {member.pipe: member for member in self._members}
        for pipe in wait(list(pipes), LOOK_S):
            member = pipes[pipe]  # type: ignore[index]  # what `wait` gives is among what it was given
            found = _received(member)
            if isinstance(found, Done):
                member.running.discard(found.number)
                yield found
        for member in [one for one in self._members if not one.process.is_alive()]:
            while member.pipe.poll() and isinstance(found := _received(member), Done):
                member.running.discard(found.number)
                yield found
            self._bury(member, lost)

    def _bury(self, member: _Member, lost: Callable[[set[int], WorkerLost], None]) -> None:
        self._members.remove(member)
        code = member.process.exitcode
        member.process.close()
        member.pipe.close()
        if not member.ready:
            raise UsageError(
                f"A worker process ended before it could work (exit code {code}); what it said is above. In a script, "
                "start runs below `if __name__ == '__main__':`; elsewhere set `processes: 1`. What is done is stored."
            )
        lost(member.running, WorkerLost(f"exit code {code}"))

    def end(self) -> None:
        """Processes end when their pipe does, whatever they are at."""
        for member in self._members:
            member.pipe.close()
        for member in self._members:
            member.process.join(END_S)
            if member.process.is_alive():
                member.process.kill()
                member.process.join()
            member.process.close()


def _start(work: Callable[[Ticket], Done], threads: int, processes: int) -> _Member:
    context = get_context("spawn")  # a forked child would inherit locks that threads hold
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(theirs, work, threads, processes), name="spread")
    try:
        resource_tracker.ensure_running()  # which comes with the first process and would let Ctrl-C through again
        with sigint_held():  # Ctrl-C of the terminal is this process's business
            process.start()
    except Exception as error:
        ours.close()
        raise UsageError(
            f"Worker processes cannot be started ({type(error).__name__}: {error}). Set `processes: 1` to run every "
            "episode in this process."
        ) from error
    finally:
        theirs.close()  # so that its death ends the pipe
    return _Member(process, ours)


def _received(member: _Member) -> Done | None:
    """A result; None for the word that it is ready, or at the end of the pipe."""
    try:
        found: Done | None = member.pipe.recv()
    except (EOFError, OSError):
        member.process.join(END_S)
        member.process.kill()  # nothing can be heard of it any more
        member.process.join()
        return None
    member.ready = True
    return found


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
        pipe.send(None)  # ready
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
