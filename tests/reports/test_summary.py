"""Summary runs: a mean over environments is there only where a method ran wherever others with its actor did."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from harness.tracking.tracked import from_ledger
from reports.summary import summarise
from tests.synthetic import make_episode, planned_cells, write_ledger, write_plan

pytest.importorskip("matplotlib")


def test_a_skipped_environment_leaves_no_mean_over_the_others(tmp_path: Path) -> None:
    cells = planned_cells(
        methods=("origin", "cota"), actors=("weak",), environments=("webshop", "retail"), seeds=(0,), tasks=3
    )
    cells = [
        replace(cell, skipped="too slow") if (cell.method, cell.environment) == ("cota", "retail") else cell
        for cell in cells
    ]
    folder = tmp_path / "demo"
    write_plan(folder, cells)
    write_ledger(folder, [make_episode(cell, task) for cell in cells if not cell.skipped for task in cell.tasks])
    runs = {run.method: run for run in summarise(from_ledger(folder)).runs}
    assert "performance_mean" in runs["origin"].metrics
    assert "webshop_performance" in runs["cota"].metrics
    assert not {"performance_mean", "avg_t_mean"} & set(runs["cota"].metrics)
    assert "skipped by the study in retail" in runs["cota"].note
    assert "No mean over environments" not in runs["origin"].note
