"""Distinct actions at prefixes: what counts, seeds, resume, failures, and what Ctrl-C leaves behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from harness.cli.run import run_command
from harness.errors import EpisodeError, IllegalAction, UsageError
from harness.measures import read_measure
from harness.study import load_study
from methods.branching import diversity as module
from methods.branching.collect import UNITS
from methods.branching.diversity import DiversitySpec, choose, measure_diversity, rows
from methods.branching.recordfile import RecordFile
from methods.branching.spec import Plug
from methods.training.diversity import measured_diversity, wanted
from methods.training.studyrecipe import recipes
from tests.branching.helpers import SEQUENTIAL, branched
from tests.models.mock_endpoint import Behaviour, MockEndpoint

ROOT = Path(__file__).parents[2]


def spec(**changes: Any) -> DiversitySpec:
    parts: dict[str, Any] = {
        "environment": Plug(plugin="mock", params={"length": 5}),
        "actor": Plug(plugin="simulated", params={"competence": "weak", "noise": 0.6}),
        "candidates": Plug(plugin="environment"),
        "prefixes": 20,
    }
    return DiversitySpec(**(parts | changes))


@pytest.fixture(scope="module")
def branches(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("branches")
    branched(folder, tasks=20)
    return folder


def timeless(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{key: value for key, value in record.items() if key != "seconds"} for record in records]


def test_samples_differ_by_seed_alone_and_candidates_are_alternatives(branches: Path, tmp_path: Path) -> None:
    records = measure_diversity(spec(), branches, tmp_path / "a.gz", SEQUENTIAL)
    assert len(records) == 20
    assert timeless(records) == timeless(measure_diversity(spec(), branches, tmp_path / "b.gz", SEQUENTIAL))
    assert any(len(set(record["samples"])) > 1 for record in records)
    for record, prefix in zip(records, choose(spec(), branches), strict=True):
        assert len(record["samples"]) == 8
        assert prefix.action[1] not in record["candidates"]
        assert len(set(record["candidates"])) == len(record["candidates"]) == 2  # three moves, less the proposal
    calm = measure_diversity(spec(actor=Plug(plugin="mock")), branches, tmp_path / "calm.gz", SEQUENTIAL)
    assert {tuple(record["samples"]) for record in calm} == {("right",) * 8}


def test_rows_by_hand() -> None:
    def record(task: str, samples: list[str | None], candidates: list[str], status: str = "done") -> dict[str, Any]:
        return {"status": status, "task_id": task, "samples": samples, "candidates": candidates}

    seen = [
        record("a", ["x", "x"], ["p", "q", "r", "s"]),
        record("b", ["x", "y"], ["p", "q"]),
        record("c", ["x", None], ["p"]),
        record("d", [None, None], []),
        record("e", [], [], "failed"),
    ]
    actor, candidates = rows(spec(samples=2), seen)
    assert actor["distinct_actions_mean"] == pytest.approx((1 + 2 + 1 + 0) / 4)
    assert actor["unique_action_utilization_pct"] == pytest.approx(100 * 1.0 / 2)
    assert (actor["prefixes"], actor["prefixes_collapsed_to_one"], actor["samples_without_action"]) == (4, 1, 3)
    assert candidates["distinct_actions_mean"] == pytest.approx(7 / 4)
    assert candidates["unique_action_utilization_pct"] == pytest.approx(100 * 7 / 16)
    low, high = actor["distinct_actions_mean_lo"], actor["distinct_actions_mean_hi"]
    assert isinstance(low, float)
    assert isinstance(high, float)
    assert low <= 1.0 <= high
    (nothing, _) = rows(spec(), [])
    assert nothing["distinct_actions_mean"] is None


def test_only_what_is_missing_is_sampled_and_other_settings_start_anew(branches: Path, tmp_path: Path) -> None:
    seen: list[int] = []

    def count(done: int, total: int, _: Any) -> None:
        seen.append(total)

    for changed in ({"prefixes": 5}, {"prefixes": 8}, {"prefixes": 8}, {"prefixes": 8, "samples": 3}):
        measure_diversity(spec(**changed), branches, tmp_path / "d.gz", SEQUENTIAL, count)
    assert seen == [5] * 5 + [3] * 3 + [8] * 8


class Patchy:
    """Cannot be read at all at first, then gives no action at every second sample."""

    simulated = False
    down = True

    def __init__(self) -> None:
        self.asked = 0

    def propose(self, state: Any, mind: Any) -> Any:
        from harness.records import Proposal

        if Patchy.down:
            raise EpisodeError("actor", "endpoint is down")
        self.asked += 1
        if self.asked % 2:
            raise IllegalAction("no action")
        return Proposal(mind.parse("right"))


def test_failures_are_records_and_tried_again(branches: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = module._bench

    def bench(*given: Any) -> Any:
        made = real(*given)
        made.actor = Patchy()
        return made

    monkeypatch.setattr(module, "_bench", bench)
    monkeypatch.setattr(Patchy, "down", True)
    first = measure_diversity(spec(prefixes=3), branches, tmp_path / "d.gz", SEQUENTIAL)
    assert {(record["status"], record["reason"]) for record in first} == {("failed", "endpoint is down")}
    monkeypatch.setattr(Patchy, "down", False)
    again = measure_diversity(spec(prefixes=3), branches, tmp_path / "d.gz", SEQUENTIAL)
    assert [record["samples"] for record in again] == [[None, "right"] * 4] * 3


def test_a_language_model_is_sampled_at_its_temperature_with_its_own_past_thoughts(
    branches: Path, tmp_path: Path
) -> None:
    with MockEndpoint(Behaviour(0.0)) as server:
        chat = {"base_url": server.url, "model": "m", "temperature": 1.0}
        hot = spec(actor=Plug(plugin="chat", params=chat), prefixes=3, samples=4)
        records = measure_diversity(hot, branches, tmp_path / "d.gz", SEQUENTIAL)
        seen = list(server.seen)
    assert {record["status"] for record in records} == {"done"}
    assert {record["usage"]["actor"]["calls"] >= 4 for record in records} == {True}
    assert {request["temperature"] for request in seen} == {1.0}
    assert len({request["seed"] for request in seen}) == len(seen)
    prefix = next(prefix for prefix in choose(hot, branches) if prefix.step)
    assert len(prefix.thoughts) == prefix.step
    assert any(prefix.thoughts[0] in str(request["messages"]) for request in seen)
    assert rows(hot, records)[0]["sampler"] == "actor at high temperature"


def test_without_branches_it_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cota-bench collect"):
        choose(spec(), tmp_path)


STUDY = """
study: div
environments: {mock: {tasks: 3, params: {length: 5}}}
actors:
  weak: {plugin: simulated, params: {competence: weak}}
  hot: {plugin: simulated, params: {noise: 0.8}}
  slow: {plugin: "slow.py:Slow"}
