"""Traces against a real SQLite store: rebuilt from the ledger, linked with their run, bounded, and honest about tokens."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.desk import Tools
from harness.environments.mock import MockEnvironment
from harness.episode import run_episode
from harness.ledger import Ledger
from harness.loop import Limits
from harness.records import Action, Episode, Usage
from harness.tracking import layout, spans, traces
from harness.tracking.client import connect
from harness.tracking.plan import PlannedCell
from harness.tracking.spans import spans_of
from harness.tracking.sync import sync
from methods.candidates.environment import EnvironmentCandidates
from methods.cota import Cota
from methods.judges.served import ServedComparator
from methods.self_reflection import SelfReflection
from tests.actors.test_chat import actor
from tests.harness.helpers import FakeCell
from tests.models.mock_endpoint import Behaviour, MockEndpoint
from tests.synthetic import episodes_of, make_episode, write_ledger, write_plan
from tests.tracking.conftest import bare


def stored(uri: str, study: str = "demo") -> dict[str, Any]:
    """Traces by id."""
    client = connect(uri)
    experiment = client.get_experiment_by_name(study)
    found = client.search_traces(locations=[experiment.experiment_id], max_results=500)
    return {trace.info.trace_id: trace for trace in found}


def wants(folder: Path, number: int) -> None:
    file = folder / "study.json"
    data = json.loads(file.read_text())
    data.setdefault("resolved", {}).setdefault("throughput", {})["traces"] = number
    file.write_text(json.dumps(data))


def test_the_first_tasks_of_each_cell_are_traced_and_linked_both_ways(
    folder: Path, uri: str, cells: list[PlannedCell]
) -> None:
    sync(folder, summarise=bare)
    found = stored(uri)
    assert len(found) == 2 * len(cells)
    client = connect(uri)
    experiment = client.get_experiment_by_name("demo").experiment_id
    for run in client.search_runs([experiment]):
        cell = next(cell for cell in cells if cell.key == run.data.tags[layout.CELL_TAG])
        named = run.data.tags[traces.IDS].split(", ")
        of_run = client.search_traces(locations=[experiment], run_id=run.info.run_id)
        assert {trace.info.trace_id for trace in of_run} == set(named)
        assert [found[name].info.tags["cota.task"] for name in named] == list(cell.tasks[:2])
        for name in named:
            info = found[name].info
            assert info.tags["cota.cell"] == cell.key
            assert info.tags["method"] == cell.method
            assert "actor" in info.tags["simulated"]
            assert info.state == "OK"


def test_a_second_sync_changes_nothing_and_a_new_store_gets_the_same(folder: Path, uri: str) -> None:
    sync(folder, summarise=bare)
    before = {name: [span.to_dict() for span in trace.data.spans] for name, trace in stored(uri).items()}
    assert before
    sync(folder, summarise=bare)
    assert {name: [span.to_dict() for span in trace.data.spans] for name, trace in stored(uri).items()} == before
    other = f"sqlite:///{folder.parent / 'other.db'}"
    shutil.copy(folder.parent / "mlflow.db", folder.parent / "other.db")
    client = connect(other)
    experiment = client.get_experiment_by_name("demo").experiment_id
    client.delete_traces(experiment, trace_ids=list(before))
    for run in client.search_runs([experiment]):
        client.delete_run(run.info.run_id)
    assert not stored(other)
    sync(folder, other, summarise=bare)
    again = stored(other)
    assert len(again) == len(before)
    assert sorted(len(trace.data.spans) for trace in again.values()) == sorted(map(len, before.values()))


def test_a_newer_attempt_replaces_its_trace_and_none_can_be_wanted(results: Path, cells: list[PlannedCell]) -> None:
    folder, uri = write_plan(results / "demo", cells[:2]), f"sqlite:///{results / 'mlflow.db'}"
    first = make_episode(cells[0], cells[0].tasks[0], status="failed", reason="endpoint gone")
    write_ledger(folder, [first, *(one for one in episodes_of(cells[:2]) if one.task_id != first.task_id)])
    sync(folder, summarise=bare)
    before = stored(uri)
    failed = [trace for trace in before.values() if trace.info.state == "ERROR"]
    assert [trace.data.spans[0].status.description for trace in failed] == ["endpoint gone"]
    with Ledger(folder) as ledger:
        ledger.append(make_episode(cells[0], cells[0].tasks[0], attempt=2))
    sync(folder, summarise=bare)
    after = stored(uri)
    assert len(after) == len(before)
    assert all(trace.info.state == "OK" for trace in after.values())
    wants(folder, 0)
    sync(folder, summarise=bare)
    assert not stored(uri)
    wants(folder, 3)
    sync(folder, summarise=bare)
    assert len(stored(uri)) == 5


def test_a_trace_holds_what_happened_and_its_tokens_are_the_episodes() -> None:
    with MockEndpoint(Behaviour(0.0)) as server:
        found = run_episode(
            environment=MockEnvironment(),
            actor=actor(server),
            method=Cota(k=2, r=1),
            tools=Tools(comparator=ServedComparator(server.url, "j"), candidates=EnvironmentCandidates()),
            cell=FakeCell(),
            task_id="test-1",
            limits=Limits(max_steps=6),
        )
        assert sum((usage.prompt or 0) for usage in found.usage.values()) == server.counts["prompt"]
    tree = spans_of(found)
    names = [span.name for span in tree]
    assert [span.kind for span in tree if span.parent is None] == ["AGENT"]
    assert {"actor", "review", "candidates", "judge", "environment", "step 1"} <= set(names)
    assert names.count("environment") == len(found.steps)
    for number, span in enumerate(tree):
        assert span.parent is None or span.parent < number
        if span.parent is not None:
            assert tree[span.parent].begin <= span.begin <= span.end <= tree[span.parent].end + 1_000
    for kind in ("prompt", "completion", "cached"):
        told = sum(getattr(span.usage, kind) for span in tree if span.usage is not None)
        assert told == sum(getattr(usage, kind) for usage in found.usage.values())
    last = [span for span in tree if span.name == "environment"][-1]
    assert last.outputs["observation"] == found.final_observation


def test_a_turn_that_a_review_asked_for_is_the_actors_time_once() -> None:
    with MockEndpoint(Behaviour(0.05)) as server:
        found = run_episode(
            environment=MockEnvironment(),
            actor=actor(server),
            method=SelfReflection(),
            tools=Tools(),
            cell=FakeCell(),
            task_id="test-1",
            limits=Limits(max_steps=3),
        )
    tree = spans_of(found)
    told = {name: sum(s.end - s.begin for s in tree if s.name == name) / 1e9 for name in ("actor", "review")}
    assert told["actor"] == pytest.approx(found.seconds["actor"], abs=1e-6)
    assert told["review"] == pytest.approx(found.seconds["advisor"], abs=1e-6)
    assert max(span.end for span in tree) == tree[0].end


def test_the_stores_own_sum_of_tokens(results: Path, cells: list[PlannedCell]) -> None:
    folder = write_plan(results / "demo", cells[:1])
    whole = [one for one in episodes_of(cells[:1]) if one.task_id == cells[0].tasks[0]]
    write_ledger(folder, [replace(whole[0], usage={"actor": Usage(9, 900, 80, 300), "simulator": Usage(1, 40, 2)})])
    sync(folder, summarise=bare)
    (trace,) = stored(f"sqlite:///{results / 'mlflow.db'}").values()
    assert trace.info.token_usage["input_tokens"] == 940
    assert trace.info.token_usage["output_tokens"] == 82


def test_tokens_that_nobody_reported_are_no_count() -> None:
    said = traces.tokens(Usage(2, None, 5))
    assert "mlflow.chat.tokenUsage" not in said
    assert "unknown" in said["tokens"]


def hostile(cell: PlannedCell) -> Episode:
    bad = "\x1b[31m\x00<script>alert(1)</script>" + "x" * 3_000_000
    plain = make_episode(cell, cell.tasks[0], steps=400)
    steps = [replace(step, observation=bad, thought=bad, executed=Action(bad, bad)) for step in plain.steps]
    return replace(plain, steps=tuple(steps), task=bad, final_observation=bad, status="failed", reason=bad)


def test_huge_and_hostile_episodes_stay_small(results: Path, cells: list[PlannedCell]) -> None:
    tree = spans_of(hostile(cells[0]))
    assert len(tree) < 8 * spans.STEPS
    assert tree[-1].name == "not shown" or tree[tree[-1].parent or 0].name == "not shown"
    longest = max(len(str(text)) for span in tree for text in (*span.inputs.values(), *span.outputs.values()))
    assert longest < spans.CHARS + 100
    text = json.dumps([[span.name, span.inputs, span.outputs, span.error] for span in tree])
    assert "\\u001b" not in text
    assert "\\u0000" not in text
    folder = write_plan(results / "demo", cells[:1])
    small = replace(hostile(cells[0]), steps=())
    write_ledger(folder, [small])
    sync(folder, summarise=bare)
    (trace,) = stored(f"sqlite:///{results / 'mlflow.db'}").values()
    assert len(trace.info.request_preview) <= 1_000
    assert len(trace.to_json()) < 40_000


@pytest.mark.parametrize("number", [-1, 1001, "2"])
def test_a_senseless_number_is_a_message(number: Any) -> None:
    from pydantic import ValidationError

    from harness.study import Throughput

    with pytest.raises(ValidationError):
        Throughput(traces=number)
