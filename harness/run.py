"""Run: one invocation of a study, from its file to a summary.  Run the same command again to go on where it stopped.

    study -> kept panels -> cells -> what the ledger lacks -> panels verified -> scheduler -> ledger -> summary

`status` is the same without running anything; `cota-bench plan` prints it.
"""

from __future__ import annotations

import shlex
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TextIO

from harness import provenance, results
from harness.estimate import Outlook, clock, outlook, state
from harness.grid import Cell, Plan, limits, plan_cells
from harness.ledger import RETRYABLE, Key, Ledger, read, read_heads
from harness.panels import panels
from harness.progress import Display, Progress, display
from harness.records import Episode
from harness.results import Heads
from harness.scheduler import Scheduler
from harness.show import visible
from harness.study import Study
from harness.worker import Job, run_job

REASON = 160  # characters of a failure's reason in the summary


@dataclass(frozen=True)
class Summary:
    """What a study has after a run: planned = done + failed + skipped + left, and left is 0 when it is complete."""

    study: str
    folder: Path
    planned: int
    counts: Counter[str]
    statuses: Counter[str]
    failures: Counter[str]
    skips: Counter[str]
    ran: int
    seconds: float
    stopped_by: int | None = None
    notes: tuple[str, ...] = field(default=())
    examples: Mapping[str, str] = field(default_factory=dict)  # for each failure kind, its first reason
    mute: tuple[str, ...] = ()  # cells of which no episode that ended could be parsed

    @property
    def complete(self) -> bool:
        """Whether every planned episode has a row (or a stated reason to have none)."""
        return self.planned == self.counts["done"] + self.counts["failed"] + self.counts["skipped"]

    @property
    def exit_status(self) -> int:
        """0: complete without failures; 1: failures, episodes left or a mute cell; 128 + signal: stopped by one."""
        if self.stopped_by is not None and not self.complete:
            return self.stopped_by
        return 0 if self.complete and not self.counts["failed"] and not self.mute else 1

    def text(self) -> str:
        """For people: counts, failures by kind, reasons of skips, and how to go on."""
        counts = self.counts
        lines = [
            f"{self.study}: {self.planned} planned = {counts['done']} done + {counts['failed']} failed "
            f"+ {counts['skipped']} skipped" + (f" + {counts['left']} left" if counts["left"] else ""),
            f"ran {self.ran} episode(s) in {clock(self.seconds)}; results in {self.folder}",
        ]
        said = ", ".join(f"{n} {status}" for status, n in sorted(self.statuses.items()))
        lines += [f"by status: {said}"] if said else []
        lines += [f"failures: {', '.join(f'{n} {kind}' for kind, n in self.failures.most_common())}"] * bool(
            self.failures
        )
        lines += [f"  {kind}: {said}" for kind, said in self.examples.items()]
        unparsed = self.statuses["unparsed"]
        if unparsed:
            share = f"{unparsed} of {self.counts['done']} ended episodes ({unparsed / self.counts['done']:.0%})"
            lines.append(f"unparsed: {share}; a status of its own, never a score")
        lines += [f"No answer of {cell} could be parsed: check its actor and prompt." for cell in self.mute]
        lines += [f"skipped {n}: {reason}" for reason, n in self.skips.items()]
        lines += self.notes
        if counts["left"] or counts["failed"]:
            lines.append("Run the same command again to go on: what is done stays, the rest is run.")
        return "\n".join(lines)


def status(study: Study, root: Path = results.ROOT, verify: bool = False) -> tuple[Plan, Outlook]:
    """Where a study stands, without a lock and without running or writing anything; `verify` re-reads the data."""
    folder = results.folder_of(study, root)
    kept = results.kept_panels(folder)
    plan = plan_cells(study, panels(study, kept, fresh=study.environments if verify else ()))
    heads = read_heads(folder)
    results.refuse_changes(folder, study, plan, heads)
    return plan, outlook(plan, heads, study.policy.retry_failed)


