"""What a worker keeps, lends, and throws away."""

from __future__ import annotations

import threading
from dataclasses import replace

import pytest

from harness.environments.mock import MockEnvironment
from harness.grid import plan_cells
from harness.ledger import stored
from harness.records import Episode
from harness.run import jobs_left
from harness.slot import Slot, Ticket
from harness.worker import Job, Workshop, _run, run_job
from tests.grid.samples import BASE, episode, study

SPEC = {"plugin": "mock", "params": {}}


def job(*changes, index: int = 0):
    found = study(BASE, *changes)
    return list(jobs_left(found, plan_cells(found), {}))[index]


def ran(one: Job) -> Episode:
    """The episode of a job as a slot gives it back."""
    return Slot(run_job, None)(Ticket(1, one)).episode


def test_environments_are_lent_to_one_and_used_again():
    shop = Workshop()
    with shop.environment(SPEC) as first, shop.environment(SPEC) as second:
        assert first.value is not second.value
    with shop.environment(SPEC) as third:
        assert third.value in (first.value, second.value)


def test_a_slot_says_how_many_jobs_share_the_machine(monkeypatch):
    told = []
    monkeypatch.setattr("harness.slot.share_cores", told.append)
    done = Slot(run_job, None, 3)(Ticket(7, job()))
    assert (done.number, done.episode.task_id, told) == (7, job().task_id, [3])


def test_idle_environments_are_bounded_and_closed(monkeypatch):
    closed = []
    monkeypatch.setattr(MockEnvironment, "close", lambda self: closed.append(self))
    shop = Workshop(idle=2)
    for size in range(1, 6):
        with shop.environment({"plugin": "mock", "params": {"size": size}}):
            pass
    assert [env.size for env in closed] == [1, 2, 3]


def test_shared_parts_are_built_once_and_bounded():
    shop = Workshop(shared=2)
    specs = [{"plugin": "t-random", "params": {"skill": s}} for s in (0.1, 0.2, 0.3)]
    made = [shop.part("actor", spec) for spec in specs]
    assert shop.part("actor", specs[2]) is made[2]
    assert shop.part("actor", specs[0]) is not made[0]
    found, barrier = [], threading.Barrier(8)

    def ask():
        barrier.wait()
        found.append(shop.part("method", {"plugin": "t-plain", "params": {}}))

    threads = [threading.Thread(target=ask) for _ in range(8)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert len(set(map(id, found))) == 1


def test_what_an_abandoned_call_may_use_is_not_used_again(tmp_path):
    change = ("{plugin: t-random}", f"{{plugin: t-fault, params: {{folder: {tmp_path}, fault: sleep, task: test-0}}}}")
    shop, bad = Workshop(), job(change)
    bad = replace(bad, limits=replace(bad.limits, call_s=0.2))
    actor = shop.part("actor", bad.cell.spec["actor"])
    assert _run(bad, shop).status == "timeout"
    assert shop._idle == []
    assert shop.part("actor", bad.cell.spec["actor"]) is not actor


def test_a_failed_episode_closes_its_environment(tmp_path, monkeypatch):
    change = ("{plugin: t-random}", f"{{plugin: t-fault, params: {{folder: {tmp_path}, task: test-0}}}}")
    bad, good, shop, closed = job(change), job(), Workshop(), []
    monkeypatch.setattr(MockEnvironment, "close", lambda self: closed.append(self))
    assert _run(bad, shop).status == "failed"
    assert (len(closed), shop._idle) == (1, [])
    assert _run(good, shop).status in ("done", "truncated")
    assert len(shop._idle) == 1


def test_an_environment_that_cannot_be_closed_keeps_its_row(tmp_path, monkeypatch):
    change = ("{plugin: t-random}", f"{{plugin: t-fault, params: {{folder: {tmp_path}, task: test-0}}}}")
    bad = job(change)
    monkeypatch.setattr(MockEnvironment, "close", lambda self: 1 / 0)
    with pytest.warns(RuntimeWarning, match="close"):
        row = run_job(bad)
    assert (row.status, row.boundary, row.reason) == ("failed", "actor", "RuntimeError: as asked")


def test_a_plugin_that_cannot_be_built_is_a_row():
    broken = job()
    spec = {**broken.cell.spec, "actor": {"plugin": "t-gone", "params": {}}}
    row = run_job(replace(broken, cell=replace(broken.cell, spec=spec)))
    assert (row.status, row.boundary) == ("failed", "harness")
    assert "Unknown actor 't-gone'" in row.reason
    assert (row.cell, row.task_id, row.reward) == (broken.cell.key, broken.task_id, None)


def test_times_are_kept_to_the_microsecond():
    fine = episode(wall_s=1.23456789, started_at=1e9 + 0.12345678, seconds={"actor": 1 / 3})
    kept, _ = stored(fine)
    assert (kept.wall_s, kept.seconds) == (1.234568, {"actor": 0.333333})
    assert replace(kept, wall_s=fine.wall_s, started_at=fine.started_at, seconds=fine.seconds) == fine
    row = ran(job())
    assert (row, stored(row)[0]) == (stored(row)[0], row)


def test_a_record_that_cannot_be_stored_is_a_failed_row(monkeypatch):
    whole = run_job(job())
    monkeypatch.setattr("harness.worker._run", lambda *_: replace(whole, seconds={"actor": float("nan")}))
    row = ran(job())
    assert (row.status, row.boundary, row.steps) == ("failed", "harness", ())
    assert "Episode.seconds: nan is not finite" in row.reason
    monkeypatch.setattr("harness.worker._run", lambda *_: replace(whole, reason="bad \udcff"))
    assert ran(job()).reason == "bad \\udcff"


@pytest.mark.parametrize(
    ("role", "boundary"), [("method", "advisor"), ("actor", "actor"), ("environment", "environment")]
)
def test_a_constructor_that_raises_is_its_owners(tmp_path, role, boundary):
    file = tmp_path / "mine.py"
    file.write_text("class Mine:\n    def __init__(self):\n        raise OSError('no disk')\n")
    good = job()
    spec = {**good.cell.spec, role: {"plugin": f"{file}:Mine", "params": {}}}
    row = run_job(replace(good, cell=replace(good.cell, spec=spec)))
    assert (row.status, row.boundary) == ("failed", boundary)
    assert "its constructor raised OSError: no disk" in row.reason


def test_a_fingerprint_that_raises_is_the_environments(monkeypatch):
    good = job()
    monkeypatch.setattr(MockEnvironment, "fingerprint", lambda *_: 1 / 0)
    row = run_job(good)
    assert (row.status, row.boundary) == ("failed", "environment")
    assert "ZeroDivisionError" in row.reason
