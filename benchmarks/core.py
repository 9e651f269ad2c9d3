"""Figures of the core: loop overhead, environment steps, snapshots, start-up.  `python benchmarks/core.py`

Prints a Markdown table.  CPU milliseconds of this process (medians), so that a busy machine changes little; ratios are
taken side by side in this run.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from harness.actors.mock import MockActor
from harness.desk import Tools
from harness.environments.mock import MockEnvironment
from harness.loop import Limits, run_episode
from harness.protocols import Environment
from harness.records import Action, DecisionState, Turn
from harness.registry import create
from methods.origin import Origin


@dataclass(frozen=True)
class MockCell:
    """What the loop needs of a cell."""

    key: str = "0" * 16
    study: str = "bench"
    method: str = "origin"
    actor: str = "mock"
    environment: str = "mock"
    seed: int = 0
    split: str = "test"


def cpu_ms(work: Callable[[], Any], times: int) -> float:
    """Median CPU milliseconds of one call."""
    taken = []
    for _ in range(times):
        began = time.process_time()
        work()
        taken.append((time.process_time() - began) * 1e3)
    return statistics.median(taken)


def loop() -> Iterator[tuple[str, str]]:
    """Overhead of the loop: mock actor and environment, all time limits on."""
    limits = Limits(200, call_s=60, step_s=60, episode_s=600)

    def episode() -> None:
        run_episode(
            environment=MockEnvironment(length=100),
            actor=MockActor(),
            method=Origin(),
            tools=Tools(),
            cell=MockCell(),
            task_id="test-0",
            limits=limits,
        )

    yield "loop, mock actor and environment, all limits on", f"{cpu_ms(episode, 30) / 100:.3f} ms a step"


def walk(env: Environment, task: str, steps: int) -> tuple[DecisionState, list[Action]]:
    """An expert walk that stops short of the end."""
    text, opening = env.reset(task, 0)
    state = DecisionState(env.name, task, text, opening)
    taken: list[Action] = []
    oracle = env.oracle()
    for index in range(steps):
        options = [a for a in env.pool(state) if "buy" not in a.text]
        action = options[(index * 7) % len(options)] if oracle is None or index % 3 else oracle.expert()
        if "buy" in action.text:
            action = options[0]
        outcome = env.step(action)
        taken.append(action)
        state = replace(state, turns=(*state.turns, Turn(action, outcome.observation)))
        if outcome.done:
            break
    return state, taken


def environment(name: str, steps: int) -> Iterator[tuple[str, str]]:
    """Reset again, step, snapshot, restore, and restore against reset + replay."""
    env = create("environments", name)
    task = env.tasks("test")[0]
    began = time.process_time()
    env.reset(task, 0)
    yield f"{name}: first reset in the process", f"{(time.process_time() - began) * 1e3:.0f} ms"
    yield f"{name}: reset of a task seen before", f"{cpu_ms(lambda: env.reset(task, 0), 15):.3f} ms"
    _, taken = walk(env, task, steps)

    def replay() -> None:
        env.reset(task, 0)
        for action in taken:
            env.step(action)

    whole = cpu_ms(replay, 9)
    reset = cpu_ms(lambda: env.reset(task, 0), 9)
    yield f"{name}: step (mean over a walk of {len(taken)})", f"{(whole - reset) / len(taken):.3f} ms"
    replay()
    held = env.snapshot()
    yield f"{name}: snapshot", f"{cpu_ms(env.snapshot, 50):.4f} ms"
    restore = cpu_ms(lambda: env.restore(held), 50)
    yield f"{name}: restore", f"{restore:.4f} ms"
    yield f"{name}: reset + replay of {len(taken)} steps / restore", f"{whole / max(restore, 1e-6):.0f}x"
    env.close()


def webshop_clicks() -> Iterator[tuple[str, str]]:
    """WebShop steps without a new search: open a product, read its pages, choose options, go back."""
    env = create("environments", "webshop")
    task = env.tasks("test")[0]
    env.reset(task, 0)
    oracle = env.oracle()
    outcome = env.step(oracle.expert())
    product = next(a for a in outcome.observation.actions if len(a) == len("click[") + 11)
    words = [product, "click[description]", "click[< prev]", "click[features]", "click[< prev]"]
    actions = [env.canonical(word) for word in words]

    def clicks() -> None:
        for action in actions:
            env.step(action)

    held = env.snapshot()
    taken = []
    for _ in range(200):
        env.restore(held)
        taken.append(cpu_ms(clicks, 1) / len(actions))
    yield "webshop: step without a new search", f"{statistics.median(taken):.3f} ms"


def start_up() -> Iterator[tuple[str, str]]:
    """Wall seconds of `cota-bench --help`, least of seven (start-up is what a user waits for)."""
    times = []
    for _ in range(7):
        began = time.perf_counter()
        subprocess.run([sys.executable, "-m", "harness.cli", "--help"], capture_output=True, check=True)
        times.append(time.perf_counter() - began)
    yield "cota-bench --help (least of 7, wall)", f"{min(times):.2f} s"


def main() -> None:
    """Print the table."""
    print("| what | figure |\n| --- | ---: |")
    walks = [environment(name, 15) for name in ("webshop", "retail", "alfworld")]
    for part in [loop(), webshop_clicks(), *walks, start_up()]:
        for what, figure in part:
            print(f"| {what} | {figure} |", flush=True)


if __name__ == "__main__":
    main()
