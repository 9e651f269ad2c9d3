"""One invocation after another: resume, refusal, retries, order, and rows that do not depend on how they came."""

from __future__ import annotations

import json
import os
import threading
from dataclasses import replace

import pytest

from harness.errors import UsageError
from harness.estimate import render
from harness.grid import plan_cells
from harness.interrupt import StopNow
from harness.ledger import Ledger, read_episodes, read_heads
from harness.results import kept_panels, stored_study
from harness.run import jobs_left, run_study, status
from harness.scheduler import Scheduler, resolve_workers
from harness.show import one, wanted_of
from harness.study import Throughput
from harness.worker import run_job
from tests.grid.samples import BASE, rows, study


def go(found, root, **more):
    return run_study(found, root, live=False, stream=open(os.devnull, "w"), **more)


class Fails:
    """Runs jobs, but raises for some tasks so many times."""

    def __init__(self, task: str = "test-1", times: int = 10**6) -> None:
        self.task, self.times, self.ran, self.mutex = task, times, [], threading.Lock()

    def __call__(self, job):
        with self.mutex:
            self.ran.append((job.task_id, job.cell.method, job.attempt))
            raises = job.task_id == self.task and self.times > 0
            self.times -= raises
        if raises:
            raise OSError("disk on fire")
        return run_job(job)


@pytest.mark.parametrize("backend", ["sequential", "threading", "loky"])
def test_every_backend_gives_the_same_rows(tmp_path, backend):
    want = tmp_path / "want"
    assert go(study(), want).exit_status == 0
    summary = go(study(BASE, ("backend: sequential", f"backend: {backend}, workers: 3")), tmp_path)
    assert (summary.planned, summary.ran, summary.exit_status, summary.complete) == (40, 40, 0, True)
    assert rows(tmp_path / "small") == rows(want / "small")
    assert {row["status"] for row in rows(want / "small").values()} == {"done", "truncated"}


@pytest.mark.parametrize("done", [0, 1, 20, 39, 40])
def test_resume_runs_exactly_what_is_missing(tmp_path, done):
    go(study(), tmp_path / "want")
    ran = []

    def until(job):
        if len(ran) >= done:
            raise StopNow
        ran.append(job.key)
        return run_job(job)

    assert go(study(), tmp_path, run=until).exit_status == (130 if done < 40 else 0)
    second = []
    summary = go(study(), tmp_path, run=lambda job: (second.append(job.key), run_job(job))[1])
    assert len(second) == 40 - done
    assert not set(ran) & set(second)
    assert (summary.ran, summary.complete, summary.exit_status) == (40 - done, True, 0)
    assert rows(tmp_path / "small") == rows(tmp_path / "want" / "small")
    assert go(study(), tmp_path).ran == 0


def test_a_job_that_raises_is_a_row_and_is_run_again_next_time(tmp_path):
    summary = go(study(), tmp_path, run=Fails())
    assert summary.counts == {"done": 32, "failed": 8}
    assert summary.failures == {"harness failed": 8}
    assert summary.exit_status == 1
    assert "8 harness failed" in summary.text()
    key = next(key for key in rows(tmp_path / "small") if key[1] == "test-1")
    assert "  harness failed: OSError: disk on fire   (cota-bench show small " in summary.text()
    command = summary.examples["harness failed"].partition("(cota-bench show small ")[2].partition(" ")[0]
    assert one(tmp_path / "small", wanted_of(command, tmp_path / "small")).reason == "OSError: disk on fire"
    row = rows(tmp_path / "small")[key]
    assert (row["status"], row["boundary"], row["reason"]) == ("failed", "harness", "OSError: disk on fire")
    assert row["reward"] is None
    again = go(study(), tmp_path)
    assert (again.ran, again.exit_status) == (8, 0)
    go(study(), tmp_path / "want")
    assert rows(tmp_path / "small") == rows(tmp_path / "want" / "small")
    assert {h["attempt"] for (_, task), h in read_heads(tmp_path / "small").items() if task == "test-1"} == {2}


