"""Cluster: episodes on the workers of a dask.distributed scheduler, for studies past one machine.

The contract is that of `harness.backends.stream`: a result is settled before its slot takes new work, nothing is
started after a stop, and only this process writes.  dask is used directly: joblib's connector to it drops the error of
a task whose workers keep dying (neither an exception nor an end comes), and cannot say which task that was.

What can go wrong, and who deals with it:

* A worker dies: dask runs its episode again elsewhere.  An episode is a function of its seeds, so its row is the same.
* A task kills whoever runs it: dask gives it up after `allowed-failures` (3) retries; `lost` is told how many died.
* A job never returns: the worker ends itself (`harness.slot.Reaper`), just after `overdue` has made it a row here.
* No worker, or no scheduler: after `wait_s` a `ClusterError`; what has ended is stored.
* A worker with other code or another plugin file: refused at its first job (`harness.slot.RemoteSlot`).

A dask scheduler runs what it is sent: it belongs on a private network or behind TLS (`tls://`, dask's own settings).
"""

from __future__ import annotations

import hashlib
import pickle
import queue
import time
import uuid
from collections.abc import Callable, Generator, Iterator
from contextlib import suppress
from functools import cache, partial
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Literal

from harness import registry
from harness.errors import UsageError
from harness.records import Episode
from harness.slot import Done, RemoteSlot, Ticket
from harness.worker import Job

CONNECT_S: Final = 10.0
POLL_S: Final = 0.2
LOOK_S: Final = 1.0  # between two looks at the workers
GATHER_S: Final = 30.0  # for one result to be fetched, before others have their turn
CLOSE_S: Final = 5.0
Tell = Callable[[str], None]


class ClusterError(UsageError):
    """The cluster cannot be used (any more); every episode that ended is stored."""


class Cluster:
    """A connection to a dask scheduler; a context manager.

    Args:
        address: of the scheduler, such as `tcp://10.0.0.1:8786`.
        workers: episodes at once; "auto": one a thread of the cluster, as it grows and shrinks.
        wait_s: how long to go without any worker before giving up.
        limit_s: seconds after which a job counts as hanging, or None.
        plugins: (kind, name) of what the jobs use, compared with what workers have.
        tell: says something to people.

    Raises:
        ClusterError: no scheduler answers there, or dask is not installed.
    """

    def __init__(
        self,
        address: str | None,
        *,
        workers: int | Literal["auto"] = "auto",
        wait_s: float = 60.0,
        limit_s: float | None = None,
        plugins: frozenset[tuple[registry.Kind, str]] = frozenset(),
        tell: Tell = lambda _text: None,
    ) -> None:
        self._address, self._workers, self._wait_s, self._limit_s = address, workers, wait_s, limit_s
        self._tell = tell
        self._topic = f"cota-bench-{uuid.uuid4().hex[:12]}"
        self._sources = tuple((kind, name, source(kind, name)) for kind, name in sorted(plugins))
        self._started: dict[int, float] = {}
        self._alive = time.monotonic()  # when a worker was last seen
        self.capacity = 0
        self._client = _connect(addressed(address))
        if limit_s is not None:
            self._client.subscribe_topic(self._topic, self._begun)

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Leave the cluster; what still runs there is forgotten."""
        with suppress(Exception):  # a scheduler that is gone cannot be taken leave of
            self._client.close(timeout=CLOSE_S)

    def stream(
        self,
        run: Callable[[Job], Episode],
        tickets: Iterator[Ticket],
        *,
        settle: Callable[[Done], None],
        stopped: Callable[[], bool],
        lost: Callable[[int, Exception, int], None],
        overdue: Callable[[int, float], bool],
        alone: bool = False,
    ) -> Generator[Done, None, None]:
        """Results as they complete, each settled first.

        Args:
            run: what to do with a job, importable on the workers.
            tickets: pulled lazily, one a free thread of the cluster.
            settle: called in this thread with each result before more work is handed out.
            stopped: when true, nothing more is handed out.
            lost: told (ticket number, error, deaths) of a job whose workers died again and again.
            overdue: told (ticket number, seconds) of a job that hangs; it writes the row.
            alone: one job at a time.

        Raises:
            ClusterError: no worker, no scheduler, or a worker that cannot run our jobs.
        """
        slot = RemoteSlot(run, self._topic, self._limit_s, self._sources)
        out: dict[int, Any] = {}
        ended: queue.SimpleQueue[int] = queue.SimpleQueue()
        looked = -LOOK_S
        try:
            while True:
                if time.monotonic() - looked > LOOK_S:
                    self._look(out, overdue)
                    looked = time.monotonic()
                window = 1 if alone else self._window()
                while len(out) < window and not stopped():
                    ticket = next(tickets, None)
                    if ticket is None:
                        break
                    out[ticket.number] = self._submit(slot, ticket, ended)
                if not out:
                    return
                try:
                    number = ended.get(timeout=POLL_S)
                except queue.Empty:
                    continue
                result = self._result(number, out, ended, lost)
                if result is not None:
                    settle(result)
                    yield result
        finally:
            for future in out.values():
                with suppress(Exception):
                    future.release()

    def _window(self) -> int:
        most = self.capacity if self._workers == "auto" else min(self._workers, self.capacity)
        return max(1, most)

    def _submit(self, slot: RemoteSlot, ticket: Ticket, ended: queue.SimpleQueue[int]) -> Any:
        key = f"{self._topic}-{ticket.number}"
        try:
            payload = pickle.dumps(partial(slot, ticket))
            future = self._client.submit(_deliverer(), payload, key=key, pure=False)
        except Exception as error:
            raise self._gone(error) from error
        future.add_done_callback(lambda _future: ended.put(ticket.number))
        return future

    def _result(
        self,
        number: int,
        out: dict[int, Any],
        ended: queue.SimpleQueue[int],
        lost: Callable[[int, Exception, int], None],
    ) -> Done | None:
        """What a future holds, or None when there is nothing (more, or yet)."""
        from distributed import KilledWorker

        future = out.get(number)
        if future is None:
            return None  # it was overdue
        try:
            result: Done = future.result(timeout=GATHER_S)
        except TimeoutError:
            ended.put(number)  # whoever holds it is slow or gone; dask makes it anew in time
            return None
        except KilledWorker as error:
            del out[number]
            lost(number, error, error.allowed_failures + 1)
            return None
        except UsageError as error:
            raise ClusterError(f"A worker of {self._address} cannot run this study: {error}") from error
        except Exception as error:
            raise self._gone(error) from error
        del out[number]
        self._started.pop(number, None)
        return result

    def _begun(self, event: tuple[float, int]) -> None:
        """A worker began a job (again); called in the client's own thread."""
        self._started[event[1]] = time.monotonic()

    def _look(self, out: dict[int, Any], overdue: Callable[[int, float], bool]) -> None:
        """At the workers there are, and at jobs that take too long."""
        if self._client.status not in ("running", "connecting"):
            raise self._gone(None)
        try:
            self.capacity = sum(self._client.ncores().values()) if self._client.status == "running" else 0
        except Exception as error:
            raise self._gone(error) from error
        now = time.monotonic()
        if self.capacity:
            self._alive = now
        elif now - self._alive > self._wait_s:
            raise ClusterError(
                f"The scheduler {self._address} has had no worker for {self._wait_s:g} s (throughput.worker_wait_s). "
                "Every episode that ended is stored. Start workers (`dask worker ADDRESS --nthreads 1`, with a nanny, "
                "which replaces workers that die) and run the same command again."
            )
        for number, since in list(self._started.items()):
            if number in out and self._limit_s is not None and now - since > self._limit_s:
                overdue(number, now - since)
                self._started.pop(number)
                future = out.pop(number)
                with suppress(Exception):
                    future.cancel(force=True)

    def _gone(self, error: Exception | None) -> ClusterError:
        if isinstance(error, ImportError | AttributeError | pickle.UnpicklingError):
            return ClusterError(
                f"A worker of {self._address} cannot load what it is sent ({error}). Install the same versions of "
                "cota-bench and all plugins there. Every episode that ended is stored."
            )
        why = "the connection is closed" if error is None else f"{type(error).__name__}: {error}"
        return ClusterError(
            f"The cluster at {self._address} failed: {why}. Every episode that ended is stored. "
            "Look at the scheduler's and the workers' logs, and run the same command again."
        )


