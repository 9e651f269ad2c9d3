"""Published numbers: the paper's tables as they were printed, carried in `reports/paper` with their source."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Final

from harness.errors import UsageError, nearest

SOURCE: Final = "Don't Solve, Just Compare (arXiv 2608.21027)"
FOLDER: Final = Path(__file__).parent / "paper"
FILES: Final[Mapping[str, str]] = {
    "table1": "table1",
    "table2": "table2",
    "table3": "table3_slices",
    "table4": "table4_splits",
    "table5": "table5_sweep",
    "table6": "table6_sources",
    "table7": "table7_absq",
    "table8": "table8_frequency",
    "table9": "table9_targets",
    "table10": "table10_offline_cost",
    "table11": "table11_online_cost",
    "figure1": "figure1_replans",
    "diversity": "diversity",
}
Line = Mapping[str, str]


@cache
def published(name: str) -> tuple[Line, ...]:
    """The rows of a published table, texts as printed.

    Args:
        name: `table1` to `table11`, `figure1` or `diversity`.

    Raises:
        UsageError: no such table.
    """
    if name not in FILES:
        raise UsageError(f"The paper has no {name!r} here.{nearest(name, list(FILES))}")
    with (FOLDER / f"{FILES[name]}.csv").open(encoding="utf-8", newline="") as file:
        return tuple(csv.DictReader(file))


def value(text: str) -> float | None:
    """A printed number, or None where nothing was printed."""
    return float(text) if text.strip() else None
