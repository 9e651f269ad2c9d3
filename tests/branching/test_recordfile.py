"""Record file: durable, torn tails are cut, the last record of a key counts, one writer."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from harness.codec import CodecError
from harness.errors import UsageError
from methods.branching.recordfile import RecordFile


def fill(path: Path, count: int = 30) -> None:
    with RecordFile(path) as file:
        for i in range(count):
            file.append({"key": f"k{i % 20}", "status": "done", "value": i, "long": "ü" * (i * 50)})


def test_last_record_of_a_key_counts_and_zcat_reads_it(tmp_path: Path) -> None:
    fill(tmp_path / "r.gz")
    file = RecordFile(tmp_path / "r.gz")
    assert len(file) == 20
    assert [file.read(f"k{i}")["value"] for i in (0, 9, 10, 19)] == [20, 29, 10, 19]
    assert [record["key"] for record in file.records()] == sorted(file.keys())
    assert len(gzip.decompress((tmp_path / "r.gz").read_bytes()).splitlines()) == 2 * 30  # header and body


def test_every_torn_tail_loses_one_record_only(tmp_path: Path) -> None:
    path = tmp_path / "r.gz"
    fill(path, 3)
    whole = path.read_bytes()
    fill(path, 0)
    with RecordFile(path) as file:
        file.append({"key": "last", "status": "done"})
    full = path.read_bytes()
    for end in range(len(whole) + 1, len(full)):
        path.write_bytes(full[:end])
        with RecordFile(path) as file:
            assert "last" not in file
            assert len(file) == 3
        assert path.read_bytes() == whole


def test_damage_in_the_middle_is_said_and_costs_one_record(tmp_path: Path) -> None:
    path = tmp_path / "r.gz"
    fill(path, 15)
    data = bytearray(path.read_bytes())
    data[len(data) // 2 : len(data) // 2 + 20] = b"x" * 20
    path.write_bytes(data)
    with pytest.warns(UserWarning, match="damaged bytes"):
        assert len(RecordFile(path)) == 14
    path.write_bytes(b"something else")
    with pytest.raises(UsageError, match="no record file"):
        RecordFile(path)


def test_a_second_writer_is_refused_and_nan_too(tmp_path: Path) -> None:
    with RecordFile(tmp_path / "r.gz") as file:
        with pytest.raises(UsageError, match="Another process"), RecordFile(tmp_path / "r.gz"):
            pass
        with pytest.raises(CodecError, match="not a JSON value"):
            file.append({"key": "a", "value": float("nan")})
        file.append({"key": "a", "value": 1})
    assert RecordFile(tmp_path / "r.gz").read("a") == {"key": "a", "value": 1}
    assert RecordFile(tmp_path / "absent.gz").keys() == []
