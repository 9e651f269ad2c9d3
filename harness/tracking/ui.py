"""The MLflow page: start a small server on this machine and say which link opens on the comparison."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from harness import ledger
from harness.errors import UsageError
from harness.tracking import layout, views
from harness.tracking.client import artifact_root, connect, redacted, resolve_uri

HOST: Final = "127.0.0.1"
WAIT_S: Final = 150.0
MAX_PORT: Final = 65_535


@dataclass
class Ui:
    """A running server; `stop` ends it, `wait` stays until it ends."""

    link: str
    base: str
    process: subprocess.Popen[bytes] | None
    log: Path | None = None

    def wait(self) -> int:
        """Block until the server ends; 0 at once for a server that runs elsewhere."""
        return self.process.wait() if self.process else 0

    def stop(self) -> None:
        """End the server and its worker; safe to call twice."""
        if self.process is None or self.process.poll() is not None:
            return
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def start_ui(
    folder: Path,
    port: int = 0,
    *,
    tracking_uri: str | None = None,
    say: Callable[[str], None] = print,
) -> Ui:
    """Serve the store of a results folder and print the link that opens on the comparison.

    Args:
        folder: `results/<study>`; its name is the study. A folder of several studies opens on their list.
        port: Port on the loopback address; 0 takes a free one.
        tracking_uri: The store; a server's address is not served again, only linked.
        say: Where the link goes.

    Raises:
        UsageError: no such store or study, a port in use or out of range, a server that does not come up.
    """
    if not 0 <= port <= MAX_PORT:
        raise UsageError(f"--port must be from 0 (a free one) to {MAX_PORT}, not {port}.")
    several = not (folder / "study.json").exists() and not (folder / ledger.FILE).exists()
    root = folder if several else folder.parent
    uri = resolve_uri(tracking_uri, root)
    link = _link(uri, None if several else folder.name)
    if uri.startswith("http"):
        ui = Ui(link(redacted(uri)), uri, None)
    else:
        port = port or free_port()
        log = root / "mlflow-server.log"
        process = _serve(uri, port, log, root)
        base = f"http://{HOST}:{port}"
        _await(process, base, log)
        ui = Ui(link(base), base, process, log)
    say(f"{'Studies' if several else f'Comparison of {folder.name}'}: {ui.link}")
    return ui


def free_port() -> int:
    """A port of the loopback address that is free now."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


def _link(uri: str, study: str | None) -> Callable[[str], str]:
    """Makes the link for a server's address: a study's comparison, or the list of experiments."""
    client = connect(uri, create=False)
    if study is None:
        return lambda base: f"{base.rstrip('/')}/#/experiments?workflowType=machine_learning"
    cells, summary = layout.experiment_names(study)
    found = client.get_experiment_by_name(summary) or client.get_experiment_by_name(cells)
    if found is None:
        raise UsageError(f"{redacted(uri)} does not hold the study {study!r}. Write it there: cota-bench sync {study}")
    view = views.PREFIX + views.COMPARISON in found.tags
    experiment_id = found.experiment_id
    return lambda base: views.ui_link(base, experiment_id, view=view)


def _serve(uri: str, port: int, log: Path, results: Path) -> subprocess.Popen[bytes]:
    """One worker and no job runner: a quarter of the memory and half of the start time of the defaults."""
    with socket.socket() as probe:
        try:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((HOST, port))
        except OSError as error:
            raise UsageError(
                f"Port {port} is in use ({error.strerror}). Choose another: cota-bench ui --port 0"
            ) from error
    command = [sys.executable, "-m", "mlflow", "server", "--workers", "1"]
    command += ["--host", HOST, "--port", str(port)]
    root = artifact_root(uri, results)
    if root is not None:
        command += ["--artifacts-destination", root.as_uri(), "--default-artifact-root", root.as_uri()]
    # The store's address may hold a password: in the environment it is nobody's but ours, as an argument everyone's.
    settings = {"MLFLOW_BACKEND_STORE_URI": uri}
    settings |= {"MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false", "MLFLOW_DISABLE_TELEMETRY": "true"}
    with log.open("wb") as output:
        return subprocess.Popen(command, stdout=output, stderr=output, env={**os.environ, **settings})


def _await(process: subprocess.Popen[bytes], base: str, log: Path) -> None:
    end = time.monotonic() + WAIT_S
    while time.monotonic() < end:
        if process.poll() is not None:
            break
        try:
            with urllib.request.urlopen(f"{base}/health", timeout=2) as answer:  # noqa: S310  our own loopback address
                if answer.status == 200:
                    return
        except (urllib.error.URLError, OSError):
            time.sleep(0.1)
    process.kill()
    process.wait()
    tail = log.read_text(errors="replace")[-600:] if log.exists() else ""
    raise UsageError(f"The MLflow server did not come up at {base}. Its log, {log}, ends with:\n{tail}")
