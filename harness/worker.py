"""Worker: one job, from its specification to an `Episode`, in whatever process or thread it lands.

Environments, actors, methods and judges are built once and kept by the process.  An environment holds one episode at
a time, so each running job borrows its own; the others are shared.  What an abandoned call may still be using (after a
time-out) is not used again.  Nothing is raised to the scheduler: whatever goes wrong becomes a failed episode.
"""

from __future__ import annotations

import threading
import time
import warnings
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from harness import registry
from harness.desk import Tools
from harness.episode import run_episode
from harness.errors import EpisodeError
from harness.grid import Cell
from harness.guard import CallTimeout, Guard
from harness.loop import Limits
from harness.records import Episode, Role, Status
from harness.seeds import digest

IDLE_ENVIRONMENTS = 6
SHARED_PARTS = 48
WARMED = 100_000
KINDS: dict[str, registry.Kind] = {
    "actor": "actors",
    "method": "methods",
    "comparator": "judges",
    "critic": "judges",
    "adviser": "judges",
    "candidates": "candidates",
}


def plugins_of(cell: Cell) -> Iterator[tuple[registry.Kind, str]]:
    """(kind, name) of every plugin that an episode of the cell uses."""
    kinds: dict[str, registry.Kind] = {"environment": "environments", **KINDS}
    for role, part in cell.spec.items():
        yield kinds[role], part["plugin"]


@dataclass(frozen=True, slots=True)
class Job:
    """One episode to run; `cell.tasks` is empty here, a job carries what it needs and no more."""

    cell: Cell
    task_id: str
    fingerprint: str
    limits: Limits
    attempt: int = 1

    @property
    def key(self) -> tuple[str, str]:
        """The key of its row in the ledger."""
        return self.cell.key, self.task_id


class Workshop:
    """What one process has built so far; bounded, oldest out first. Safe to use from several threads."""

    def __init__(self, idle: int = IDLE_ENVIRONMENTS, shared: int = SHARED_PARTS) -> None:
        self._lock = threading.RLock()
        self._idle: list[tuple[str, Any]] = []
        self._shared: OrderedDict[str, Any] = OrderedDict()
        self._warmed: OrderedDict[tuple[str, str], None] = OrderedDict()
        self._bounds = (idle, shared)
        self._lent = self._most_lent = 0  # environments; whoever ran many episodes at once will want as many again

    def part(self, role: str, spec: Mapping[str, Any]) -> Any:
        """A shared actor, method, judge or candidate source. Built under the lock: never twice, however slow."""
        key = digest([KINDS[role], spec])
        with self._lock:
            if key not in self._shared:
                with _owned("actor" if role == "actor" else "advisor"):
                    self._shared[key] = registry.create(KINDS[role], spec["plugin"], spec["params"])
                if len(self._shared) > self._bounds[1]:
                    self._shared.popitem(last=False)
            self._shared.move_to_end(key)
            return self._shared[key]

    def forget(self, specs: Mapping[str, Mapping[str, Any]]) -> None:
        """Drop shared parts that an abandoned call may still be using."""
        with self._lock:
            for role in specs.keys() & KINDS.keys():
                self._shared.pop(digest([KINDS[role], specs[role]]), None)

    def warm(self, spec: Mapping[str, Any], environment: Any, job: Job) -> None:
        """Visit a task once, unmeasured, before its first timed episode in this process.

        The first visit loads catalogues, games and taggers.  Timed, it would fall on whichever method comes first,
        which is the baseline of Avg. T.
        """
        key = (digest(spec), job.task_id)
        with self._lock:
            if key in self._warmed:
                return
            self._warmed[key] = None
            if len(self._warmed) > WARMED:
                self._warmed.popitem(last=False)
        guard = Guard()
        ends = [limit for limit in (job.limits.call_s, job.limits.episode_s) if limit is not None]
        try:
            guard.call(partial(_visit, environment, job.task_id), min(ends, default=None))
        except CallTimeout as error:
            raise EpisodeError("environment", f"reset: {error}", "timeout") from error
        finally:
            guard.close()

    @contextmanager
    def environment(self, spec: Mapping[str, Any]) -> Iterator[Borrowed]:
        """An environment of one's own for the time of the block."""
        key = digest(spec)
        with self._counted():
            with _owned("environment"):
                borrowed = Borrowed(self._take(key) or registry.create("environments", spec["plugin"], spec["params"]))
            try:
                yield borrowed
            except BaseException:
                borrowed.fit = False
                raise
            finally:
                if borrowed.fit:
                    self._give(key, borrowed.value)
                elif not borrowed.abandoned:
                    _close(borrowed.value)

    @contextmanager
    def _counted(self) -> Iterator[None]:
        with self._lock:
            self._lent += 1
            self._most_lent = max(self._most_lent, self._lent)
        try:
            yield
        finally:
            with self._lock:
                self._lent -= 1

    def _take(self, key: str) -> Any | None:
        with self._lock:
            for index in range(len(self._idle) - 1, -1, -1):
                if self._idle[index][0] == key:
                    return self._idle.pop(index)[1]
        return None

    def _give(self, key: str, value: Any) -> None:
        with self._lock:
            self._idle.append((key, value))
            surplus = [self._idle.pop(0)[1] for _ in range(len(self._idle) - max(self._bounds[0], self._most_lent))]
        for old in surplus:
            _close(old)


