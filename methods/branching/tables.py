"""Tables: Parquet written and read in bounded batches, and the data card beside them."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.cache import read_json
from harness.errors import UsageError

BATCH = 2048  # rows; a view has some kilobytes


def _arrow() -> Any:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise UsageError("Branches and pairs are Parquet files: `pip install pyarrow` (extra `tracking`).") from error
    return pyarrow


class Writer:
    """Rows into one Parquet file, batch by batch; the file appears under its name only when it is closed."""

    def __init__(self, path: Path, columns: Mapping[str, str], batch: int = BATCH) -> None:
        self.path = path
        self.batch = batch
        self.rows = 0
        self._arrow = _arrow()
        self._schema = self._arrow.schema([(name, self._type(kind)) for name, kind in columns.items()])
        path.parent.mkdir(parents=True, exist_ok=True)
        self._draft = path.with_name(f".{path.name}.{os.getpid()}")
        self._file: Any = self._arrow.parquet.ParquetWriter(self._draft, self._schema, compression="zstd")
        self._held: list[Mapping[str, Any]] = []

    def _type(self, kind: str) -> Any:
        if kind.startswith("list<"):
            return self._arrow.list_(self._type(kind[5:-1]))
        return self._arrow.bool_() if kind == "bool" else getattr(self._arrow, kind)()

    def add(self, row: Mapping[str, Any]) -> None:
        """One row; raises KeyError when a column is missing (extra keys are ignored)."""
        self._held.append({name: row[name] for name in self._schema.names})
        self.rows += 1
        if len(self._held) >= self.batch:
            self._flush()

    def _flush(self) -> None:
        if self._held:
            self._file.write_table(self._arrow.Table.from_pylist(self._held, schema=self._schema))
            self._held = []

    def close(self) -> None:
        """Write what is held and put the file in its place; safe to call twice."""
        if self._file is not None:
            self._flush()
            self._file.close()
            self._file = None
            os.replace(self._draft, self.path)

    def discard(self) -> None:
        """Give up what was written: an interrupted table does not take the place of a whole one."""
        if self._file is not None:
            self._file.close()
            self._file = None
            self._draft.unlink(missing_ok=True)


def read_rows(path: Path, columns: Sequence[str] | None = None, batch: int = BATCH) -> Iterator[dict[str, Any]]:
    """Rows of a Parquet file, one batch in memory. Raises `UsageError` when there is no such file or it is damaged."""
    if not path.exists():
        raise UsageError(f"{path} does not exist. Branch tables are made by `cota-bench collect`.")
    arrow = _arrow()
    try:
        with arrow.parquet.ParquetFile(path) as file:
            for part in file.iter_batches(batch_size=batch, columns=list(columns) if columns else None):
                yield from part.to_pylist()
    except (arrow.lib.ArrowException, OSError) as error:
        why = " ".join(str(error).split())[:200]
        raise UsageError(f"{path} is damaged ({why}). Remove it and run the command that made it again.") from error


def write_card(folder: Path, title: str, card: Mapping[str, Any], tables: Mapping[str, Any]) -> None:
    """`card.json` for programs and `README.md` for people, with the header that `datasets` reads configurations from.

    Args:
        folder: where the tables are.
        title: first line of the card.
        card: numbers and identity, JSON.
        tables: configuration name to a file pattern, or to a list of `{split, path}`.
    """
    lines = ["---", "configs:"]
    for name, files in tables.items():
        lines += [f"- config_name: {name}", f"  data_files: {json.dumps(files)}"]
    lines += ["---", f"# {title}", ""]
    if card.get("simulated"):
        lines += [f"**Simulated:** {', '.join(card['simulated'])}. No language model made these trajectories.", ""]
    lines += ["| | |", "| --- | --- |"]
    lines += [f"| {key} | {_cell(value)} |" for key, value in card.items()]
    for name, text in (("card.json", json.dumps(card, indent=1, allow_nan=False)), ("README.md", "\n".join(lines))):
        draft = folder / f".{name}.{os.getpid()}"
        draft.write_text(text + "\n", encoding="utf-8")
        os.replace(draft, folder / name)


def read_card(folder: Path) -> dict[str, Any]:
    """`card.json` of a folder. Raises `UsageError` when there is none."""
    path = folder / "card.json"
    if not path.exists():
        raise UsageError(f"{folder} holds no data: card.json is missing. Make branches with `cota-bench collect`.")
    return read_json(path)


def _cell(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text.replace("|", "\\|").replace("\n", " ")
