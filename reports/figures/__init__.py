"""Figures: one file a figure, each with `ORDER` and `draw(source) -> Drawing | None`; a new file is a new figure."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from types import ModuleType

from reports.figures.canvas import Drawing, available
from reports.frames import Tracked

__all__ = ["Drawing", "available", "draw_all", "figure_names"]


def draw_all(source: Tracked) -> Iterator[Drawing]:
    """Every figure that this study has something for, in order. Raises `UsageError` without matplotlib."""
    for module in sorted(_modules(), key=lambda m: (m.ORDER, m.__name__)):
        drawing: Drawing | None = module.draw(source)
        if drawing is not None:
            yield drawing


def figure_names() -> list[str]:
    """Names of all figures there can be: a figure is named like its file."""
    return [module.__name__.rpartition(".")[2] for module in _modules()]


def _modules() -> list[ModuleType]:
    modules = [importlib.import_module(f"{__name__}.{info.name}") for info in pkgutil.iter_modules(__path__)]
    return [module for module in modules if hasattr(module, "draw")]
