"""Measures keep what was written, refuse what JSON has no word for, and say what is wrong with a damaged file."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.errors import UsageError
from harness.measures import Measure, names, read_all, read_measure, write_measure


def test_what_was_written_is_read(tmp_path: Path) -> None:
    made = Measure(
        "table7", ({"environment": "WebShop", "bce": 0.5, "n": 3, "spearman": None},), "a command", ("tiny",)
    )
    write_measure(tmp_path, made)
    assert read_measure(tmp_path, "table7") == made
    assert names(tmp_path) == ["table7"]
    assert read_measure(tmp_path, "table4") is None


def test_nan_and_paths_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="None"):
        write_measure(tmp_path, Measure("table7", ({"bce": float("nan")},), "x"))
    with pytest.raises(ValueError, match="plain word"):
        write_measure(tmp_path, Measure("../table7", (), "x"))


def _with(rows: str, notes: str = "[]", name: str = "table7") -> str:
    return f'{{"schema": 1, "measure": "{name}", "made_by": "x", "notes": {notes}, "rows": {rows}}}'


@pytest.mark.parametrize(
    "text",
    [
        *("{", "[]", '{"schema": 1}', '{"schema": 9}', '{"schema": "1"}'),
        *(_with("[1, 2]"), _with('"abc"'), _with("{}"), _with("[]", '"abc"'), _with("[]", "[1]")),
        *(_with('[{"bce": NaN}]'), _with('[{"bce": 1e999}]'), _with('[{"bce": {"a": 1}}]'), _with('[{"bce": [1]}]')),
        _with("[]", name="table4"),
    ],
)
def test_a_damaged_file_names_itself(tmp_path: Path, text: str) -> None:
    (tmp_path / "measures").mkdir()
    (tmp_path / "measures" / "table7.json").write_text(text)
    with pytest.raises(UsageError, match=r"table7\.json"):
        read_measure(tmp_path, "table7")


def test_a_folder_or_a_stray_file_in_a_measures_place_is_said(tmp_path: Path) -> None:
    (tmp_path / "measures" / "table7.json").mkdir(parents=True)
    with pytest.raises(UsageError, match=r"table7\.json.*directory"):
        read_measure(tmp_path, "table7")
    (tmp_path / "measures" / "table7.json").rmdir()
    (tmp_path / "measures" / "my-notes.json").write_text("{}")
    with pytest.raises(UsageError, match=r"measures/my-notes\.json.*plain word"):
        read_all(tmp_path)