def run_study(
    study: Study,
    root: Path = results.ROOT,
    *,
    run: Callable[[Job], Episode] = run_job,
    observers: Sequence[Callable[[Episode], None]] = (),
    stream: TextIO | None = None,
    live: bool | None = None,
) -> Summary:
    """Run what is left of a study.

    Args:
        study: from `load_study`.
        root: folder of all results; the study gets its own below it.
        run: what runs a job; replaced in tests.
        observers: called with every stored episode, one at a time; one that raises is left out and reported.
        stream: where progress goes (default standard error).
        live: a live bar or plain lines; None: a bar on a terminal.

    Raises:
        UsageError: changed identity or tasks, a folder that cannot be written, another run on the same folder.
    """
    began = time.monotonic()
    folder = results.folder_of(study, root)
    with Ledger(folder) as ledger:
        heads = ledger.heads()
        kept = results.kept_panels(folder)
        plan = plan_cells(study, panels(study, kept))
        results.refuse_changes(folder, study, plan, heads)
        jobs = deque(jobs_left(study, plan, heads))
        busy = {job.cell.environment for job in jobs}
        # A panel that was made just now need not be made twice; a kept one is verified before anything is run on it.
        panels(study, plan.panels, fresh=[label for label in busy if plan.panels[label] is kept.get(label)])
        results.write(folder, study, plan, heads)
        if jobs:
            provenance.record(folder)
        notes = _notes(ledger, plan, heads)
        stopped_by, ran = None, 0
        if jobs:
            work = _Work(len(jobs), observers, display(len(jobs), stream, live))
            stopped_by = work.through(jobs, ledger, study, run)
            ran, notes = work.ran, (*notes, *work.notes)
        return _summary(study, folder, plan, ledger.heads(), ran, time.monotonic() - began, stopped_by, notes)


class _Work:
    """What happens to each stored row while a study runs: counted, shown, passed to the observers."""

    def __init__(self, total: int, observers: Sequence[Callable[[Episode], None]], shown: Display) -> None:
        self.progress = Progress(total, shown)
        self.ran = 0
        self.notes: list[str] = []
        self._retried: set[Key] = set()  # seen once already: counted, and may come again
        self._observers = list(observers)
        self._mutex = threading.Lock()

    def through(self, jobs: deque[Job], ledger: Ledger, study: Study, run: Callable[[Job], Episode]) -> int | None:
        """Run the jobs, which empties the queue; the exit status of a signal, or None."""
        parts = (jobs, ledger, study.policy, study.throughput)
        scheduler = Scheduler(*parts, run=run, seen=self.seen, tell=self.progress.tell)
        try:
            stopped_by = scheduler.run()
        finally:
            self.progress.close()
        if scheduler.gave_up:
            self.notes.append(f"Stopped after {study.policy.max_failures} failures (policy.max_failures).")
        return stopped_by

    def _count(self, key: Key, status: str) -> None:
        self.ran += key not in self._retried
        if status in RETRYABLE:
            self._retried.add(key)

    def seen(self, episode: Episode) -> None:
        """One stored row. An observer that fails is left out from then on: the row is safe, the run goes on."""
        with self._mutex:
            self._count((episode.cell, episode.task_id), episode.status)
            self.progress.seen(episode)
            for observer in list(self._observers):
                try:
                    observer(episode)
                except Exception as error:  # noqa: BLE001  said at once and in the summary
                    self._observers.remove(observer)
                    self.notes.append(f"Left out after an error: {observer!r}: {type(error).__name__}: {error}")
                    self.progress.tell(self.notes[-1])


def jobs_left(study: Study, plan: Plan, heads: Heads) -> Iterator[Job]:
    """What the ledger lacks, ordered so that the methods of one (actor, environment, task, seed) run side by side."""
    places = {(cell.environment, cell.actor, cell.seed, cell.method): cell for cell in plan.cells}
    methods = list(dict.fromkeys(cell.method for cell in plan.cells))
    for environment, panel in plan.panels.items():
        for seed in study.seeds:
            for task, fingerprint in panel.tasks:
                for actor in study.actors:
                    for method in methods:
                        cell = places.get((environment, actor, seed, method))
                        if cell is not None:
                            yield from _job(study, cell, task, fingerprint, heads)