training:
  walks: {environment: mock, actor: weak, tasks: 10, max_steps: 9}
  slow: {environment: mock, actor: slow, tasks: 12, max_steps: 5, most_points: 1}
candidates: {environment: }
methods: {origin: }
diversity:
  mock: {prefixes_of: walks, actor: hot, candidates: environment, prefixes: 30}
seeds: [0]
throughput: {backend: loky, workers: 2}
"""
SLOW = """
import time
from harness.records import Proposal


class Slow:
    \"\"\"Slow: takes its time.\"\"\"

    simulated = True

    def propose(self, state, mind):
        time.sleep(0.1)
        return Proposal(mind.parse("right"))

    replan = None
"""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("COTA_BENCH_CACHE", str(tmp_path / "cache"))
    (tmp_path / "slow.py").write_text(SLOW)
    (tmp_path / "div.yaml").write_text(STUDY)
    return tmp_path / "div.yaml"


def test_run_measures_what_the_study_asks_for(file: Path, tmp_path: Path) -> None:
    file.write_text(STUDY + "skip: [{method: origin, reason: none here}]\n")
    assert run_command(str(file), tmp_path, None, 1, "sequential", tracking=False, report=False) == 0
    measure = read_measure(tmp_path / "div", "diversity")
    assert measure is not None
    assert measure.made_by == "cota-bench run div"
    records = (tmp_path / "div" / "diversity" / "mock.jsonl.gz").stat().st_size
    assert run_command(str(file), tmp_path, None, 1, "sequential", tracking=False, report=False) == 0
    assert (tmp_path / "div" / "diversity" / "mock.jsonl.gz").stat().st_size == records


def test_a_study_is_measured_into_its_results(file: Path, tmp_path: Path) -> None:
    study = load_study(file)
    found = measured_diversity(study, study, tmp_path / "results" / "div", "a command", lambda _: None)
    measure = read_measure(tmp_path / "results" / "div", "diversity")
    assert measure is not None
    assert [dict(row) for row in measure.rows] == found
    assert [row["sampler"] for row in found] == ["simulated actor, more noise", "COTA candidate mechanism"]
    assert any("noise of its judgement" in note for note in measure.notes)
    assert any("fewer than the 30" in note for note in measure.notes) == (int(str(found[0]["n"])) < 30)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("prefixes_of: walks", "prefixes_of: walk", r"diversity\.mock\.prefixes_of.*Did you mean 'walks'"),
        ("actor: hot", "actor: hat", r"diversity\.mock\.actor: 'hat' is no label.*'hot'"),
        ("prefixes: 30", "prefix: 30", r"diversity\.mock\.prefix.*Did you mean 'prefixes'"),
        ("candidates: environment,", "candidates: env,", r"diversity\.mock\.candidates"),
    ],
)
def test_a_wrong_section_is_named_with_the_nearest(file: Path, old: str, new: str, message: str) -> None:
    file.write_text(STUDY.replace(old, new))
    with pytest.raises(UsageError, match=message):
        wanted(load_study(file))


def test_ctrl_c_leaves_no_damage_and_the_same_command_goes_on(file: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "harness.cli", "collect", str(file), "slow", "--results", str(tmp_path / "r")]
    units = recipes(load_study(file))["slow"].branches / UNITS
    first = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True, start_new_session=True)
    until = time.monotonic() + 120
    while time.monotonic() < until and (not units.exists() or len(RecordFile(units)) < 3):
        time.sleep(0.05)
    os.killpg(first.pid, signal.SIGINT)  # as a terminal does: the parent and its workers
    _, said = first.communicate(timeout=90)
    assert first.returncode == 130
    assert "Stopped during collection" in said
    assert "Traceback" not in said
    kept = len(RecordFile(units))
    assert 3 <= kept < 12
    again = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=180)
    assert again.returncode == 0, again.stderr
    assert f"{12 - kept} done, 0 failed, 0 left" in again.stderr
    assert "12 units, {'done': 12}" in again.stdout
