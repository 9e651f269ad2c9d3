"""Episodes: snapshots, illegal actions, the calculate guard, limits, judges, threads, lean imports, leaks."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Sequence

import pytest

from harness.environments.retail import Retail
from harness.environments.retail.scoring import Message, Ruling
from harness.errors import UsageError
from tests.environments.retail_helpers import call, finish, play, states, won


@pytest.fixture(scope="module")
def env() -> Retail:
    return Retail()


@pytest.mark.parametrize("task", ["17", "42", "55", "71", "100", "111"])
def test_restore_mid_dialogue_gives_the_same_end(env: Retail, task: str) -> None:
    env.reset(task, 3)
    snapshots, done = [], False
    first = []
    while not done:
        snapshots.append(env.snapshot())
        action = env.oracle().expert()
        outcome = env.step(action)
        first.append((action, outcome.observation, outcome.reward, outcome.done, dict(outcome.info)))
        done = outcome.done
    digest = env.parts.database.digest()
    for index in (len(snapshots) - 1, 0, len(snapshots) // 2, len(snapshots) // 2):
        env.restore(snapshots[index])
        for wrong in list(env.oracle().mistakes())[:3]:  # leave the path, then come back
            env.step(wrong)
        env.restore(snapshots[index])
        again = []
        for action, *_ in first[index:]:
            outcome = env.step(action)
            again.append((action, outcome.observation, outcome.reward, outcome.done, dict(outcome.info)))
        assert again == first[index:]
        assert env.parts.database.digest() == digest


def test_restored_counters_and_original_task_decide(env: Retail) -> None:
    env.reset("17", 0)
    for _ in range(9):
        env.step(call("get_order_details", order_id="#W0"))
    snapshot = env.snapshot()
    other = env.step(call("get_order_details", order_id="#W0"))
    assert other.done
    assert other.info["ended"] == "too_many_errors"
    assert other.reward == 0.0
    env.reset("9", 1)
    env.restore(snapshot)
    _, outcome = finish(env)
    assert won(outcome)  # scored as task 17, with nine errors behind it
    assert env.live.errors == 9


def test_restore_takes_under_a_millisecond(env: Retail) -> None:
    env.reset("55", 0)
    for _ in range(12):
        env.step(env.oracle().expert())
    snapshot = env.snapshot()
    times = []
    for _ in range(200):
        start = time.perf_counter()
        env.restore(snapshot)
        times.append(time.perf_counter() - start)
    assert sorted(times)[len(times) // 2] < 1e-3


@pytest.mark.parametrize(
    "expression", ["9**9**9", "9//2", "1" * 5000, "((((" * 30, "2(3)", "__import__('os')", "1/0", ""]
)
def test_calculate_refuses_at_once(env: Retail, expression: str) -> None:
    env.reset("17", 0)
    start = time.perf_counter()
    outcome = env.step(call("calculate", expression=expression))
    assert time.perf_counter() - start < 0.2
    assert outcome.observation.text.startswith("Error: ")
    assert not outcome.done
    assert env.live.errors == 1


def test_calculate_works(env: Retail) -> None:
    env.reset("17", 0)
    assert env.step(call("calculate", expression="(652.61 - 642.72) * 1")).observation.text == "9.89"


@pytest.mark.parametrize(
    "text",
    [
        'no_such_tool({"a": 1})',
        "get_order_details({})",
        'get_order_details({"order_id": "#W8665881", "extra": "x"})',
        'get_order_details({"order_id": 5})',
        'get_order_details({"order_id": ["#W8665881"]})',
        'respond({"content": ""})',
        'respond({"text": "hello"})',
        'respond({"content": 5})',
        'return_delivered_order_items({"order_id": "#W8665881", "item_ids": [], "payment_method_id": "x"})',
        'use_tool({"tool_name": "x"})',
        'get_order_details({"self": "x"})',
    ],
)
def test_illegal_actions_are_answered(env: Retail, text: str) -> None:
    env.reset("17", 0)
    before = env.parts.database.digest()
    action = env.canonical(text)
    assert not env.legal(action)
    outcome = env.step(action)
    assert outcome.observation.text.startswith("Error: ")
    assert not outcome.done
    assert env.parts.database.digest() == before
    assert env.live.errors == 1


def test_same_seed_same_episode_other_seed_other_words(env: Retail) -> None:
    texts = [[turn.observation.text for turn in states(env, "55", seed)[-1].turns] for seed in (4, 4)]
    assert texts[0] == texts[1]
    openings = {env.reset("55", seed)[1].text for seed in range(12)}
    assert len(openings) > 2


def test_eight_threads_give_the_same_hashes(env: Retail) -> None:
    tasks = list(env.tasks("test")[:10])
    expected = []
    for task in tasks:
        play(env, task)
        expected.append(env.parts.database.digest())
    found: dict[int, list[str]] = {}

    def work(number: int) -> None:
        mine = Retail()
        order = tasks[number:] + tasks[:number]
        digests = {}
        for task in order:
            play(mine, task)
            digests[task] = mine.parts.database.digest()
        found[number] = [digests[task] for task in tasks]

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [found[number] for number in range(8)] == [expected] * 8


def test_no_llm_stack_is_imported_and_no_env_file_read(tmp_path: os.PathLike[str]) -> None:
    program = """