def _job(study: Study, cell: Cell, task: str, fingerprint: str, heads: Heads) -> Iterator[Job]:
    head = heads.get((cell.key, task))
    if head is None:
        yield Job(replace(cell, tasks=()), task, fingerprint, limits(study, cell))
    elif head["status"] in RETRYABLE and study.policy.retry_failed:
        yield Job(replace(cell, tasks=()), task, fingerprint, limits(study, cell), head["attempt"] + 1)


def _notes(ledger: Ledger, plan: Plan, heads: Heads) -> tuple[str, ...]:
    notes = []
    if ledger.torn is not None:
        notes.append(f"A record cut short by an earlier crash was moved to {ledger.torn}; its episode is run again.")
    if ledger.damage:
        size = sum(damage.size for damage in ledger.damage)
        notes.append(
            f"{ledger.path} has {len(ledger.damage)} damaged stretch(es), {size} bytes at byte "
            f"{ledger.damage[0].offset}; the episodes in them count as not run."
        )
    other = results.unknown_rows(plan, heads)
    if other:
        notes.append(f"{other} stored episode(s) belong to cells that are not in the study any more; they are kept.")
    return tuple(notes)


def _summary(
    study: Study,
    folder: Path,
    plan: Plan,
    heads: Heads,
    ran: int,
    seconds: float,
    stopped_by: int | None,
    notes: tuple[str, ...],
) -> Summary:
    counts, statuses, failures, skips = Counter[str](), Counter[str](), Counter[str](), Counter[str]()
    first: dict[str, Key] = {}
    for cell in plan.cells:
        for task in cell.tasks:
            head = heads.get((cell.key, task))
            counts[state(head["status"] if head else None)] += 1
            if head is not None:
                statuses[head["status"]] += 1
                if head["status"] in RETRYABLE:
                    kind = f"{head['boundary'] or 'unknown'} {head['status']}"
                    failures[kind] += 1
                    first.setdefault(kind, (cell.key, task))
    for cell, reason in plan.skipped:
        counts["skipped"] += len(cell.tasks)
        skips[reason] += len(cell.tasks)
    if counts["left"] and stopped_by is None:
        notes = (*notes, f"{counts['left']} planned episode(s) were not run. The grid is incomplete.")
    mute = tuple(str(cell) for cell in plan.cells if _mute(cell, heads))
    examples = _examples(study.study, folder, first)
    parts = (counts, statuses, failures, skips, ran, seconds, stopped_by, notes)
    return Summary(study.study, folder, plan.episodes, *parts, examples=examples, mute=mute)


def _mute(cell: Cell, heads: Heads) -> bool:
    """Whether episodes of a cell ended and all of them as unparsed: nothing was measured there."""
    found = {head["status"] for task in cell.tasks if (head := heads.get((cell.key, task))) is not None}
    return {status for status in found if state(status) == "done"} == {"unparsed"}


def _examples(study: str, folder: Path, first: Mapping[str, Key]) -> dict[str, str]:
    """For each failure kind the reason of its first episode in one line, and the command that shows the whole."""
    if not first:
        return {}
    found = read(folder)
    last = {(frame.head["cell"], frame.head["task_id"]): frame for frame in found.frames}
    where = "" if folder.parent == results.ROOT else f" --results {shlex.quote(str(folder.parent))}"
    said = {}
    for kind, (cell, task) in first.items():
        reason = " ".join(found.episode(last[cell, task]).reason.split())
        short = visible(reason if len(reason) <= REASON else f"{reason[:REASON]}...")
        said[kind] = f"{short}   (cota-bench show {study} {shlex.quote(f'{cell}:{task}')}{where})"
    return said