@contextmanager
def _owned(role: Role) -> Iterator[None]:
    """What a plugin's own code raises outside an episode is its owner's all the same."""
    try:
        yield
    except registry.PluginError as error:
        raise EpisodeError(role, str(error)) from error


def _visit(environment: Any, task_id: str) -> None:
    """What a first episode would load: the task, and what its oracle needs. A failure is left to the episode itself."""
    try:
        environment.reset(task_id, 0)
        oracle = environment.oracle()
        if oracle is not None:
            oracle.value(oracle.expert())
    except Exception as error:  # noqa: BLE001  the episode's own reset meets it again and records it
        warnings.warn(f"first visit of {task_id!r}: {error}", RuntimeWarning, stacklevel=2)


def _close(environment: Any) -> None:
    """An environment that cannot even be closed must not take the record of its last episode with it."""
    try:
        environment.close()
    except Exception as error:  # noqa: BLE001  said, and the episode's record is kept
        warnings.warn(f"{type(environment).__name__}.close() failed: {error}", RuntimeWarning, stacklevel=2)


@dataclass(slots=True)
class Borrowed:
    """A borrowed environment; `fit`: may be used again, `abandoned`: a lost thread may still be inside it."""

    value: Any
    fit: bool = True
    abandoned: bool = False


_WORKSHOP = Workshop()


def run_job(job: Job) -> Episode:
    """Run one episode; every failure comes back as a row that says who broke."""
    began = Began()
    try:
        return _run(job, _WORKSHOP)
    except EpisodeError as error:
        return failed(job, error.reason, error.boundary, error.status, began=began)
    except Exception as error:  # noqa: BLE001  becomes the episode's record
        return failed(job, f"{type(error).__name__}: {error}", "harness", began=began)


def _run(job: Job, workshop: Workshop) -> Episode:
    spec = job.cell.spec
    tools = {role: workshop.part(role, spec[role]) for role in KINDS.keys() & spec.keys()}
    with workshop.environment(spec["environment"]) as borrowed:
        with _owned("environment"), registry.explained("environments", spec["environment"]["plugin"], "fingerprint()"):
            found = borrowed.value.fingerprint(job.task_id)
        if found != job.fingerprint:
            raise EpisodeError(
                "environment", f"the data of task {job.task_id!r} on this machine is not that of the study's panel"
            )
        workshop.warm(spec["environment"], borrowed.value, job)
        episode = run_episode(
            environment=borrowed.value,
            actor=tools.pop("actor"),
            method=tools.pop("method"),
            tools=Tools(**tools),
            cell=job.cell,
            task_id=job.task_id,
            limits=job.limits,
            attempt=job.attempt,
        )
        borrowed.fit = episode.status not in ("failed", "timeout") and not _abandoned(episode)
        borrowed.abandoned = episode.status == "timeout" or _abandoned(episode)
    if borrowed.abandoned:
        workshop.forget(spec)
    return episode


def _abandoned(episode: Episode) -> bool:
    """Whether a review was left behind on its thread at some step."""
    return any("timeout" in review.fail_open for step in episode.steps for review in step.reviews)


@dataclass(frozen=True, slots=True)
class Began:
    """A moment by two clocks: the date it had, and one that never jumps, for how long ago it is (seconds)."""

    date: float = field(default_factory=time.time)
    clock: float = field(default_factory=time.perf_counter)

    def ago(self) -> float:
        """Seconds since."""
        return time.perf_counter() - self.clock


def failed(
    job: Job, reason: str, boundary: Role, status: Status = "failed", began: Began | None = None, wall_s: float = 0.0
) -> Episode:
    """A row for an episode of which nothing is left but the reason."""
    cell = job.cell
    return Episode(
        cell=cell.key,
        study=cell.study,
        method=cell.method,
        actor=cell.actor,
        environment=cell.environment,
        seed=cell.seed,
        split=cell.split,
        task_id=job.task_id,
        status=status,
        reason=reason,
        reward=None,
        success=None,
        steps=(),
        seconds={},
        usage={},
        boundary=boundary,
        attempt=job.attempt,
        started_at=time.time() - wall_s if began is None else began.date,
        wall_s=wall_s if began is None else began.ago(),
    )
