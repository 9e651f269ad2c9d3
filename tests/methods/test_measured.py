"""What a run prepares is measured, evaluated, logged and written once: tables 4, 6, 7, 9, 10 and the comparator's own."""

from __future__ import annotations

import csv
import json
import os
from pathlib import Path

import pytest

pytest.importorskip("trl")
mlflow = pytest.importorskip("mlflow")

from typer.testing import CliRunner  # noqa: E402

from harness.cli.app import add_commands, app  # noqa: E402
from harness.measures import Measure, names, read_measure  # noqa: E402
from harness.study import load_study  # noqa: E402
from methods.training import steps  # noqa: E402
from methods.training.logging import EXPERIMENT, LOGGED, log_softly  # noqa: E402
from methods.training.studyrecipe import recipes  # noqa: E402

pytestmark = pytest.mark.models
PAPER = Path(__file__).parents[2] / "reports" / "paper"
STUDY = """
study: measured
environments: {mock: {tasks: 3, params: {length: 5}}}
actors: {weak: {plugin: simulated, params: {competence: weak}}}
training:
  abt: &recipe
    {environment: mock, actor: weak, tasks: 80, most_points: 3, max_steps: 9,
     comparator: {most_steps: 6, evaluations: 2}, critic: {most_steps: 6, evaluations: 2}}
  ab: {<<: *recipe, ab_only: true, critic: null}
judges:
  both: {plugin: comparator, params: {model: "trained:abt/comparator"}}
  decided: {plugin: comparator, params: {model: "trained:ab/comparator"}}
  absolute: {plugin: critic, params: {model: "trained:abt/critic"}}
candidates: {environment: }
methods:
  cota: {comparator: both, candidates: environment}
  cota-ab: {plugin: cota, comparator: decided, candidates: environment}
  agentprm: {critic: absolute, candidates: environment}
seeds: [0]
throughput: {backend: sequential}
"""


