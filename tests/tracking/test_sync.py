"""Sync against a real SQLite store."""

from __future__ import annotations

import json
import math
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import mlflow
import pytest

from harness import ledger
from harness.codec import to_json
from harness.records import SCHEMA_VERSION, Episode
from harness.tracking import layout
from harness.tracking.client import connect
from harness.tracking.live import LiveTracker
from harness.tracking.metrics import POINTS, curves, final_metrics
from harness.tracking.plan import PlannedCell, public_params, read_plan
from harness.tracking.read import from_mlflow
from harness.tracking.sync import sync
from harness.tracking.tracked import from_ledger
from reports.summary import summarise
from reports.write import write_report
from tests.synthetic import episodes_of, make_episode, planned_cells, write_ledger, write_plan
from tests.tracking.conftest import bare


def dump(uri: str) -> dict[str, Any]:
    """Everything the store says, run ids included."""
    client = connect(uri)
    found = {}
    for experiment in client.search_experiments(filter_string="tags.`cota.study` != ''"):
        for run in client.search_runs([experiment.experiment_id], max_results=500):
            points = {
                name: [(m.step, m.timestamp, m.value) for m in client.get_metric_history(run.info.run_id, name)]
                for name in run.data.metrics
            }
            files = sorted(item.path for item in client.list_artifacts(run.info.run_id))
            head = (run.info.run_id, run.info.status, run.info.start_time, run.info.end_time)
            found[experiment.name, run.info.run_name] = (head, run.data.params, run.data.tags, points, files)
    return found


def test_layout_of_a_finished_study(folder: Path, uri: str, cells: list[PlannedCell]) -> None:
    result = sync(folder, summarise=summarise)
    assert (result.written, result.unchanged, result.incomplete) == (12, 0, 0)
    store = dump(uri)
    runs = {name: value for (experiment, name), value in store.items() if experiment == "demo"}
    assert set(runs) == {cell.name for cell in cells}
    for cell in cells:
        head, params, tags, points, files = runs[cell.name]
        assert head[1] == "FINISHED"
        assert head[3] > head[2] > 1_000_000_000_000
        assert params["method"] == cell.method
        assert params["method.params.k"] == "4"
        assert tags["cota.cell"] == cell.key
        assert tags["cota.status"] == "complete"
        assert tags["cota.study"] == "demo"
        assert "actor" in tags["simulated"]
        assert "Simulated: actor" in tags["mlflow.note.content"]
        assert "mlflow.parentRunId" not in tags
        final = [name for name in points if "/" not in name]
        drawn = [name for name in points if "/" in name]
        assert 6 <= len(final) <= 15
        assert 2 <= len(drawn) <= 5
        assert set(final) | set(drawn) <= set(layout.cell_glossary())
        assert all(len(points[name]) == 1 for name in final)
        assert all(math.isfinite(value) for history in points.values() for _, _, value in history)
        assert files == ["cell.json", "episodes.csv", "episodes.parquet"]
    groups = {name: value for (experiment, name), value in store.items() if experiment == "demo-summary"}
    assert set(groups) == {"origin | weak", "cota | weak"}
    metrics = {name: history[-1][2] for name, history in groups["cota | weak"][3].items()}
    assert (
        metrics["webshop_performance_ci_lo"] <= metrics["webshop_performance"] <= metrics["webshop_performance_ci_hi"]
    )
    assert {"performance_mean", "performance_mean_ci_lo", "performance_mean_ci_hi", "retail_avg_t"} <= set(metrics)
    assert {"performance.png", "report.md", "tables"} <= set(groups["cota | weak"][4])


