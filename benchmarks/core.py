"""Figures of the core: loop overhead, environment steps, snapshots, start-up.  `python -m benchmarks.core`

Prints a Markdown table.  CPU milliseconds of this process (medians), so that a busy machine changes little; ratios are
taken side by side in this run.
"""

from __future__ import annotations

import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from benchmarks.figures import CPU, WALL, Figure, number
from harness.actors.mock import MockActor
from harness.desk import Tools
from harness.environments.mock import MockEnvironment
from harness.episode import run_episode
from harness.loop import Limits
from harness.protocols import Environment
from harness.records import Action, DecisionState, Turn
from harness.registry import create
from methods.origin import Origin

MOST = {"retail": {"restore": 1.0}, "alfworld": {"reset": 150.0}}  # milliseconds
LEAST = {"alfworld": 5.0}  # times


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


def loop() -> Iterator[Figure]:
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

    taken = cpu_ms(episode, 30) / 100
    yield Figure("overhead a step (mock actor and environment, all limits on)", taken, "ms", f"{CPU}, n=30 x 100", 1)


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


def environment(name: str, steps: int) -> Iterator[Figure]:
    """Reset again, step, snapshot, restore, and restore against reset + replay."""
    env = create("environments", name)
    task = env.tasks("test")[0]
    began = time.perf_counter()
    env.reset(task, 0)
    yield Figure(f"{name}: first reset in the process", (time.perf_counter() - began) * 1e3, "ms", f"{WALL}, n=1")
    seen, again = MOST.get(name, {}), cpu_ms(lambda: env.reset(task, 0), 15)
    yield Figure(f"{name}: reset of a task seen before", again, "ms", f"{CPU}, median, n=15", seen.get("reset"))
    _, taken = walk(env, task, steps)

    def replay() -> None:
        env.reset(task, 0)
        for action in taken:
            env.step(action)

    whole = cpu_ms(replay, 9)
    each = (whole - cpu_ms(lambda: env.reset(task, 0), 9)) / len(taken)
    yield Figure(f"{name}: step", each, "ms", f"{CPU}, mean over a walk of {len(taken)}, median of 9 walks")
    replay()
    held = env.snapshot()
    yield Figure(f"{name}: snapshot", cpu_ms(env.snapshot, 50), "ms", f"{CPU}, median, n=50")
    restore = cpu_ms(lambda: env.restore(held), 50)
    yield Figure(f"{name}: restore", restore, "ms", f"{CPU}, median, n=50", seen.get("restore"))
    ratio, how = whole / max(restore, 1e-6), f"{CPU}, ratio of medians in this run"
    yield Figure(f"{name}: reset + replay of {len(taken)} steps / restore", ratio, "x", how, least=LEAST.get(name))
    env.close()


def webshop_clicks() -> Iterator[Figure]:
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
    how = f"{CPU}, median of 200 rounds of {len(actions)}"
    yield Figure("webshop: step without a new search", statistics.median(taken), "ms", how, 0.2)


def start_up() -> Iterator[Figure]:
    """Seconds of `cota-bench --help`, least of seven (start-up is what a user waits for)."""
    walls, cpus = [], []
    for _ in range(7):
        began, spent = time.perf_counter(), children_s()
        subprocess.run([sys.executable, "-m", "harness.cli", "--help"], capture_output=True, check=True)
        walls.append(time.perf_counter() - began)
        cpus.append(children_s() - spent)
    yield Figure("start-up: `cota-bench --help`", min(walls), "s", f"{WALL}, least of 7", 0.3)
    yield Figure("start-up: `cota-bench --help`", min(cpus), "s", f"{CPU}, least of 7")


def children_s() -> float:
    """CPU seconds of the processes that were started and have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> None:
    """Print the table."""
    print("| what | figure |\n| --- | ---: |")
    walks = [environment(name, 15) for name in ("webshop", "retail", "alfworld")]
    for part in [loop(), webshop_clicks(), *walks, start_up()]:
        for figure in part:
            print(f"| {figure.what} | {number(figure.value)} {figure.unit} |", flush=True)


if __name__ == "__main__":
    main()