def test_failures_may_be_left_alone(tmp_path):
    go(study(), tmp_path, run=Fails())
    summary = go(study(BASE, ("seeds:", "policy: {retry_failed: false}\nseeds:")), tmp_path)
    assert (summary.ran, summary.counts["failed"], summary.exit_status) == (0, 8, 1)


@pytest.mark.parametrize("backend", ["sequential", "threading"])
def test_a_retry_takes_the_next_free_slot(tmp_path, backend):
    work = Fails(times=1)
    change = ("backend: sequential", f"backend: {backend}, workers: 2")
    summary = go(study(BASE, ("seeds:", "policy: {attempts: 3}\nseeds:"), change), tmp_path, run=work)
    assert summary.exit_status == 0
    tried = [i for i, (task, _, attempt) in enumerate(work.ran) if task == "test-1" and attempt == 2]
    first = next(i for i, (task, _, attempt) in enumerate(work.ran) if task == "test-1")
    assert len(tried) == 1
    assert tried[0] - first <= 5  # not at the end of the queue
    assert len(rows(tmp_path / "small")) == 40


def test_a_run_gives_up_after_too_many_failures(tmp_path):
    limited = study(BASE, ("seeds:", "policy: {max_failures: 2}\nseeds:"))
    summary = go(limited, tmp_path, run=Fails())
    assert summary.counts["failed"] == 2
    assert summary.counts["left"] == 40 - summary.counts["done"] - 2
    assert summary.exit_status == 1
    assert "Stopped after 2 failures" in summary.text()


def test_methods_of_one_task_run_next_to_each_other():
    found = study()
    order = [(j.cell.seed, j.task_id, j.cell.actor, j.cell.method) for j in jobs_left(found, plan_cells(found), {})]
    assert len(order) == 40
    for i in range(0, 40, 2):
        assert order[i][:3] == order[i + 1][:3]
        assert [order[i][3], order[i + 1][3]] == ["plain", "judged"]


def test_adding_a_method_changes_no_row_of_another(tmp_path):
    go(study(), tmp_path)
    before = rows(tmp_path / "small")
    more = study(
        BASE, ("methods:", "methods:\n  third: {plugin: t-judged, params: {k: 1}, comparator: pair, candidates: pool}")
    )
    assert go(more, tmp_path).ran == 20
    after = rows(tmp_path / "small")
    assert {key: row for key, row in after.items() if key in before} == before
    go(more, tmp_path / "new")
    assert rows(tmp_path / "new" / "small") == after


def test_methods_meet_the_same_first_proposal(tmp_path):
    go(study(), tmp_path)
    found = rows(tmp_path / "small").values()
    first = {}
    for row in found:
        place = (row["actor"], row["environment"], row["seed"], row["task_id"])
        first.setdefault(place, set()).add(
            row["steps"][0]["reviews"][0]["proposal"]["text"] + row["steps"][0]["reviews"][0]["thought"]
        )
    assert len(first) == 20
    assert all(len(proposals) == 1 for proposals in first.values())


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("length: 3", "length: 4"), "environment.params.length: 3 -> 4"),
        (("max_steps: 8", "max_steps: 9"), "environment.max_steps: 8 -> 9"),
        (("tasks: 5", "tasks: 6"), "(tasks: 5 -> 6)"),
        (("tasks: 5", "tasks: 5, first: 2"), "(first: 0 -> 2)"),
        (("skill: 0.9", "skill: 0.8"), "actor.params.skill: 0.9 -> 0.8   [plain x strong x mock x seed 0 and 3 more]"),
        (("{plugin: t-judge}", "{plugin: t-judge, params: {margin: 0.4}}"), "comparator.params.margin: 0.5 -> 0.4"),
        (("seeds:", "rules: {replans: 0}\nseeds:"), "rules.replans: 2 -> 0"),
    ],
)
def test_a_changed_identity_is_refused_with_what_changed(tmp_path, change, said):
    go(study(), tmp_path)
    before = (tmp_path / "small" / "ledger.jsonl.gz").read_bytes()
    for ask in (go, status):
        with pytest.raises(UsageError, match="now defines otherwise") as caught:
            ask(study(BASE, change), tmp_path)
        assert said in str(caught.value)
        assert "another `study:` name or --results DIR" in str(caught.value)
    assert (tmp_path / "small" / "ledger.jsonl.gz").read_bytes() == before
    assert go(study(), tmp_path).ran == 0