import os, sys
from harness.environments.retail import Retail
assert "tau2" not in sys.modules, "importing the plugin imports the engine"
before = dict(os.environ)
env = Retail()
env.reset("17", 0)
outcome = None
while outcome is None or not outcome.done:
    outcome = env.step(env.oracle().expert())
assert outcome.reward == 1.0
bad = [name for name in ("litellm", "openai", "torch") if name in sys.modules]
assert not bad, bad
changed = {key for key in os.environ if os.environ[key] != before.get(key)}
assert changed <= {"LITELLM_LOCAL_MODEL_COST_MAP"}, changed
assert os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] == "True"
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""


def test_scenarios_do_not_leak(env: Retail) -> None:
    """No run of seven words of a scenario is in what agent or advisor read, in any state of any test task."""
    for task_id in env.tasks("test"):
        told = env.parts.data.tasks[task_id].scenario
        words = " ".join([told.reason, told.known, told.unknown, told.instructions]).lower().split()
        runs = {" ".join(words[i : i + 7]) for i in range(len(words) - 6)}
        runs = {run for run in runs if not any(letter.isdigit() for letter in run)}  # an address is told when asked
        state = states(env, task_id)[-1]
        text = [state.task, state.opening.text, *(turn.observation.text for turn in state.turns), env.render(state)]
        shown = " ".join(" ".join(text).lower().split())
        assert not [run for run in runs if run in shown], task_id
        assert "golden" not in shown


class FixedJudge:
    """A judge that gives a fixed answer and counts its calls."""

    label = "fixed"

    def __init__(self, *met: bool) -> None:
        self.met = met
        self.calls = 0

    def rule(self, messages: Sequence[Message], assertions: Sequence[str]) -> Ruling:
        self.calls += 1
        assert messages[0][0] == "assistant"
        return Ruling(self.met[: len(assertions)])


def test_without_a_judge_the_score_is_none(env: Retail) -> None:
    env.reset("36", 0)
    running = env.step(call("list_all_product_types"))
    assert running.reward is None
    assert running.info["unscored"] == "needs a judge"
    _, outcome = finish(env)
    assert outcome.reward is None
    assert outcome.info["unscored"] == "needs a judge"
    assert outcome.info["db_match"] is True
    env.reset("36", 0)
    lost = env.step(call("respond", content="Bye ###STOP###"))
    assert lost.reward is None  # failures are not scored alone either
    assert lost.info["db_match"] is False


@pytest.mark.parametrize(("met", "reward"), [((True, True), 1.0), ((True, False), 0.0), ((), None), ((True,), None)])
def test_a_judge_decides_and_an_empty_answer_is_no_pass(met: tuple[bool, ...], reward: float | None) -> None:
    judge = FixedJudge(*met)
    env = Retail(judge=judge)
    _, outcome = play(env, "36")
    assert outcome.reward == reward
    assert judge.calls == 1
    assert ("unscored" in outcome.info) == (reward is None)


def test_a_judge_is_not_asked_when_the_database_is_wrong() -> None:
    judge = FixedJudge(True, True)
    env = Retail(judge=judge)
    env.reset("36", 0)
    outcome = env.step(call("respond", content="Bye ###STOP###"))
    assert (outcome.reward, judge.calls) == (0.0, 0)


def test_endings_and_limits(env: Retail) -> None:
    env.reset("17", 0)
    handed = env.step(call("respond", content="YOU ARE BEING TRANSFERRED TO A HUMAN AGENT. PLEASE HOLD ON."))
    assert handed.done
    assert handed.info["ended"] == "user_transfer"
    assert handed.reward == 0.0
    after = env.step(call("list_all_product_types"))
    assert after.done
    assert after.reward == 0.0
    env.reset("17", 0)
    for _ in range(40):
        outcome = env.step(call("respond", content="Hello."))
        if outcome.done:
            break
    assert outcome.info["ended"] == "user_stop"  # the customer gives up in the end
    assert outcome.reward == 0.0


def test_messages_for_people() -> None:
    env = Retail()
    with pytest.raises(UsageError, match=r"no split 'tset'\. Did you mean 'test'"):
        env.tasks("tset")
    with pytest.raises(UsageError, match="no task '999'"):
        env.reset("999", 0)
    with pytest.raises(UsageError, match="no tasks 'tau4'"):
        Retail(tasks="tau4").tasks("test")
    with pytest.raises(UsageError, match="no user 'scriptd'"):
        Retail(user="scriptd").tasks("test")
    with pytest.raises(UsageError, match="reset"):
        env.step(call("list_all_product_types"))
    env.close()
    env.close()


def test_fingerprints_tell_tasks_and_variants_apart(env: Retail) -> None:
    tau2 = Retail(tasks="tau2")
    prints = [env.fingerprint(task) for task in env.tasks("test")]
    assert len(set(prints)) == 40
    assert not set(prints) & {tau2.fingerprint(task) for task in env.tasks("test")}
    assert prints[0] == Retail().fingerprint(env.tasks("test")[0])
