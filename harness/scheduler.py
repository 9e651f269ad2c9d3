"""Scheduler: jobs through a joblib backend into the ledger, whatever happens on the way.

* A result is appended and flushed before its slot takes new work (`harness.backends` says how).
* An episode that failed and may be tried again goes to the front of the same queue.
* When a worker process dies, joblib gives up the whole pool.  What was running is then run one job at a time, so that
  the next death has one suspect; after `policy.worker_deaths` deaths a job is recorded as failed.  Then work goes on in
  parallel as before.  A dask cluster replaces its workers and runs their jobs again; what it gives up is run once more
  at the end, one job at a time, by the same rule.
* What is to do is always planned minus stored; nothing is remembered elsewhere.
"""

from __future__ import annotations

import re
import threading
import warnings
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import ExitStack, closing
from dataclasses import replace

from harness import spread
from harness.backends import stream
from harness.cluster import Cluster
from harness.errors import UsageError
from harness.interrupt import Interrupt
from harness.ledger import RETRYABLE, Ledger
from harness.records import Episode, Role, Status
from harness.slot import Done, Slot, Ticket, Watchdog
from harness.study import LocalBackend, Policy, Throughput
from harness.worker import Job, failed, plugins_of, run_job


class Scheduler:
    """One invocation's work: `run` it once, on the main thread if Ctrl-C is to work."""

    def __init__(
        self,
        jobs: Iterable[Job],
        ledger: Ledger,
        policy: Policy,
        throughput: Throughput,
        *,
        run: Callable[[Job], Episode] = run_job,
        seen: Callable[[Episode], None] = lambda _episode: None,
        tell: Callable[[str], None] = lambda _text: None,
    ) -> None:
        self._ledger, self._policy, self._throughput = ledger, policy, throughput
        self._unseen: dict[int, Episode] = {}  # stored, not yet passed on
        self._run, self._seen, self._tell = run, seen, tell
        self._mutex = threading.Lock()
        # A deque is taken as it is and emptied: a second list would hold every job to the end.
        self._queue = jobs if isinstance(jobs, deque) else deque(jobs)
        self._suspects: deque[Job] = deque()
        self._out: dict[int, Job] = {}
        self._deaths: dict[tuple[str, str], int] = {}
        self._tries: dict[tuple[str, str], int] = {}
        self._numbers = 0
        self._failures = 0
        self._shot = False
        self._cluster: Cluster | None = None
        self.workers = resolve_workers(throughput, len(self._queue))
        self._processes = spread.processes_for(throughput, self.workers)
        self.interrupt = Interrupt(policy.stop_grace_s, tell)

    @property
    def gave_up(self) -> bool:
        """Whether too many episodes failed (`policy.max_failures`)."""
        most = self._policy.max_failures
        return most is not None and self._failures >= most

    @property
    def stopped(self) -> bool:
        """Whether no more work is handed out: a signal came, or too many episodes failed."""
        return self.interrupt.requested or self.gave_up

    def run(self) -> int | None:
        """Run everything; the exit status of a signal, or None when none came. Raises `LedgerError`."""
        at_once = None
        with self.interrupt:
            try:
                with ExitStack() as ends:
                    watchdog = Watchdog(self._hard_limit() if self._killable() else None, self._overdue)
                    ends.callback(watchdog.close)
                    if self._throughput.backend == "loky":
                        ends.callback(_free_workers)
                    if self._throughput.backend == "dask":
                        self._cluster = ends.enter_context(self._connected())
                    ends.callback(self.interrupt.wind_up)  # last in, first out
                    while (self._queue or self._suspects) and not self.stopped:
                        self._round(watchdog.folder)
            except KeyboardInterrupt:
                self.interrupt.wind_up()
                at_once = 130
                self._tell("Stopped at once; running episodes were given up and will be run again.")
        return self.interrupt.exit_status if self.interrupt.requested else at_once

    def _killable(self) -> bool:
        return self._processes > 1 or (self._throughput.backend == "loky" and self.workers > 1)

    def _hard_limit(self) -> float | None:
        limit = self._policy.episode_timeout_s
        return None if limit is None else limit + self._policy.kill_after_s

    def _connected(self) -> Cluster:
        used = self._throughput
        return Cluster(
            used.address,
            workers=used.workers,
            wait_s=used.worker_wait_s,
            limit_s=self._hard_limit(),
            plugins=frozenset(plugin for job in self._queue for plugin in plugins_of(job.cell)),
            tell=self._tell,
        )

    def _stream(self, markers: str | None, alone: bool) -> Generator[Done, None, None]:
        tickets = self._feed(self._suspects if alone else self._queue)
        if self._cluster is not None:
            return self._cluster.stream(
                self._run,
                tickets,
                settle=self._settle,
                stopped=lambda: self.stopped,
                lost=lambda number, error, deaths: self._blame(number, error, alone, deaths),
                overdue=self._overdue,
                alone=alone,
            )
        slot = Slot(self._run, markers, self.workers)
        if self._processes > 1:
            return spread.stream(
                slot,
                tickets,
                workers=1 if alone else self.workers,
                processes=1 if alone else self._processes,
                settle=self._settle,
                stopped=lambda: self.stopped,
                lost=lambda numbers, error: self._lost(numbers, error, alone),
            )
        return stream(
            slot,
            tickets,
            backend=self._throughput.backend,
            workers=self.workers,
            settle=self._settle,
            stopped=lambda: self.stopped,
            alone=alone,
        )

    def _round(self, markers: str | None) -> None:
        """Run until the queue is empty, the run is stopped, or a worker dies."""
        alone = bool(self._suspects)
        results = self._stream(markers, alone)
        try:
            with warnings.catch_warnings():
                # joblib warns of abandoned tasks after a stop, and loky of workers that it replaces; both are intended.
                warnings.filterwarnings("ignore", category=UserWarning, module=r"joblib\..*")
                with closing(results):
                    for done in results:
                        self._show(done.number)
        except UsageError:
            raise
        except Exception as error:  # noqa: BLE001  a lost pool: what it held is run again, with a limit
            self._bury(error, alone)
        else:
            self._take_back(self._suspects if alone else self._queue)
        # A pool that is lost takes along results that are already durable: they are shown all the same.
        for number in list(self._unseen):
            self._show(number)

    def _show(self, number: int) -> None:
        """Pass a stored row on, once; a result that came after the watchdog's row was not stored and is not shown."""
        with self._mutex:
            episode = self._unseen.pop(number, None)
        if episode is not None:
            self._seen(episode)

    def _feed(self, source: deque[Job]) -> Iterator[Ticket]:
        while source and not self.stopped:
            with self._mutex:
                self._numbers += 1
                ticket = Ticket(self._numbers, source.popleft())
                self._out[ticket.number] = ticket.job
            yield ticket

    def _settle(self, done: Done) -> None:
        """Make one result durable. Runs in a callback thread; what it raises ends the run."""
        number, episode = done.number, done.episode
        with self._mutex:
            job = self._out.pop(number, None)
        if job is None:
            return  # the watchdog was first
        same = episode.attempt == job.attempt
        stored = episode if same else replace(episode, attempt=job.attempt)
        self._ledger.append(stored, done.row if same else None)
        with self._mutex:
            self._unseen[number] = stored
        if episode.status in RETRYABLE:
            with self._mutex:
                self._again(job)

    def _again(self, job: Job) -> None:
        self._tries[job.key] = self._tries.get(job.key, 1) + 1
        if self._tries[job.key] <= self._policy.attempts:
            self._queue.appendleft(replace(job, attempt=job.attempt + 1))
        else:
            self._failures += 1

    def _give_up(self, number: int, job: Job, reason: str, boundary: Role, status: Status, wall_s: float = 0.0) -> None:
        episode = failed(job, reason, boundary, status, wall_s=wall_s)
        self._settle(Done(number, episode))
        self._show(number)

    def _overdue(self, number: int, age: float) -> bool:
        with self._mutex:
            job = self._out.get(number)
            self._shot = self._shot or job is not None
        if job is None:
            return False
        reason = f"no end after {age:.0f} s; its worker process was killed"
        self._give_up(number, job, reason, "harness", "timeout", wall_s=age)
        return True

    def _take_back(self, source: deque[Job]) -> None:
        """Jobs that were handed out and not run: joblib had only looked ahead to them."""
        with self._mutex:
            source.extendleft(reversed(self._out.values()))
            self._out.clear()

    def _blame(self, number: int, error: Exception, alone: bool, deaths: int) -> None:
        """Workers died of a job, or so it seems: it is a suspect until it was alone and they died all the same."""
        with self._mutex:
            job = self._out[number]
        total = self._deaths[job.key] = self._deaths.get(job.key, 0) + deaths
        if alone and total >= self._policy.worker_deaths:
            self._give_up(number, job, f"its worker process died {total} times ({_short(error)})", "harness", "failed")
            return
        with self._mutex:
            self._suspects.append(self._out.pop(number))
        if self._cluster is not None:
            self._tell(f"{deaths} workers died while they ran {job.task_id!r} of {job.cell}; it is run again, alone.")

    def _lost(self, numbers: set[int], error: Exception, alone: bool) -> None:
        """One process of several died, with these; what the watchdog gave up is none of them any more."""
        with self._mutex:
            running = sorted(numbers & self._out.keys())
        if running and not alone:
            self._say_death(error, len(running))
        for number in running:
            self._blame(number, error, alone, 1)

    def _say_death(self, error: Exception, episodes: int) -> None:
        self._tell(
            f"A worker process died ({_short(error)}); the {episodes} episode(s) that were running with it "
            "are run again, one at a time."
        )

    def _bury(self, error: Exception, alone: bool) -> None:
        """A pool is lost: decide for each job that it held."""
        with self._mutex:
            lost = list(self._out.items())
            shot, self._shot = self._shot, False
        # joblib hands out in order, so the oldest are those that were running; the rest it had only looked ahead to.
        running = lost[: 1 if alone else self.workers]
        if shot:
            running = []
        for number, _ in running:
            self._blame(number, error, alone, 1)
        if running and not alone:
            self._say_death(error, len(running))
        self._take_back(self._suspects if alone else self._queue)