def test_a_change_before_anything_was_run_is_no_change(tmp_path):
    status(study(), tmp_path)
    assert go(study(BASE, ("length: 3", "length: 4")), tmp_path).exit_status == 0


@pytest.mark.parametrize(
    "change",
    [
        ("seeds:", "policy: {call_timeout_s: 9, step_timeout_s: 8, attempts: 4, worker_deaths: 1}\nseeds:"),
        ("backend: sequential", "backend: threading, workers: 4"),
        ("{plugin: t-judge}", "{plugin: t-judge, params: {device: cuda}}"),
    ],
)
def test_policy_and_throughput_never_block(tmp_path, change):
    go(study(), tmp_path)
    assert go(study(BASE, change), tmp_path).ran == 0


def test_rows_of_a_method_that_left_the_study_are_kept_and_remembered(tmp_path):
    go(study(), tmp_path)
    fewer = study(BASE, ("  plain: {plugin: t-plain}\n", ""))
    summary = go(fewer, tmp_path)
    assert (summary.planned, summary.ran) == (20, 0)
    assert "20 stored episode(s) belong to cells that are not in the study any more" in summary.text()
    with pytest.raises(UsageError, match=r"method\.params\.note"):
        go(study(BASE, ("{plugin: t-plain}", "{plugin: t-plain, params: {note: x}}")), tmp_path)


def test_skipped_cells_count_and_are_stored(tmp_path):
    summary = go(study(BASE, ("seeds:", "skip: [{method: judged, reason: no judge yet}]\nseeds:")), tmp_path)
    assert (summary.planned, summary.counts["done"], summary.counts["skipped"]) == (40, 20, 20)
    assert summary.exit_status == 0
    assert "skipped 20: no judge yet" in summary.text()
    assert {cell["reason"] for cell in stored_study(tmp_path / "small")["skipped"]} == {"no judge yet"}


def test_a_failing_observer_is_left_out_and_reported(tmp_path):
    seen = []

    def tracker(episode):
        seen.append(episode)
        raise ConnectionError("server down")

    summary = go(study(), tmp_path, observers=[tracker])
    assert len(seen) == 1
    assert (summary.exit_status, summary.complete) == (0, True)
    assert "ConnectionError: server down" in summary.text()


def test_what_is_stored_beside_the_ledger(tmp_path):
    found = study()
    go(found, tmp_path)
    stored = stored_study(tmp_path / "small")
    assert {cell["key"] for cell in stored["cells"]} == {cell.key for cell in plan_cells(found).cells}
    assert stored["resolved"]["rules"] == {"replans": 2}
    assert kept_panels(tmp_path / "small")["mock"].ids == tuple(f"test-{i}" for i in range(5))
    (tmp_path / "small" / "study.json").write_text(json.dumps({"schema": 99}))
    with pytest.raises(UsageError, match="schema 99"):
        go(found, tmp_path)


def test_a_ledger_in_use_is_refused_before_anything_is_run(tmp_path):
    with Ledger(tmp_path / "small"), pytest.raises(UsageError, match="Another run is writing"):
        go(study(), tmp_path)