def _deliverer() -> Callable[[bytes], Any]:
    """What a worker calls with a job.

    A nested function, because those are sent by value: a worker without our package then fails with an error that
    reaches us.  Sent by name, the message itself could not be read, and the worker would die of it in silence.
    """

    def deliver(payload: bytes) -> Any:
        import pickle

        return pickle.loads(payload)()  # noqa: S301  made by the parent, whom a dask worker obeys anyway

    return deliver


def addressed(address: str | None) -> str:
    """The address, if there is one. Raises `ClusterError`."""
    if not address:
        raise ClusterError(
            "The dask backend needs the scheduler's address: --address tcp://HOST:8786, or `throughput: "
            "{backend: dask, address: ...}` in the study. Start one with `dask scheduler`."
        )
    return address


def _connect(address: str) -> Any:
    try:
        from distributed import Client
    except ImportError as error:
        raise ClusterError("The dask backend needs dask. Install it: pip install 'cota-bench[cluster]'") from error
    try:
        return Client(address, timeout=CONNECT_S, set_as_default=False, name="cota-bench")
    except (OSError, ValueError, TypeError) as error:
        raise ClusterError(
            f"No dask scheduler answers at {address} within {CONNECT_S:g} s ({type(error).__name__}: {error}). "
            "Start one with `dask scheduler --host HOST`, or correct --address."
        ) from error


@cache
def source(kind: registry.Kind, name: str) -> str:
    """Digest of the code of a plugin and of the harness: of its file, or of the package that its entry point names.

    Raises `UsageError` for a plugin that is not there.
    """
    if ".py:" in name:
        file = Path(name.rpartition(":")[0])
        if not file.is_file():
            raise UsageError(f"{kind[:-1]} plugin {name!r}: there is no file {file} on this machine")
        return _digest([file])
    package = registry.load(kind, name).__module__.partition(".")[0]
    return _digest([path for top in dict.fromkeys(("harness", package)) for path in _files(top)])


@cache
def _files(package: str) -> tuple[Path, ...]:
    spec = find_spec(package)
    if spec is None or spec.origin is None:
        return ()
    if spec.submodule_search_locations is None:
        return (Path(spec.origin),)
    return tuple(sorted(Path(spec.origin).parent.rglob("*.py")))


def _digest(files: list[Path]) -> str:
    made = hashlib.sha256()
    for file in files:
        made.update(file.name.encode() + b"\0" + hashlib.sha256(file.read_bytes()).digest())
    return made.hexdigest()[:16]
