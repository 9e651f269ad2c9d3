"""`cota-bench serve`."""

from __future__ import annotations

import shlex
from pathlib import Path

from harness.errors import UsageError
from harness.serving import serve
from harness.study import load_study


def serve_command(
    name: str, results: Path, gpus: int | None, max_model_len: int, python: str | None, extra: str, dry_run: bool
) -> int:
    """Start the models of a study; returns the exit status. Raises `UsageError`."""
    study = load_study(name)
    try:
        more = shlex.split(extra)
    except ValueError as error:
        raise UsageError(f"--vllm-args cannot be read: {error}.") from error
    return serve(
        study,
        results / study.study / "serve",
        gpu_count=gpus,
        max_model_len=max_model_len,
        python=python,
        extra=more,
        dry_run=dry_run,
        echo=lambda line: print(line, flush=True),
    )