def test_numbers_in_mlflow_are_those_of_the_episodes(folder: Path, uri: str, cells: list[PlannedCell]) -> None:
    sync(folder, summarise=bare)
    store = dump(uri)
    for cell in cells:
        mine = [make_episode(cell, task) for task in cell.tasks]
        points = store["demo", cell.name][3]
        rewards = [episode.reward or 0.0 for episode in mine]
        assert points["reward_mean_scored"][0][2] == pytest.approx(sum(rewards) / 3)
        assert points["seconds_per_episode"][0][2] == pytest.approx(sum(e.wall_s - 0.05 for e in mine) / 3)
        assert points["curve/reward_mean_scored"][-1][2] == pytest.approx(sum(rewards) / 3)


def test_syncing_again_changes_nothing(folder: Path, uri: str) -> None:
    sync(folder, summarise=summarise)
    before = dump(uri)
    again = sync(folder, summarise=summarise)
    assert (again.written, again.unchanged) == (0, 12)
    assert dump(uri) == before


def test_another_store_gets_the_same_content(folder: Path, uri: str, tmp_path: Path) -> None:
    sync(folder, summarise=summarise)
    before = dump(uri)
    new = f"sqlite:///{tmp_path / 'deep' / 'er' / 'other.db'}"
    assert sync(folder, new, summarise=summarise).written == 12

    def content(store: dict[str, Any]) -> dict[str, Any]:
        return {
            key: (
                head[1:],
                params,
                {k: v for k, v in tags.items() if not k.startswith(("mlflow.artifact", "cota.trace"))},  # hold run ids
                points,
                files,
            )
            for key, (head, params, tags, points, files) in store.items()
        }

    assert content(dump(new)) == content(before)
    assert (tmp_path / "deep" / "er" / "mlflow-artifacts" / "demo").is_dir()


def test_growing_cells_keep_their_runs(results: Path, cells: list[PlannedCell]) -> None:
    folder = write_plan(results / "demo", cells)
    everything = list(episodes_of(cells))
    write_ledger(folder, everything[:29])
    first = sync(folder, summarise=summarise)
    uri = first.uri
    assert first.incomplete == 7
    store = dump(uri)
    states = [value[2]["cota.status"] for (name, _), value in store.items() if name == "demo"]
    assert (states.count("complete"), states.count("incomplete")) == (5, 7)
    halves = [value for (name, _), value in store.items() if name == "demo" and value[0][1] != "FINISHED"]
    assert len(halves) == first.incomplete
    assert all("Incomplete" in value[2]["mlflow.note.content"] for value in halves)
    assert not any(name.startswith("curve/") for value in halves for name in value[3])
    write_ledger(folder, everything[29:])
    second = sync(folder, summarise=summarise)
    assert second.incomplete == 0
    after = dump(uri)
    assert after.keys() == store.keys()
    for key, value in store.items():
        assert after[key][0][0] == value[0][0]
        assert after[key][2]["cota.status"] == "complete"
    assert sync(folder, summarise=summarise).written == 0


def test_planned_cells_without_a_row_are_runs_too(results: Path, cells: list[PlannedCell]) -> None:
    folder = write_plan(results / "demo", cells)
    write_ledger(folder, episodes_of(cells[:1]))
    result = sync(folder, summarise=bare)
    assert (result.written, result.incomplete) == (12, 11)
    statuses = {value[0][1] for (name, _), value in dump(result.uri).items() if name == "demo"}
    assert statuses == {"FINISHED", "SCHEDULED"}
    assert [cell.key for cell in from_mlflow(result.uri, "demo").cells] == [cell.key for cell in cells]


def test_a_retried_episode_replaces_the_curve(results: Path) -> None:
    cells = planned_cells(methods=("origin",), actors=("weak",), environments=("webshop",), seeds=(0,), tasks=3)
    folder = write_plan(results / "demo", cells)
    (cell,) = cells
    broken = make_episode(cell, "webshop-1", "failed")
    write_ledger(folder, [make_episode(cell, "webshop-0"), broken, make_episode(cell, "webshop-2")])
    uri = sync(folder, summarise=bare).uri
    points = dump(uri)["demo", cell.name][3]
    assert points["episodes_errors"][-1][2] == 1
    assert points["reward_mean_errors_zero"][-1][2] < points["reward_mean_scored"][-1][2]
    write_ledger(folder, [make_episode(cell, "webshop-1", attempt=2)])
    sync(folder, summarise=bare)
    store = dump(uri)
    assert len([key for key in store if key[0] == "demo"]) == 1
    points = store["demo", cell.name][3]
    assert points["episodes_errors"][-1][2] == 0
    assert "reward_mean_errors_zero" not in points
    assert [step for step, _, _ in points["curve/reward_mean_scored"]] == [1, 2, 3]