def test_the_outlook_counts_and_expects(tmp_path):
    _, before = status(study(), tmp_path)
    assert [before.total(n) for n in ("planned", "done", "failed", "skipped", "left")] == [40, 0, 0, 0, 40]
    assert before.cost.calls is None
    assert "unknown: no rows yet" in render(before, 2)
    go(study(), tmp_path, run=Fails())
    more = study(BASE, ("seeds: [0, 1]", "seeds: [0, 1, 2]"))
    _, after = status(more, tmp_path)
    assert [after.total(n) for n in ("planned", "done", "failed", "left")] == [60, 32, 8, 28]
    assert after.again == 8
    heads = [
        h
        for h in read_heads(tmp_path / "small").values()
        if h["method"] == "plain" and h["status"] != "failed" and h["actor"] == "weak"
    ]
    line = next(line for line in after.lines if (line.method, line.actor) == ("plain", "weak"))
    assert line.basis == "mean of 8 rows"
    assert line.cost.calls == pytest.approx(line.left * sum(h["usage"]["actor"][0] for h in heads) / 8)
    assert after.cost.prompt is not None
    assert "(8 of them failed before and are run again)" in render(after, 2)


def test_records_that_cannot_be_stored_fail_alone_and_the_run_goes_on(tmp_path):
    file = tmp_path / "sick.py"
    file.write_text(
        "from harness.environments.mock import MockEnvironment\n"
        "from harness.records import Outcome\n"
        "class Sick(MockEnvironment):\n"
        "    def step(self, action):\n"
        "        outcome = super().step(action)\n"
        "        return Outcome(outcome.observation, float('nan'), outcome.done, {'bad': '\\udcff'})\n"
    )
    mock = "mock: {params: {length: 3}, tasks: 5, max_steps: 8}"
    both = study(BASE, (mock, f"{mock}, sick: {{plugin: '{file}:Sick', tasks: 2}}"))
    summary = go(both, tmp_path)
    assert (summary.counts["done"], summary.counts["failed"], summary.counts["left"]) == (40, 16, 0)
    assert summary.failures == {"environment failed": 16}
    reasons = {e.reason for e in read_episodes(tmp_path / "small") if e.status == "failed"}
    said = "step() returned an Outcome that cannot be stored: Outcome.reward: nan is not finite; unknown is null"
    assert reasons == {said}


@pytest.mark.parametrize(("only", "status_"), [(("test-1",), 0), (tuple(f"test-{i}" for i in range(5)), 1)])
def test_unparsed_episodes_are_said_and_a_mute_cell_is_no_success(tmp_path, only, status_):
    def mumbles(job):
        made = run_job(job)
        if job.cell.method != "plain" or job.task_id not in only:
            return made
        return replace(made, status="unparsed", reward=None, success=None, boundary="actor")

    summary = go(study(), tmp_path, run=mumbles)
    assert summary.exit_status == status_
    assert f"unparsed: {4 * len(only)} of 40 ended episodes ({len(only) * 10}%)" in summary.text()
    assert ("No answer of plain x weak x mock x seed 0 could be parsed" in summary.text()) == bool(status_)


def test_a_long_reason_is_one_short_line(tmp_path):
    def fails(job):
        raise OSError("x\n\x1b[31m" * 500)

    text = go(study(), tmp_path, run=fails).text()
    assert "\x1b" not in text
    assert max(map(len, text.splitlines())) < 600
    assert sum("harness failed: OSError" in line for line in text.splitlines()) == 1


@pytest.mark.parametrize(("wanted", "jobs", "got"), [(12, 3, 3), (12, 1, 2), (1, 3, 1), (2, 40, 2), (12, None, 12)])
def test_no_more_workers_than_episodes(wanted, jobs, got):
    assert resolve_workers(Throughput(backend="loky", workers=wanted), jobs) == got


def test_the_scheduler_asks_for_no_more_workers_than_jobs(tmp_path):
    found = study(BASE, ("backend: sequential", "backend: threading, workers: 12"), ("tasks: 5", "tasks: 1"))
    jobs = list(jobs_left(found, plan_cells(found), {}))
    with Ledger(tmp_path) as ledger:
        assert Scheduler(jobs[:3], ledger, found.policy, found.throughput).workers == 3
