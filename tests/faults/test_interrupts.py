"""Ctrl-C as people press it, and what only looks like it."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from harness.environments.mock import MockEnvironment
from harness.guard import Guard
from harness.interrupt import Interrupt, StopNow
from harness.loop import Limits
from harness.run import run_study
from methods.origin import Origin
from tests.grid.samples import BASE, rows, study
from tests.grid.test_faults import FAULT, SLOW, wait_for, write
from tests.harness.helpers import episode

SLEEPY = (
    "import time\n"
    "from harness.environments.mock import MockEnvironment\n"
    "class Sleepy(MockEnvironment):\n"
    "    def reset(self, task_id, seed):\n"
    "        if task_id == 'test-1':\n"
    "            time.sleep(20)\n"
    "        return super().reset(task_id, seed)\n"
)


@pytest.mark.parametrize("presses", [(0.03, 0.03), (0.0, 0.1)])
@pytest.mark.parametrize(
    ("backend", "asleep"), [("sequential", True), ("threading", True), ("loky", True), ("loky", False)]
)
def test_three_quick_ctrl_c_end_with_the_summary(tmp_path: Path, backend: str, asleep: bool, presses) -> None:
    """While an episode hangs, and while short ones end by themselves, so that the clean-up is what is interrupted."""
    text = FAULT if asleep else SLOW.replace("backend: sequential", "backend: loky, workers: 2")
    path = write(tmp_path, text, FOLDER=tmp_path, KIND="sleep", TIMES=1, LIMIT=100, BACKEND=backend)
    command = [sys.executable, "-m", "harness.cli", "run", str(path), "--results", str(tmp_path)]
    process = subprocess.Popen(
        [*command, "--no-tracking", "--no-report"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    deadline = time.monotonic() + 60
    while asleep and not list(tmp_path.glob("test-1.*")) and time.monotonic() < deadline:
        time.sleep(0.02)
    if not asleep:
        wait_for(tmp_path / "small", 5, process)
    for pause in (*presses, 0):
        os.killpg(process.pid, signal.SIGINT)
        time.sleep(pause)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 130, err
    assert f"{8 if asleep else 40} planned = " in out, err
    assert "Run the same command again" in out
    assert "Traceback" not in err
    assert all(row["status"] in ("done", "truncated") for row in rows(tmp_path / "small").values())


def test_a_third_signal_is_not_heard_at_once_and_later_is(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    with Interrupt(1e6, lambda _text: None) as interrupt:
        signal.raise_signal(signal.SIGINT)
        with pytest.raises(StopNow):
            signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)  # the third, bounced
        interrupt.wind_up()
        now[0] += 9
        signal.raise_signal(signal.SIGINT)
        now[0] += 2  # a clean-up that hangs
        with pytest.raises(StopNow):
            signal.raise_signal(signal.SIGINT)


@pytest.mark.parametrize("limit", [None, 5.0])
@pytest.mark.parametrize("kind", [KeyboardInterrupt, asyncio.CancelledError, GeneratorExit])
def test_a_plugin_that_raises_what_stops_programs_has_failed(limit: float | None, kind: type[BaseException]) -> None:
    def work() -> None:
        raise kind

    guard = Guard()
    with pytest.raises(RuntimeError, match=f"it raised {kind.__name__}$"):
        guard.call(work, limit)
    guard.close()


def test_the_episode_limit_holds_during_reset_too(tmp_path: Path) -> None:
    file = tmp_path / "sleepy.py"
    file.write_text(SLEEPY)
    mock = "mock: {params: {length: 3}, tasks: 5, max_steps: 8}"
    found = study(
        BASE,
        (mock, f"mock: {{plugin: '{file}:Sleepy', params: {{length: 3}}, tasks: 2, max_steps: 8}}"),
        ("  judged: {plugin: t-judged, comparator: pair, candidates: pool}\n", ""),
        ("seeds: [0, 1]", "seeds: [0]\npolicy: {call_timeout_s: null, episode_timeout_s: 0.4}"),
        (", strong: {plugin: t-random, params: {skill: 0.9}}", ""),
    )
    began = time.monotonic()
    summary = run_study(found, tmp_path, live=False)
    assert time.monotonic() - began < 10
    assert summary.counts == {"done": 1, "failed": 1}
    late = next(row for row in rows(tmp_path / "small").values() if row["status"] == "timeout")
    assert (late["task_id"], late["boundary"]) == ("test-1", "environment")


def test_reset_within_a_measured_episode_is_charged_to_the_environment() -> None:
    """Beyond the unmeasured first visit, which has the same limit."""

    class Slow(MockEnvironment):
        def reset(self, task_id, seed):
            time.sleep(5)
            return super().reset(task_id, seed)

    made = episode(Origin(), environment=Slow(), limits=Limits(5, episode_s=0.2))
    assert (made.status, made.boundary) == ("timeout", "environment")
    assert "episode limit of 0.2 s" in made.reason
