"""Opening a tracking store so that a dead one is found in seconds.

A tracking server that is down would hold MLflow's client for four minutes, a database that cannot be opened for two.
So the store is probed first (any HTTP answer, an open port, a writable file), the HTTP retry variables get short
defaults unless the user set them, and whatever goes wrong becomes one `TrackerDown` that names the store and the fix.
The run itself never depends on the tracker: the ledger is the truth and `cota-bench sync` catches up.
"""

from __future__ import annotations

import logging
import os
import re
import socket
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, unquote, urlsplit

from harness.errors import UsageError

if TYPE_CHECKING:
    from mlflow import MlflowClient

PROBE_S: Final = 4.0
SHORT: Final = {
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1",
    "MLFLOW_HTTP_REQUEST_BACKOFF_FACTOR": "0",
    "MLFLOW_HTTP_REQUEST_BACKOFF_JITTER": "0",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "15",
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
    "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR": "false",
}
PORTS: Final = {"postgresql": 5432, "mysql": 3306, "mssql": 1433}
DATABASES: Final = (*PORTS, "sqlite")


class TrackerDown(UsageError):
    """The tracking store cannot be used now; nothing is lost, the ledger has every episode."""


def default_uri(results: Path) -> str:
    """The store when none is named: one SQLite file for all studies of a results folder."""
    return f"sqlite:///{quote(str(results.resolve() / 'mlflow.db'), safe='/:')}"


def resolve_uri(tracking_uri: str | None, results: Path) -> str:
    """The store to use: what was asked for, else `MLFLOW_TRACKING_URI`, else SQLite in `results`."""
    return tracking_uri or os.environ.get("MLFLOW_TRACKING_URI") or default_uri(results)


def artifact_root(uri: str, results: Path) -> Path | None:
    """Where artefacts lie: `mlflow-artifacts` beside an SQLite file, in `results` for a database that holds no files.

    None when a tracking server decides.
    """
    path = sqlite_path(uri)
    if path is not None:
        return path.parent / "mlflow-artifacts"
    return results.resolve() / "mlflow-artifacts" if urlsplit(uri).scheme.split("+")[0] in PORTS else None


def sqlite_path(uri: str) -> Path | None:
    """The file of an SQLite store, or None for any other kind."""
    return Path(unquote(uri.removeprefix("sqlite:///"))).absolute() if uri.startswith("sqlite:///") else None


def redacted(uri: str) -> str:
    """The store as it may be printed: without user and password."""
    return re.sub(r"(://)[^/@\s]+@", r"\1***@", uri)


def connect(uri: str, *, create: bool = True) -> MlflowClient:
    """A client for `uri` after a probe.

    Args:
        uri: Any MLflow tracking URI.
        create: Whether an SQLite store that does not exist yet may be made.

    Raises:
        TrackerDown: the store does not answer, or may not be written.
        UsageError: MLflow is not installed, or the store does not exist and may not be made.
    """
    for name, value in SHORT.items():
        os.environ.setdefault(name, value)
    with tracker_errors(uri):
        _probe(uri, create=create)
        try:
            from mlflow import MlflowClient
        except ImportError as error:
            raise UsageError("Tracking needs MLflow. Install it: pip install 'cota-bench[tracking]'") from error
        path = sqlite_path(uri)
        fresh = path is not None and not path.exists()
        with _quiet():
            client = MlflowClient(tracking_uri=uri, registry_uri=uri)
            client.search_experiments(max_results=1)
        if path is not None and fresh:
            _write_ahead(path)
    return client


@contextmanager
def _quiet() -> Iterator[None]:
    """Making a store is no news: the log lines about its tables stay away."""
    logger = logging.getLogger("mlflow.store.db.utils")
    level = logger.level
    logger.setLevel(logging.WARNING)
    try:
        yield
    finally:
        logger.setLevel(level)


def _write_ahead(path: Path) -> None:
    """Readers (the page) and the writer do not wait for each other, and a commit costs a tenth."""
    with closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA journal_mode=WAL")


@contextmanager
def tracker_errors(uri: str) -> Iterator[None]:
    """Turn what MLflow, its database and its HTTP client raise into one `TrackerDown` for people."""
    try:
        yield
    except UsageError:
        raise
    except Exception as error:
        if not _is_store_error(error):
            raise
        text = str(error).strip().splitlines() or [type(error).__name__]
        raise _down(uri, f"{type(error).__name__}: {redacted(text[0])[:300]}") from error


def _is_store_error(error: Exception) -> bool:
    package = type(error).__module__.split(".")[0]
    return isinstance(error, OSError) or package in {
        "mlflow",
        "sqlalchemy",
        "psycopg",
        "requests",
        "urllib3",
        "alembic",
        "sqlite3",
    }


def _down(uri: str, why: str) -> TrackerDown:
    return TrackerDown(
        f"The tracking store {redacted(uri)} cannot be used: {why}. Episodes are safe in the ledger. "
        "Start the server or name another store (--tracking-uri or MLFLOW_TRACKING_URI), then run `cota-bench sync`."
    )


def _probe(uri: str, *, create: bool) -> None:
    parts = urlsplit(uri)
    scheme = parts.scheme.split("+")[0]
    if scheme in ("http", "https"):
        import requests

        try:
            requests.get(uri.rstrip("/") + "/health", timeout=PROBE_S)
        except requests.RequestException as error:
            raise _down(uri, f"no answer within {PROBE_S:g} s ({type(error).__name__})") from error
    elif scheme in PORTS:
        address = (parts.hostname or "localhost", parts.port or PORTS[scheme])
        try:
            socket.create_connection(address, timeout=PROBE_S).close()
        except OSError as error:
            raise _down(uri, f"{address[0]}:{address[1]} does not accept connections ({error})") from error
    elif scheme == "sqlite":
        _probe_sqlite(uri, create=create)


def _probe_sqlite(uri: str, *, create: bool) -> None:
    path = sqlite_path(uri)
    if path is None:
        raise UsageError(f"{uri} is no usable SQLite store. Write sqlite:///path/to/mlflow.db")
    if not path.exists():
        if not create:
            raise UsageError(f"There is no tracking store {path}. Make it from the ledger: cota-bench sync")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise _down(uri, f"its folder cannot be made ({error})") from error
    target = path if path.exists() else path.parent
    if not os.access(target, os.W_OK) or not os.access(path.parent, os.W_OK):
        raise _down(uri, f"{target} may not be written")
    if path.exists():
        with path.open("rb") as file:
            head = file.read(16)
        if head and head != b"SQLite format 3\x00":
            raise _down(uri, f"{path} is not an SQLite database")
