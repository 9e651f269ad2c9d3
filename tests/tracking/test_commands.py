"""`sync`, `merge` and `list` as the command line calls them: what they print and give back."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from benchmarks.grid import made
from harness.cli.listing import show_lists
from harness.cli.tracked import merge_command, sync_command
from harness.run import run_study


def ran(root: Path) -> Path:
    """A small finished study."""
    study = made("sequential", 3, 2, 1)
    run_study(study, root, live=False, stream=io.StringIO())
    return root / study.study


def test_sync_says_what_it_wrote(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("mlflow")
    folder = ran(tmp_path)
    assert sync_command(folder.name, tmp_path, None) == 0
    assert "2 run(s) written, 0 unchanged, 0 cell(s) incomplete" in capsys.readouterr().out
    assert sync_command(folder.name, tmp_path, None) == 0
    assert "0 run(s) written, 2 unchanged" in capsys.readouterr().out


def test_merge_says_what_follows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = ran(tmp_path / "mine")
    assert merge_command([folder], tmp_path / "all" / folder.name) == 0
    assert f"cota-bench sync {folder.name}" in capsys.readouterr().out


def test_list_names_plugins_and_studies() -> None:
    text = io.StringIO()
    show_lists(Console(file=text, width=200))
    assert "mock" in text.getvalue()
    assert "quickstart" in text.getvalue()
