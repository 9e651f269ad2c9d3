"""Same seed, same data, same machine: the same branches, pairs, weights and decisions, however the work is spread."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.codec import dump, to_json
from harness.desk import Tools
from harness.episode import run_episode
from harness.ledger import read_episodes
from harness.loop import Limits
from harness.records import Episode, Usage
from harness.registry import create, names
from harness.run import run_study
from harness.study import load_study
from methods.candidates.environment import EnvironmentCandidates
from methods.judges.oracle import OracleComparator, OracleCritic
from methods.training.prepare import prepare, recipes
from tests.harness.helpers import FakeCell

STUDY = """
study: same
environments: {webshop: {tasks: 4, max_steps: 8}}
actors: {weak: {plugin: simulated, params: {competence: weak}}}
training:
  webshop:
    {environment: webshop, actor: weak, tasks: 10, most_points: 2, margin: 0.1, comparator: {epochs: 2},
     critic: {epochs: 2}}
judges:
  pair: {plugin: comparator, params: {model: "trained:webshop/comparator", strict: false}}
  value: {plugin: critic, params: {model: "trained:webshop/critic"}}
candidates: {environment: }
methods:
  cota: {comparator: pair, candidates: environment}
  agentprm: {critic: value, candidates: environment}
seeds: [0]
throughput: {backend: sequential}
"""
MADE = {"branches": "*.parquet", "pairs": "*.parquet", "comparator": "*.safetensors", "critic": "*.safetensors"}


def decided(results: Path, digits: int | None) -> dict[str, bytes]:
    """What was decided in each episode, times aside; a critic's scores in full or to some digits."""
    found = {}
    for episode in read_episodes(results):
        data = to_json(episode)
        for key in ("seconds", "started_at", "wall_s", "usage"):
            data.pop(key)
        for step in data["steps"]:
            del step["seconds"], step["usage"]
            for review in step["reviews"]:
                del review["seconds"], review["usage"]
                if digits is not None and "scores" in review:
                    review["scores"] = [round(score, digits) for score in review["scores"]]
        found[f"{episode.method}/{episode.task_id}"] = dump(data)
    return found


def run(folder: Path, cache: Path, patch: pytest.MonkeyPatch, backend: str = "{backend: sequential}") -> Path:
    """Run the study with a cache of its own: its results folder."""
    patch.setenv("COTA_BENCH_CACHE", str(cache))
    folder.mkdir()
    file = folder / "same.yaml"
    file.write_text(STUDY.replace("{backend: sequential}", backend))
    study = load_study(file)
    summary = run_study(prepare(study, say=lambda _: None), folder / "results", live=False)
    assert summary.exit_status == 0
    return folder / "results" / "same"


def made(folder: Path) -> dict[str, bytes]:
    """Branches, pairs and weights in the cache that is set."""
    one = recipes(load_study(folder / "same.yaml"))["webshop"]
    return {
        f"{part}/{path.name}": path.read_bytes()
        for part, kind in MADE.items()
        for path in sorted(one.part(part).glob(kind))
    }


@pytest.mark.models
def test_trained_and_run_twice_is_the_same_to_the_byte(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("trl")
    first, caches = run(tmp_path / "one", tmp_path / "cache-one", monkeypatch), {}
    caches["one"] = made(tmp_path / "one")
    assert {Path(name).parent.name for name in caches["one"]} == {"branches", "pairs", "comparator", "critic"}
    exact, rounded = decided(first, None), decided(first, 4)
    assert len(exact) == 8
    assert b'"forward":"A"' in b"".join(exact.values())  # the comparator was asked, and had something to say

    again = run(tmp_path / "two", tmp_path / "cache-two", monkeypatch)
    caches["two"] = made(tmp_path / "two")
    assert caches["one"].keys() == caches["two"].keys()
    assert [name for name in caches["one"] if caches["one"][name] != caches["two"][name]] == []
    assert decided(again, None) == exact

    # Which prefixes a judge has kept depends on whose turn it was, and with that the rounding of a critic's scores.
    for backend in ("{backend: loky, workers: 2}", "{backend: threading, workers: 3}"):
        found = run(tmp_path / backend[10:14], tmp_path / "cache-one", monkeypatch, backend)
        assert decided(found, 4) == rounded


class Adviser:
    def feedback(self, system: str, user: str, seed: int, deadline: float | None) -> tuple[str, Usage]:
        return "Is this the best you can do?", Usage()


def first_step(environment: Any, task: str, method: str, seed: int) -> Episode:
    tools = Tools(OracleComparator(), OracleCritic(), Adviser(), EnvironmentCandidates())
    return run_episode(
        environment=environment,
        actor=create("actors", "simulated", {"competence": "weak"}),
        method=create("methods", method),
        tools=tools,
        cell=replace(FakeCell(), method=method, seed=seed, environment=environment.name),
        task_id=task,
        limits=Limits(max_steps=1),
    )


@pytest.mark.parametrize("name", ["webshop", "alfworld", "retail"])
def test_all_methods_meet_the_same_first_proposal_and_candidates(name: str) -> None:
    environment = create("environments", name)
    tasks = environment.tasks("test")[:2]
    proposals = set()
    for task in tasks:
        for seed in (0, 1):
            episodes = [first_step(environment, task, method, seed) for method in names("methods")]
            assert [one.reason for one in episodes if one.status not in ("done", "truncated")] == []
            first = [one.steps[0].reviews[0] for one in episodes]
            assert len({(review.proposal, review.thought) for review in first}) == 1
            assert len({one.steps[0].observation for one in episodes}) == 1
            assert len({review.candidates for review in first if review.candidates}) == 1
            proposals.add((task, first[0].proposal.canonical, first[0].thought))
    assert len(proposals) > 1  # tasks and seeds do make a difference
    environment.close()
