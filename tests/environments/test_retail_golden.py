"""Golden checks: the engine's hashes, replayed golden actions, and the scripted expert on every task."""

from __future__ import annotations

import copy

import pytest

from harness.environments.retail import Retail, engine
from harness.environments.retail.database import Database
from harness.environments.retail.engine import Toolbox
from tests.environments.retail_helpers import Reference, play, won

JUDGED = {"36", "38", "39", "40", "45", "60", "62", "68", "70", "108", "111"}


@pytest.fixture(scope="module")
def tau3() -> Retail:
    return Retail()


@pytest.fixture(scope="module")
def tau2() -> Retail:
    return Retail(tasks="tau2")


def test_splits_are_the_official_ones(tau3: Retail, tau2: Retail) -> None:
    for env in (tau3, tau2):
        train, validation, test = (env.tasks(split) for split in ("train", "validation", "test"))
        assert (len(train), len(validation), len(test)) == (60, 14, 40)
        assert len({*train, *validation, *test}) == 114
    assert tau3.tasks("validation") == tau2.tasks("validation")


def test_which_tasks_need_a_judge(tau3: Retail, tau2: Retail) -> None:
    assert {task for task in tau3.tasks("test") if tau3.needs_judge(task)} == JUDGED
    assert not any(tau2.needs_judge(task) for task in tau2.tasks("test"))


def test_hashes_are_the_engines_own_on_all_tasks(tau3: Retail) -> None:
    """After the golden actions of each of the 114 tasks, and after none."""
    data, reference = tau3.parts.data, Reference(tau3)
    assert Database(data.base).digest() == reference.database.get_hash()
    for task in data.tasks.values():
        database = Database(data.base)
        box = Toolbox(database, True)
        touched = set(data.golden(task.id).changes)
        reference.protect(touched | {("users", row) for _, row in touched if row in data.base.tables["users"]})
        for step in task.actions:
            box.call(step.name, step.args)
            reference.run(step.name, dict(step.args))
        assert database.digest() == reference.database.get_hash(), task.id
        assert database.changes() == data.golden(task.id).changes
        reference.reset()
    assert Database(data.base).digest() == reference.database.get_hash()  # neither base was written to


def test_the_engines_hash_function_reads_our_database(tau3: Retail) -> None:
    box = tau3.parts.box
    assert box._kit.get_db_hash() == tau3.parts.database.digest()


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_scripted_expert_wins_every_tau3_task(tau3: Retail, seed: int) -> None:
    for split in ("test", "train", "validation"):
        for task in tau3.tasks(split):
            taken, outcome = play(tau3, task, seed)
            assert won(outcome), (task, dict(outcome.info))
            assert len(taken) < 30, task
            assert (outcome.reward is None) == tau3.needs_judge(task)


@pytest.mark.parametrize("seed", [0, 1])
def test_scripted_expert_wins_every_tau2_task(tau2: Retail, seed: int) -> None:
    results = [play(tau2, task, seed)[1].reward for task in tau2.tasks("test")]
    assert results == [1.0] * 40


def test_expert_episodes_win_by_the_engine_itself(tau3: Retail) -> None:
    """The calls of an expert's episode, run on the engine's own database, give the golden hash of the engine."""
    reference = Reference(tau3)
    for task_id in tau3.tasks("test")[:12]:
        taken, _ = play(tau3, task_id)
        task, touched = tau3.parts.data.tasks[task_id], set(tau3.parts.data.golden(task_id).changes)
        reference.protect(touched)
        for step in task.actions:
            reference.run(step.name, dict(step.args))
        golden = reference.database.get_hash()
        reference.reset()
        for name, args in ((step.name, step.args) for step in map(_call, taken)):
            if name in engine.tools(True) and name != engine.ITEM_TOOL:
                reference.run(name, copy.deepcopy(dict(args)))
        assert reference.database.get_hash() == golden == tau3.parts.database.digest()
        reference.reset()


def _call(action):  # type: ignore[no-untyped-def]
    from harness.environments.retail.actions import parse

    return parse(action.text)


def test_communication_counts_in_tau2(tau2: Retail) -> None:
    """Golden changes without the required information score 0."""
    task = "39"
    tau2.reset(task, 0)
    for step in tau2.parts.data.golden(task).writes:
        tau2.step(step.action())
    outcome = tau2.step(tau2.canonical('respond({"content": "Goodbye. ###STOP###"})'))
    assert outcome.done
    assert outcome.reward == 0.0
    assert outcome.info["db_match"] is True
    assert outcome.info["communicated"] is False


def test_wrong_item_order_in_a_modify_call_changes_the_end_state(tau3: Retail) -> None:
    golden = next(step for step in tau3.parts.data.golden("36").writes)
    args = {key: list(reversed(value)) if isinstance(value, list) else value for key, value in golden.args.items()}
    swapped = tau3.canonical(f"{golden.name}({__import__('json').dumps(args)})")
    assert swapped.canonical != golden.action().canonical
    tau3.reset("36", 0)
    tau3.step(swapped)
    assert tau3.parts.database.changes() != tau3.parts.data.golden("36").changes
