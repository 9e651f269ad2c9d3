"""Messages of the command line name what is wrong and what there is."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from harness.cli.checking import show_check
from harness.cli.run import adjusted
from harness.cli.tracked import study_folder
from harness.errors import UsageError, nearest
from harness.study import load_study
from harness.tracking.ui import start_ui


@pytest.mark.parametrize("port", [-4, 65_536, 99_999_999])
def test_a_port_out_of_range(tmp_path: Path, port: int) -> None:
    with pytest.raises(UsageError, match=f"from 0 .* to 65535, not {port}"):
        start_ui(tmp_path, port)


def test_only_studies_are_offered(tmp_path: Path) -> None:
    (tmp_path / "mlflow-artifacts").mkdir()
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "study.json").touch()
    with pytest.raises(UsageError, match="There are no results of 'othr'") as caught:
        study_folder("othr", tmp_path)
    assert "Did you mean 'other'? Valid: other." in str(caught.value)


def test_report_names_the_nearest_study(tmp_path: Path) -> None:
    from reports.command import report

    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "ledger.jsonl.gz").touch()
    with pytest.raises(UsageError, match="Did you mean 'other'"):
        report("othr", results=tmp_path, mlflow=False, tracking_uri=None, out=None)


def test_a_plugin_of_another_kind() -> None:
    with pytest.raises(UsageError, match="'origin' is none of the actors; it is registered under methods"):
        show_check(Console(file=io.StringIO()), "origin", "actors", "{}", None)


def test_a_name_is_offered_once() -> None:
    assert nearest("mok", ["mock", "mock"]) == " Did you mean 'mock'? Valid: mock."


def test_workers_of_the_command_line_are_bounded() -> None:
    with pytest.raises(UsageError, match="at most 1024, not 100000"):
        adjusted(load_study("quickstart"), 100_000)