def test_identical_numbers_from_ledger_and_mlflow(results: Path, tmp_path: Path, cells: list[PlannedCell]) -> None:
    """Awkward on purpose: errors, a gap, an unscored task, a skipped cell; every file is equal byte by byte."""
    cells = [replace(cell, skipped="left out") if cell.key == cells[-1].key else cell for cell in cells]
    folder = write_plan(results / "demo", cells)
    made: list[Episode] = []
    for i, episode in enumerate(episodes_of(cell for cell in cells if not cell.skipped)):
        if i % 7 == 3:
            continue
        if i % 5 == 2:
            episode = replace(episode, status="unparsed", reward=None, success=None, boundary="actor")
        elif i % 11 == 4:
            episode = replace(episode, reward=None, success=None, info={"unscored": "needs a judge"})
        made.append(episode)
    write_ledger(folder, made)
    uri = sync(folder, summarise=summarise).uri
    ours = {path.name: path.read_bytes() for path in write_report(folder, tmp_path / "a")[:-1]}
    theirs = {path.name: path.read_bytes() for path in write_report(uri, tmp_path / "b", study="demo")[:-1]}
    assert ours == theirs
    assert len(ours) >= 10
    one, other = from_ledger(folder), from_mlflow(uri, "demo")
    assert one.table.equals(other.table)
    assert one.cells == other.cells
    stored = {(e.cell, e.task_id): to_json(e) for e in one.records()}
    assert {(e.cell, e.task_id): to_json(e) for e in other.records()} == stored
    assert len(stored) == len(made)


