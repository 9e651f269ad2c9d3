"""Cache folder: things made on demand (catalogues, games, converted weights), safe to delete at any time."""

from __future__ import annotations

import os
from pathlib import Path


def cache_dir(*parts: str) -> Path:
    """`$COTA_BENCH_CACHE` or `~/.cache/cota-bench`, joined with `parts` and created."""
    root = os.environ.get("COTA_BENCH_CACHE")
    folder = (Path(root) if root else Path.home() / ".cache" / "cota-bench").joinpath(*parts)
    folder.mkdir(parents=True, exist_ok=True)
    return folder