def resolve_workers(throughput: Throughput, episodes: int | None = None) -> int:
    """How many episodes run at once: `auto` is one a usable core; never more than there are `episodes` to run.

    Who asked for several keeps two: with one, the episode would run in this process, which must outlive it.
    """
    if throughput.backend == "sequential":
        return 1
    wanted = throughput.workers
    if throughput.backend == "dask":
        return 1 if wanted == "auto" else wanted  # the cluster says how many when it is asked
    if wanted == "auto":
        import joblib

        wanted = int(joblib.cpu_count())
    return wanted if episodes is None else min(wanted, max(2, episodes))


def resolve_here(throughput: Throughput) -> tuple[LocalBackend, int]:
    """Backend and workers for work that is not episodes (training data, audits): a cluster does not take it."""
    used = Throughput() if throughput.backend == "dask" else throughput
    return "loky" if used.backend == "dask" else used.backend, resolve_workers(used)


def _short(error: Exception) -> str:
    """The exit codes that loky found, or else the beginning of its message."""
    codes = re.search(r"exit codes? of the workers? (?:are|is) (\{.*?\})", str(error))
    text = f"exit codes {codes[1]}" if codes else " ".join(str(error).split())[:160]
    return f"{type(error).__name__}: {text}"


def _free_workers() -> None:
    """Give the memory of idle workers back before tracking and reports begin."""
    from joblib.externals.loky import get_reusable_executor

    get_reusable_executor(reuse=True).shutdown(wait=True)