def test_the_global_run_is_never_touched(folder: Path, uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("the global active run was used")

    for name in (
        "start_run",
        "log_metric",
        "log_metrics",
        "log_params",
        "set_tag",
        "set_experiment",
        "set_tracking_uri",
    ):
        monkeypatch.setattr(mlflow, name, refuse)
    sync(folder, summarise=summarise)
    assert mlflow.active_run() is None


def test_two_syncs_at_once_do_not_double(folder: Path, uri: str) -> None:
    errors: list[BaseException] = []

    def work() -> None:
        try:
            sync(folder, summarise=bare)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert len(connect(uri).search_runs(["1"], max_results=100)) == 12


def test_cells_that_left_the_plan_are_marked_and_not_reported(folder: Path, uri: str, cells: list[PlannedCell]) -> None:
    sync(folder, summarise=bare)
    write_plan(folder, [cell for cell in cells if cell.seed == 0])
    sync(folder, summarise=bare)
    assert {cell.seed for cell in from_mlflow(uri, "demo").cells} == {0}
    states = [value[2]["cota.status"] for (name, _), value in dump(uri).items() if name == "demo"]
    assert states.count(layout.OUTSIDE) == 6
    write_plan(folder, cells)
    sync(folder, summarise=bare)
    assert len(from_mlflow(uri, "demo").cells) == 12


def test_secrets_never_reach_the_store(results: Path, cells: list[PlannedCell]) -> None:
    canary = "sk-canary-4711"
    identity = {
        "actor": {
            "plugin": "openai",
            "params": {
                "api_key": canary, "auth_token": canary, "base_url": f"http://u:{canary}@h", "headers": {"x": canary},
                "model": "some-model", "max_tokens": 64, "password": 1234, "temperature": 0.5, "note": canary,
                "extra": [canary],
            },
        }
    }  # fmt: skip
    shown = public_params(identity)
    assert shown == {
        "actor.params.max_tokens": 64,
        "actor.params.model": "some-model",
        "actor.params.temperature": 0.5,
        "actor.plugin": "openai",
    }
    folder = write_plan(results / "demo", cells[:2])
    study = json.loads((folder / "study.json").read_text())
    for cell in study["cells"]:
        cell["identity"] |= identity
    (folder / "study.json").write_text(json.dumps(study))
    write_ledger(folder, episodes_of(cells[:2]))
    sync(folder, summarise=summarise)
    for path in folder.parent.rglob("*"):
        if path.is_file() and path != folder / "study.json":
            assert canary.encode() not in path.read_bytes(), path


def test_long_and_odd_names_fit(results: Path) -> None:
    cells = planned_cells(methods=("origin", "m" * 60 + "=%("), environments=("web+shop=1%",), seeds=(0,), tasks=2)
    folder = write_plan(results / "demo", cells)
    write_ledger(folder, [make_episode(c, t, reason="x" * 20_000) for c in cells for t in c.tasks])
    result = sync(folder, summarise=summarise)
    assert result.written == 4
    assert len(from_mlflow(result.uri, "demo").rows) == 8


def test_unknown_and_not_finite_are_not_logged(cells: list[PlannedCell]) -> None:
    from harness.rows import episode_row

    rows = [episode_row(make_episode(cells[0], task)) for task in cells[0].tasks]
    rows[0]["actor_prompt"] = None
    found = final_metrics(cells[0], rows)
    assert "actor_tokens" not in found
    assert "adopt_share" not in found
    assert final_metrics(cells[0], []) == {
        "episodes_planned": 3.0, "episodes_scored": 0.0, "episodes_errors": 0.0, "episodes_missing": 3.0,
        "actor_tokens": 0.0, "advisor_tokens": 0.0,
    }  # fmt: skip
    assert curves(cells[0], []) == {}


def test_curves_are_short_and_end_exactly() -> None:
    from harness.rows import episode_row

    (cell,) = planned_cells(methods=("cota",), actors=("weak",), environments=("webshop",), seeds=(0,), tasks=137)
    rows = [episode_row(make_episode(cell, task, steps=1)) for task in cell.tasks]
    drawn = curves(cell, rows)
    assert set(drawn) == {"curve/reward_mean_scored", "curve/success_rate_scored", "curve/seconds_per_episode",
                          "curve/fired_share"}  # fmt: skip
    for points in drawn.values():
        assert len(points) <= POINTS
        assert points[-1][0] == 137
    assert drawn["curve/reward_mean_scored"][-1][1] == final_metrics(cell, rows)["reward_mean_scored"]
    assert curves(cell, rows[::-1]) == drawn


def test_the_plan_is_read_from_the_folder(folder: Path, cells: list[PlannedCell]) -> None:
    plan = read_plan(folder)
    assert [(cell.key, cell.tasks, cell.metric) for cell in plan] == [(c.key, c.tasks, c.metric) for c in cells]
    assert plan[0].params == {"environment.plugin": "webshop", "method.params.k": 4}
    assert SCHEMA_VERSION == 1


def test_live_tracker_follows_and_survives(results: Path, cells: list[PlannedCell]) -> None:
    folder = write_plan(results / "demo", cells)
    said: list[str] = []
    live = LiveTracker(folder, every_s=0.0, say=said.append)
    assert live.check()
    with ledger.Ledger(folder) as book:
        for episode in list(episodes_of(cells))[:4]:
            book.append(episode)
            live(episode)
            live._next = 0.0
    runs = connect(live.uri).search_runs(["1"])
    assert sorted(run.data.tags["cota.recorded"] for run in runs) == ["1"] * 4
    assert said == []
    dead = LiveTracker(folder, "http://127.0.0.1:9", every_s=0.0, say=said.append)
    assert not dead.check()
    dead(make_episode(cells[0], "webshop-0"))
    assert len(said) == 1
    assert "cota-bench sync" in said[0]
