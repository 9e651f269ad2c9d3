"""Cache folder: things made on demand (catalogues, games, converted weights), safe to delete at any time."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from harness.errors import UsageError


def cache_dir(*parts: str) -> Path:
    """`$COTA_BENCH_CACHE` or `~/.cache/cota-bench`, joined with `parts` and created. Raises `UsageError`."""
    root = os.environ.get("COTA_BENCH_CACHE")
    folder = (Path(root) if root else Path.home() / ".cache" / "cota-bench").joinpath(*parts)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(
            f"The cache {folder} cannot be made: {error.strerror}. Name another with COTA_BENCH_CACHE."
        ) from error
    return folder


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object that is kept in the cache. Raises `UsageError` for a damaged file: it can be made again."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(data, dict):
            raise ValueError("it is no object")
    except (OSError, ValueError) as error:
        raise UsageError(
            f"{path} is damaged ({error}). Delete {path.parent} and run the same command again."
        ) from error
    return data
