"""`cota-bench run` where nothing is left to run: tables and store follow the study file; `show` speaks its words."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.cli.run import run_command
from harness.cli.tracked import show_command
from harness.errors import UsageError
from harness.show import Wanted, one, wanted_of
from harness.tracking import sync as sync_module
from harness.tracking.client import default_uri
from harness.tracking.read import from_mlflow
from harness.tracking.tracked import from_ledger
from reports.write import report_files

STUDY = """
study: small
environments: {mock: {params: {length: 3}, tasks: 2}}
actors: {sim: {plugin: simulated, params: {competence: strong}}}
methods:
  one: {plugin: origin}
  two: {plugin: self-reflection}
seeds: [0, 1]
throughput: {backend: sequential}
"""
SWAPPED = STUDY.replace("  one: {plugin: origin}\n  two: {plugin: self-reflection}",
                        "  two: {plugin: origin}\n  one: {plugin: self-reflection}")  # fmt: skip


def go(results: Path, text: str) -> int:
    file = results.parent / "small.yaml"
    file.write_text(text)
    return run_command(str(file), results, None, None, None, True, True)


def methods(results: Path) -> tuple[set[str], set[str]]:
    """Method labels as the written table and the store have them."""
    table = (results / "small" / "report" / "table1.csv").read_text().splitlines()
    place = table[0].split(",").index("method")
    stored = from_mlflow(default_uri(results), "small")
    return {line.split(",")[place] for line in table[1:]}, {cell.method for cell in stored.cells}


def test_a_renamed_label_reaches_tables_and_store(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert go(results, STUDY) == 0
    assert methods(results) == ({"one", "two"}, {"one", "two"})
    capsys.readouterr()
    assert go(results, STUDY.replace("  one:", "  plain:")) == 0
    assert "ran 0 episode" in capsys.readouterr().out
    assert methods(results) == ({"plain", "two"}, {"plain", "two"})


def test_a_dropped_method_leaves_table_and_store_and_both_reports_agree(results: Path) -> None:
    go(results, STUDY)
    assert go(results, STUDY.replace("  two: {plugin: self-reflection}\n", "")) == 0
    assert methods(results) == ({"one"}, {"one"})
    here, there = from_ledger(results / "small"), from_mlflow(default_uri(results), "small")
    assert (here.left_out, there.left_out) == (4, 4)
    assert "4 recorded episodes belong to cells outside the present plan" in report_files(here)["report.md"]
    assert report_files(here) == report_files(there)


def test_a_store_made_after_the_change_agrees_too(results: Path) -> None:
    go(results, STUDY)
    go(results, STUDY.replace("  two: {plugin: self-reflection}\n", ""))
    new = f"sqlite:///{results / 'new.db'}"
    sync_module.sync(results / "small", new)
    assert report_files(from_mlflow(new, "small")) == report_files(from_ledger(results / "small"))
    go(results, STUDY)
    assert from_mlflow(default_uri(results), "small").left_out == 0


def test_nothing_is_made_twice(
    results: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    go(results, STUDY)
    capsys.readouterr()
    assert go(results, STUDY.replace("sequential}", "threading, workers: 2}")) == 0
    said = capsys.readouterr().out
    assert "tables:" not in said
    assert "MLflow:" not in said
    (results / "small" / ".made.json").write_text("[")
    go(results, STUDY)
    assert "tables:" in capsys.readouterr().out


def test_show_finds_by_the_present_labels_and_prints_both(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    go(results, STUDY)
    folder = results / "small"
    plain = one(folder, Wanted(method="one", seed=0, task="test-0")).cell
    assert go(results, SWAPPED) == 0
    assert one(folder, wanted_of("two/sim/mock/0/test-0", folder)).cell == plain
    capsys.readouterr()
    show_command("small", "two/sim/mock/0/test-0", results, False, False)
    assert "method two (run as one)" in " ".join(capsys.readouterr().out.split())
    with pytest.raises(UsageError, match=f"{plain}:test-0   two x sim x mock x seed 0"):
        one(folder, wanted_of("test-0", folder))
    go(results, SWAPPED.replace("  two:", "  plain:"))
    with pytest.raises(UsageError, match="There is no method 'two'"):
        one(folder, Wanted(method="two"))
