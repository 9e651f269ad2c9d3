"""Measures travel to the store and come back: a report from MLflow knows them too."""

from __future__ import annotations

from pathlib import Path

from harness.measures import FOLDER, Measure, read_all, write_measure
from harness.tracking.client import connect
from harness.tracking.read import from_mlflow
from harness.tracking.sync import sync
from harness.tracking.tracked import from_ledger
from tests.tracking.conftest import bare

PAIRS = Measure("table4", ({"environment": "webshop", "physical_pairs": 3482, "n": None},), "cota-bench pairs demo")
COSTS = Measure("table10", ({"environment": "webshop", "total_h200_hours": None, "cpu_hours": 0.25},), "x", ("CPU",))


def test_measures_come_back_as_they_were(folder: Path, uri: str) -> None:
    sync(folder, summarise=bare)
    assert from_mlflow(uri, "demo").measures == {}
    write_measure(folder, PAIRS)
    write_measure(folder, COSTS)
    sync(folder, summarise=bare)
    assert from_mlflow(uri, "demo").measures == from_ledger(folder).measures == {"table4": PAIRS, "table10": COSTS}
    runs = connect(uri).search_runs(["2"])
    assert [run.info.run_name for run in runs] == ["Measures beside the episodes"]


def test_changed_and_deleted_measures_are_followed(folder: Path, uri: str) -> None:
    write_measure(folder, PAIRS)
    sync(folder, summarise=bare)
    newer = Measure("table4", ({"environment": "webshop", "physical_pairs": 7},), "cota-bench pairs demo")
    write_measure(folder, newer)
    write_measure(folder, COSTS)
    sync(folder, summarise=bare)
    assert from_mlflow(uri, "demo").measures == {"table4": newer, "table10": COSTS}
    (folder / FOLDER / "table10.json").unlink()
    sync(folder, summarise=bare)
    assert from_mlflow(uri, "demo").measures == read_all(folder) == {"table4": newer}
    (folder / FOLDER / "table4.json").unlink()
    sync(folder, summarise=bare)
    assert from_mlflow(uri, "demo").measures == {}
    assert connect(uri).search_runs(["2"]) == []
