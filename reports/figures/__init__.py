"""Figures: one file a figure, each with `ORDER` and `draw(source) -> Drawing | None`; a new file is a new figure."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator

from reports.figures.canvas import Drawing, available
from reports.frames import Tracked

__all__ = ["Drawing", "available", "draw_all"]


def draw_all(source: Tracked) -> Iterator[Drawing]:
    """Every figure that this study has something for, in order. Raises `UsageError` without matplotlib."""
    modules = [importlib.import_module(f"{__name__}.{info.name}") for info in pkgutil.iter_modules(__path__)]
    for module in sorted((m for m in modules if hasattr(m, "draw")), key=lambda m: (m.ORDER, m.__name__)):
        drawing: Drawing | None = module.draw(source)
        if drawing is not None:
            yield drawing
