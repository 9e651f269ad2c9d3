"""Run: start planned servers, wait until they answer, write down versions, stop them at the end.

A server is a process group of its own with its log in a file; whatever happens, the groups started here are ended and
no others.  What ran is written to `serve.json`: model, revision, command, versions as the server says them.
"""

from __future__ import annotations

import json
import os
import shlex
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from harness.errors import UsageError
from harness.models import transport
from harness.models.errors import Transient
from harness.serving.plan import Server, Use, find_endpoints, gpus, plan

STOP_S = 20.0


def serve(
    study: Any,
    folder: Path,
    *,
    gpu_count: int | None = None,
    max_model_len: int = 16_384,
    python: str | None = None,
    extra: Sequence[str] = (),
    wait_s: float = 1800.0,
    dry_run: bool = False,
    echo: Callable[[str], None] = print,
    until: Callable[[], bool] = lambda: False,
) -> int:
    """Serve a study's models until interrupted; 0, or 1 when a server ended by itself.

    Args:
        study: a validated study.
        folder: where logs and `serve.json` go.
        gpu_count: GPUs to use (None: all there are).
        max_model_len: context of each server in tokens.
        python: interpreter that has vLLM.
        extra: further arguments for each server.
        wait_s: how long a server may take to load.
        dry_run: print the commands and start nothing.
        echo: where lines for people go.
        until: asked every second; true ends it.

    Raises:
        UsageError: nothing to serve, no vLLM, a port that is taken, or a server that does not come up (with the end of
            its log).
    """
    servers, elsewhere = plan(
        find_endpoints(study), gpus() if gpu_count is None else gpu_count, max_model_len, python, extra
    )
    if not servers:
        raise UsageError("No endpoint of this study is on this machine: base_url must name localhost to be served.")
    announce(servers, elsewhere, echo)
    if dry_run:
        return 0
    for server in servers:
        _need_port(server)
    _need_vllm(servers[0].command[0])
    folder.mkdir(parents=True, exist_ok=True)
    secrets = {use.key_env for use in (*elsewhere, *find_endpoints(study)) if use.key_env}
    with _ended(echo), running(servers, folder, secrets) as processes:
        facts = [wait_for(server, process, folder, wait_s) for server, process in zip(servers, processes, strict=True)]
        _write(folder / "serve.json", facts)
        for fact in facts:
            echo(f"ready: {fact['model']} at {fact['base_url']} (vLLM {fact['version']})")
        return watch(servers, processes, folder, echo, until)
    return 0


def announce(servers: Sequence[Server], elsewhere: Sequence[Use], echo: Callable[[str], None]) -> None:
    """Say what will be started, as lines that a shell would take, and what is left to others."""
    for use in elsewhere:
        echo(f"elsewhere: {use.model} at {use.base_url} for {use.who}" + _key_note(use))
    for server in servers:
        where = "" if server.gpu is None else f" on GPU {server.gpu}"
        echo(f"# {server.model} for {', '.join(server.users)}{where}")
        variables = [f"{key}={value}" for key, value in server.environment.items()]
        echo(" ".join([*variables, shlex.join(server.command)]))


def watch(
    servers: Sequence[Server],
    processes: Sequence[subprocess.Popen[bytes]],
    folder: Path,
    echo: Callable[[str], None],
    until: Callable[[], bool],
) -> int:
    """Wait for `until`; 1 when a server ended by itself."""
    pairs = list(zip(servers, processes, strict=True))
    while not until():
        dead = [server.model for server, process in pairs if process.poll() is not None]
        if dead:
            echo(f"ended by itself: {', '.join(dead)}; see its log in {folder}")
            return 1
        time.sleep(1.0)
    return 0


def _key_note(use: Use) -> str:
    if use.key_env is None:
        return ""
    return f", key in ${use.key_env}" + ("" if os.environ.get(use.key_env) else " (not set)")


def _need_port(server: Server) -> None:
    """Another server at the address would answer in place of the one to be started."""
    parts = urlsplit(server.base_url)
    try:
        socket.create_connection((parts.hostname or "127.0.0.1", parts.port or 80), timeout=5.0).close()
    except OSError:
        return
    raise UsageError(
        f"Something answers at {server.base_url} already, so {server.model} cannot be served there. If it is the right "
        "server, just run the study; else stop it, or give the study another port."
    )


