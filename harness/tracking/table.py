"""Episode tables: rows as Arrow, Parquet for machines and CSV for the eye.

The Parquet of a cell holds the columns of `harness.rows` and one more, `record`, with the episode's full JSON: every
table and every episode can be rebuilt from the tracking store alone.  One Arrow schema serves both ways in (ledger and
Parquet), so the frames are equal and not just alike.  A file of another row version is not trusted: its rows are made
anew from the records.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from harness.codec import from_json, parse
from harness.errors import UsageError
from harness.records import Episode
from harness.rows import FIELDS, ROW_VERSION, Row, record_row

if TYPE_CHECKING:
    import pyarrow as pa

RECORD: Final = "record"
PREVIEW: Final = [
    "task_id",
    "status",
    "outcome",
    "reward",
    "success",
    "steps",
    "work_s",
    "reviews",
    "fired",
    "adopt",
    "keep",
    "novel",
    "fail_opens",
    "boundary",
    "reason",
]


def arrow() -> Any:
    """The pyarrow module. Raises `UsageError` when it is not installed."""
    try:
        import pyarrow
    except ImportError as error:
        raise UsageError("Tables need pyarrow and pandas. Install them: pip install 'cota-bench[tracking]'") from error
    return pyarrow


def schema(*, records: bool = False) -> pa.Schema:
    """The Arrow schema of the rows, with the `record` column when asked."""
    pa = arrow()
    kinds = {"str": pa.string(), "int": pa.int64(), "float": pa.float64(), "bool": pa.bool_()}
    fields = [pa.field(name, kinds[kind]) for name, kind, _ in FIELDS]
    if records:
        fields.append(pa.field(RECORD, pa.string()))
    return pa.schema(fields, metadata={"row_version": str(ROW_VERSION)})


def to_table(rows: Iterable[Row]) -> pa.Table:
    """Rows as an Arrow table of the fixed schema."""
    return arrow().Table.from_pylist(list(rows), schema=schema())


def write_parquet(path: Path, rows: Sequence[Row], records: Sequence[str]) -> None:
    """Rows and full records (JSON texts of `harness.codec`) of the same episodes, written atomically."""
    pa = arrow()
    import pyarrow.parquet as pq

    table = to_table(rows).append_column(RECORD, pa.array(records, pa.string()))
    table = table.replace_schema_metadata(schema().metadata)
    part = path.with_suffix(".part")
    pq.write_table(table, part, compression="zstd")
    os.replace(part, path)


def read_parquet(path: Path) -> pa.Table:
    """The rows of one file, without the records; made anew from the records when the row version differs."""
    import pyarrow.parquet as pq

    file = pq.ParquetFile(path)
    if (file.schema_arrow.metadata or {}).get(b"row_version") != str(ROW_VERSION).encode():
        return to_table(record_row(parse(text)) for text in _texts(path))
    return file.read(columns=[name for name, _, _ in FIELDS]).cast(schema())


def read_records(path: Path) -> Iterator[Episode]:
    """The full episodes of one file, in order."""
    return (from_json(parse(text)) for text in _texts(path))


def _texts(path: Path) -> Iterator[str]:
    import pyarrow.parquet as pq

    for batch in pq.ParquetFile(path).iter_batches(batch_size=64, columns=[RECORD]):
        yield from batch.column(0).to_pylist()


def write_csv(path: Path, rows: Sequence[Row]) -> None:
    """A narrow table of the episodes that the MLflow page can preview."""
    import csv

    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, PREVIEW, extrasaction="ignore")
        writer.writeheader()
        for row in rows:
            writer.writerow({name: _short(row[name]) for name in PREVIEW})


def _short(value: object) -> object:
    if isinstance(value, float):
        return f"{value:.6g}"
    return value[:200] if isinstance(value, str) else value