class Ran:
    """One run in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.file = folder / "measured.yaml"
        self.file.write_text(STUDY)
        self.results = folder / "results"
        self.uri = f"sqlite:///{folder / 'store.db'}"

    def command(self, *words: str) -> str:
        if not app.registered_commands or "audit" not in {c.name for c in app.registered_commands}:
            add_commands()
        done = CliRunner().invoke(app, [*words, "--results", str(self.results)], catch_exceptions=False)
        assert done.exit_code == 0, done.output
        return done.output

    def measure(self, name: str) -> Measure:
        found = read_measure(self.results / "measured", name)
        assert found is not None
        return found

    def rows(self, name: str) -> dict[str, dict]:
        return {str(row.get("recipe")): dict(row) for row in self.measure(name).rows}


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory):
    folder = tmp_path_factory.mktemp("measured")
    before = os.environ.get("COTA_BENCH_CACHE")
    os.environ["COTA_BENCH_CACHE"] = str(folder / "cache")
    one = Ran(folder)
    one.command("run", str(one.file), "--tracking-uri", one.uri, "--no-report")
    yield one
    os.environ.pop("COTA_BENCH_CACHE")
    if before is not None:
        os.environ["COTA_BENCH_CACHE"] = before


def published(name: str) -> list[str]:
    with (PAPER / f"{name}.csv").open(newline="", encoding="utf-8") as file:
        return next(csv.reader(file))


def test_a_plain_run_leaves_every_measure(ran: Ran) -> None:
    made = names(ran.results / "measured")
    assert made == ["comparator", "table10", "table4", "table6", "table7", "table9"]
    for name in made:
        assert ran.measure(name).made_by == "cota-bench run measured"
    assert "abt: branches with simulated actor, environment." in ran.measure("table7").notes


def test_columns_are_those_of_the_published_tables(ran: Ran) -> None:
    renamed = {"table10": [c.replace("_h200_hours", "_hours") for c in published("table10_offline_cost")]}
    expected = {
        "table4": published("table4_splits"),
        "table6": published("table6_sources"),
        "table7": published("table7_absq"),
        "table9": published("table9_targets")[:3],
        **renamed,
    }
    for name, columns in expected.items():
        for row in ran.measure(name).rows:
            assert set(columns) <= set(row), name
    for name, column in (("table7", "bce"), ("table9", "valid_output_pct"), ("comparator", "accuracy_pct")):
        for row in ran.measure(name).rows:
            assert {f"{column}_lo", f"{column}_hi", "n"} <= set(row)


def test_counts_and_targets(ran: Ran) -> None:
    counts = ran.rows("table4")
    for row in counts.values():
        assert row["train"] + row["validation"] + row["test"] == 2 * row["physical_pairs"] > 0
    assert counts["ab"]["physical_pairs"] < counts["abt"]["physical_pairs"]
    targets = ran.rows("table9")
    assert {name: (row["training_target"], row["method"]) for name, row in targets.items()} == {
        "abt": ("A/B/T", "cota"),
        "ab": ("A/B", "cota-ab"),
    }
    assert {row["pairs_of"] for row in targets.values()} == {"abt"}
    assert targets["ab"]["n"] == targets["abt"]["n"]  # both are asked about the same pairs
    assert all(0 <= row["valid_output_pct"] <= 100 and row["n"] > 0 for row in targets.values())


def test_both_targets_share_one_collection(ran: Ran) -> None:
    one, other = recipes(load_study(ran.file)).values()
    assert one.branches == other.branches
    assert len(list((ran.folder / "cache" / "branches").iterdir())) == 1


def test_cost_by_phase_adds_up(ran: Ran) -> None:
    row = ran.rows("table10")["abt"]
    phases = ("base_rollout_hours", "branch_rollout_hours", "comparator_ft_hours")
    assert all(row[phase] > 0 for phase in (*phases, "critic_ft_hours"))
    assert row["total_hours"] == pytest.approx(sum(row[phase] for phase in phases))
    assert "cores" in row["hardware"]
    assert ran.rows("table10")["ab"]["critic_ft_hours"] is None


def test_intervals_hold_their_value(ran: Ran) -> None:
    row = ran.rows("table7")["abt"]
    for column in ("pairwise_ranking_acc_pct", "bce"):
        assert row[f"{column}_lo"] <= row[column] <= row[f"{column}_hi"]
    assert row["n"] > 0


def test_training_is_logged_once_with_its_diagnostics(ran: Ran) -> None:
    client = mlflow.MlflowClient(ran.uri)
    experiment = client.get_experiment_by_name(EXPERIMENT)
    runs = client.search_runs([experiment.experiment_id])
    hashes = {json.loads((f / "identity.json").read_text())["hash"] for f in ran.folder.glob("cache/trained/*/c*")}
    assert {run.data.tags["cota.judge"] for run in runs} == hashes
    assert {run.info.run_name for run in runs} == {
        "comparator mock A/B/T (tiny)",
        "comparator mock A/B (tiny)",
        "critic mock (tiny)",
    }
    assert all("test_bce" in run.data.metrics or "test_accuracy" in run.data.metrics for run in runs)
    versions = client.search_model_versions("name='comparator mock'")
    assert {version.tags["cota.judge"] for version in versions} < hashes
    assert len(versions) == 2


def test_the_same_command_again_changes_nothing(ran: Ran, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("made again")

    monkeypatch.setattr(steps, "train", refuse)
    monkeypatch.setattr("methods.training.diagnostics.evaluate_judge", refuse)
    monkeypatch.setattr("methods.training.logging.log_training", refuse)
    folder = ran.results / "measured" / "measures"
    before = {path.name: path.stat().st_mtime_ns for path in folder.iterdir()}
    ran.command("run", str(ran.file), "--tracking-uri", ran.uri, "--no-report")
    assert {path.name: path.stat().st_mtime_ns for path in folder.iterdir()} == before


def test_each_step_has_its_command(ran: Ran) -> None:
    assert "physical_pairs" in ran.command("pairs", str(ran.file), "ab")
    assert "decisive_accuracy" in ran.command("evaluate-judge", str(ran.file))
    assert ran.measure("table7").made_by == "cota-bench evaluate-judge measured"
    said = ran.command("train", "critic", str(ran.file), "--no-tracking")
    assert "ab: its recipe leaves the critic out" in said


def test_a_store_that_is_down_is_said_and_stops_nothing(ran: Ran) -> None:
    folder = recipes(load_study(ran.file))["abt"].folder / "critic"
    before = (folder / LOGGED).read_text()
    said: list[str] = []
    assert not log_softly(folder, "http://user:secret@127.0.0.1:9", said.append)
    assert "not logged to http://***@127.0.0.1:9" in said[0]
    assert "secret" not in " ".join(said)
    assert (folder / LOGGED).read_text() == before
    assert log_softly(folder, f"sqlite:///{ran.folder / 'new' / 'other.db'}", said.append)
    assert len(json.loads((folder / LOGGED).read_text())) == 2