@contextmanager
def _ended(echo: Callable[[str], None]) -> Iterator[None]:
    """An interrupt ends the block, and so does SIGTERM: servers are in sessions of their own and would live on."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    main = threading.current_thread() is threading.main_thread()
    before = signal.signal(signal.SIGTERM, interrupt) if main else None
    try:
        yield
    except KeyboardInterrupt:
        echo("stopped")
    finally:
        if main:
            signal.signal(signal.SIGTERM, before)


def _need_vllm(python: str) -> None:
    test = [python, "-c", "import importlib.util as u, sys; sys.exit(u.find_spec('vllm') is None)"]
    try:
        found = subprocess.run(test, capture_output=True, timeout=60, check=False).returncode == 0
    except (OSError, subprocess.SubprocessError) as error:
        raise UsageError(f"Cannot run {python}: {error}") from error
    if not found:
        raise UsageError(
            f"{python} has no vLLM. Install it (pip install 'cota-bench[serve]'), best in an environment of its own, "
            "and name that environment's interpreter in COTA_BENCH_VLLM_PYTHON."
        )


@contextmanager
def running(servers: Sequence[Server], folder: Path, secrets: set[str]) -> Iterator[list[subprocess.Popen[bytes]]]:
    """Processes of the servers, ended when the block ends; `secrets` are variables that they do not get."""
    processes: list[subprocess.Popen[bytes]] = []
    inherited = {key: value for key, value in os.environ.items() if key not in secrets}
    try:
        for server in servers:
            with (folder / f"{server.name}.log").open("wb") as log:
                processes.append(
                    subprocess.Popen(
                        server.command,
                        env={**inherited, **server.environment},
                        stdout=log,
                        stderr=subprocess.STDOUT,
                        stdin=subprocess.DEVNULL,
                        start_new_session=True,
                    )
                )
        yield processes
    finally:
        for process in processes:
            stop(process)


def stop(process: subprocess.Popen[bytes]) -> None:
    """End one process group: politely, then for certain."""
    for sign, patience in ((signal.SIGTERM, STOP_S), (signal.SIGKILL, 5.0)):
        try:
            os.killpg(process.pid, sign)
        except ProcessLookupError:
            break
        try:
            process.wait(patience)
        except subprocess.TimeoutExpired:
            continue
    process.poll()


def wait_for(server: Server, process: subprocess.Popen[bytes], folder: Path, wait_s: float) -> dict[str, Any]:
    """Facts about a server once it is healthy. Raises `UsageError` with the end of its log."""
    root, until = server.base_url.removesuffix("/v1"), time.monotonic() + wait_s
    began = time.monotonic()
    pool = transport.Pool(server.base_url, 2)
    while True:
        if process.poll() is not None or time.monotonic() > until:
            why = "ended" if process.poll() is not None else f"is not ready after {wait_s:.0f} s"
            tail = (folder / f"{server.name}.log").read_text(encoding="utf-8", errors="replace")[-1500:]
            raise UsageError(f"The server of {server.model} {why}. The end of its log ({folder}):\n{tail}")
        try:
            if transport.get(pool, root + "/health", {}, time.monotonic() + 5.0)[0] == 200:
                break
        except Transient:
            pass  # not listening yet
        time.sleep(0.5)
    version, models = (_fact(pool, url) for url in (root + "/version", server.base_url + "/models"))
    listed = [item for item in models.get("data", []) if isinstance(item, dict)]
    return {
        "model": server.model,
        "base_url": server.base_url,
        "users": list(server.users),
        "version": version.get("version"),
        "served": [{key: item.get(key) for key in ("id", "root", "max_model_len")} for item in listed],
        "command": list(server.command),
        "environment": dict(server.environment),
        "loaded_s": round(time.monotonic() - began, 1),
    }


def _fact(pool: transport.Pool, url: str) -> dict[str, Any]:
    status, raw = transport.get(pool, url, {}, time.monotonic() + 10.0)
    value = json.loads(raw) if status == 200 else {}
    return value if isinstance(value, dict) else {}


def _write(path: Path, value: Any) -> None:
    work = path.with_suffix(f".{os.getpid()}.tmp")
    work.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    os.replace(work, path)
