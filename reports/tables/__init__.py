"""Tables: one file a table, each with `ORDER` and `build(source) -> Table | None`; a new file is a new table.

A table that a study may lack says in `NEEDS` what makes it; the report lists those that are not there.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from dataclasses import replace
from types import ModuleType

from reports import caption
from reports.frames import Tracked
from reports.table import Table


def build_all(source: Tracked) -> Iterator[Table]:
    """Every table that this study has something for, in order."""
    for _, table in _built(source):
        if table is not None:
            yield table


def absent(source: Tracked) -> dict[str, str]:
    """Names of the tables that this study has nothing for, with what would make each."""
    return {name: need.replace("STUDY", source.study) for name, need in _needs(source) if need}


def table_names() -> list[str]:
    """Names of all tables there can be: a table is named like its file."""
    return [info.name for info in pkgutil.iter_modules(__path__)]


def _needs(source: Tracked) -> Iterator[tuple[str, str]]:
    for module, table in _built(source):
        if table is None:
            yield module.__name__.rpartition(".")[2], getattr(module, "NEEDS", "")


def _built(source: Tracked) -> list[tuple[ModuleType, Table | None]]:
    if "tables" not in source.memo:
        modules = [importlib.import_module(f"{__name__}.{name}") for name in table_names()]
        modules.sort(key=lambda module: (module.ORDER, module.__name__))
        source.memo["tables"] = [(module, _said(source, module.build(source))) for module in modules]
    built: list[tuple[ModuleType, Table | None]] = source.memo["tables"]
    return built


def _said(source: Tracked, table: Table | None) -> Table | None:
    """The table with what is simulated in its caption, whether or not its file thought of it: it may be shown alone."""
    if table is None or any(text.startswith(caption.SIMULATED) for text in (*table.caption, *table.notes)):
        return table
    return replace(table, caption=[*table.caption, *caption.simulated_in(source)])
