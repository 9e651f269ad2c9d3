"""Tables: one file a table, each with `ORDER` and `build(source) -> Table | None`; a new file is a new table."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator

from reports.frames import Tracked
from reports.table import Table


def build_all(source: Tracked) -> Iterator[Table]:
    """Every table that this study has something for, in order."""
    modules = [importlib.import_module(f"{__name__}.{info.name}") for info in pkgutil.iter_modules(__path__)]
    for module in sorted(modules, key=lambda module: (module.ORDER, module.__name__)):
        table: Table | None = module.build(source)
        if table is not None:
            yield table
