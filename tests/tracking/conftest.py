"""Fixtures: results folders with a plan and a ledger, an SQLite store beside them."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from harness.tracking.client import connect, default_uri
from harness.tracking.plan import PlannedCell
from harness.tracking.summary import Summary
from harness.tracking.tracked import Tracked
from tests.synthetic import episodes_of, planned_cells, write_ledger, write_plan


@pytest.fixture(autouse=True)
def no_server_of_the_user(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tests' stores are their own."""
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)


def bare(_: Tracked) -> Summary:
    """No summary runs, for tests that are about cells."""
    return Summary([], {}, {}, [])


@pytest.fixture(scope="session")
def migrated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty store with MLflow's tables, made once; copying it saves a second of migrations a test."""
    folder = tmp_path_factory.mktemp("store")
    connect(default_uri(folder))
    with closing(sqlite3.connect(folder / "mlflow.db")) as database:
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return folder / "mlflow.db"


@pytest.fixture
def results(tmp_path: Path, migrated: Path) -> Path:
    """A results folder whose store has its tables already."""
    folder = tmp_path / "results"
    folder.mkdir()
    shutil.copy(migrated, folder / "mlflow.db")
    return folder


@pytest.fixture
def cells() -> list[PlannedCell]:
    return planned_cells(methods=("origin", "cota"), actors=("weak",), seeds=(0, 1), tasks=3)


@pytest.fixture
def folder(results: Path, cells: list[PlannedCell]) -> Path:
    found = write_plan(results / "demo", cells)
    return write_ledger(found, episodes_of(cells))


@pytest.fixture
def uri(folder: Path) -> str:
    return default_uri(folder.parent)
