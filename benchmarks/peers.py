"""Side by side on the same work: 1,000 mock episodes of 10 model turns, each way in a process of its own, in turn.

    python -m benchmarks.peers [--inspect-python /path/to/venv/bin/python] [--episodes 1000] [--rounds 3]

  floor    a plain loop over the same mock environment and actor, nothing limited, nothing kept
  ours     `run_study` with a durable ledger: sequential, and loky with two workers
  inspect  inspect_ai with `mockllm/model`: one sample an episode, ten turns a sample, its log written as it does by
           default (`benchmarks/peer_inspect.py`)

Imports are not counted, but for loky the start of its workers is.  CPU seconds include child processes.  Every way
reports how many turns it really took, and a way that took another number is refused.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks.figures import CPU, WALL, Figure

STEPS = 10
PEER = "inspect_ai, mockllm"
WAYS = {"plain loop": ("floor",), "cota-bench, sequential": ("ours", "sequential", "1"),
        "cota-bench, loky, 2 workers": ("ours", "loky", "2")}  # fmt: skip


class Ear:
    """The part of a mind that the mock actor uses: reading an action out of text."""

    def __init__(self, environment: Any) -> None:
        self.parse = environment.canonical


def floor(episodes: int) -> int:
    """The same environment and actor in a loop that keeps nothing; turns taken."""
    from dataclasses import replace

    from harness.actors.mock import MockActor
    from harness.environments.mock import MockEnvironment
    from harness.records import DecisionState, Turn

    turns = 0
    actor = MockActor()
    environment = MockEnvironment(length=STEPS, size=episodes)
    mind: Any = Ear(environment)
    for task in environment.tasks("test")[:episodes]:
        text, opening = environment.reset(task, 0)
        state, done = DecisionState(environment.name, task, text, opening), False
        while not done:
            action = actor.propose(state, mind).action
            outcome = environment.step(action)
            state, done = replace(state, turns=(*state.turns, Turn(action, outcome.observation))), outcome.done
            turns += 1
    return turns


def ours(backend: str, workers: int, episodes: int, root: Path) -> int:
    """A study with its ledger; turns counted in the ledger."""
    from benchmarks.grid import made
    from harness.ledger import read_heads
    from harness.run import run_study

    study = made(backend, episodes // 2, STEPS, workers)
    run_study(study, root, live=False, stream=sys.stderr)
    return sum(head["steps"] for head in read_heads(root / study.study).values())


def one(way: list[str], episodes: int) -> None:
    """Measure one way in this process and print it as JSON."""
    for module in ("benchmarks.grid", "harness.actors.mock", "harness.environments.mock", "methods.origin"):
        import_module(module)  # before the clock starts

    with tempfile.TemporaryDirectory() as name:
        began = time.perf_counter()
        spent = cpu_seconds()
        turns = floor(episodes) if way[0] == "floor" else ours(way[1], int(way[2]), episodes, Path(name))
        took = time.perf_counter() - began
    print(json.dumps({"wall": took, "cpu": cpu_seconds() - spent, "turns": turns}))


def cpu_seconds() -> float:
    """Of this process and of its children that have ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(part.ru_utime + part.ru_stime for part in used)


def measured(command: list[str], turns: int) -> dict[str, float]:
    """What a way prints. Raises `RuntimeError` when it did other work than it was to do."""
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    if found["turns"] != turns:
        raise RuntimeError(f"{command} took {found['turns']} turns where {turns} were to be taken")
    print(f"peers: {' '.join(command[2:])}: {found}", file=sys.stderr, flush=True)
    return found


def compare(inspect_python: Path | None, episodes: int = 1000, rounds: int = 1) -> Iterator[Figure]:
    """Every way in turn, `rounds` times; medians, and ratios of each round."""
    here = [sys.executable, "-m", "benchmarks.peers", "--episodes", str(episodes), "--way"]
    commands = {name: [*here, *way] for name, way in WAYS.items()}
    if inspect_python is not None:
        script = str(Path(__file__).with_name("peer_inspect.py"))
        commands[PEER] = [str(inspect_python), script, str(episodes), str(STEPS)]
    found: dict[str, list[dict[str, float]]] = {name: [] for name in commands}
    trouble = "" if inspect_python else "no --inspect-python given (a Python of another environment that has it)"
    for _ in range(rounds):
        for name, command in commands.items():
            try:
                found[name].append(measured(command, episodes * STEPS))
            except (OSError, subprocess.CalledProcessError, RuntimeError) as error:
                if name in WAYS:
                    raise
                trouble = str(error)
    if trouble:
        found.pop(PEER, None)
    what = f"{episodes:,} episodes of {STEPS} turns"
    for name, times in found.items():
        how = f"{WALL}; {CPU} {statistics.median(one['cpu'] for one in times):.2f} s; median, n={rounds}"
        yield Figure(f"{what}: {name}", statistics.median(one["wall"] for one in times), "s", how)
    if trouble:
        from benchmarks.parts import Missing

        raise Missing(f"inspect_ai: {trouble}")
    for name in list(WAYS)[1:]:
        for kind in ("wall", "cpu"):
            ratio = [a[kind] / b[kind] for a, b in zip(found[PEER], found[name], strict=True)]
            yield Figure(f"inspect_ai / {name}, {kind}", statistics.median(ratio), "x", f"median, n={rounds}")


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--inspect-python", type=Path)
    parser.add_argument("--episodes", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--way", nargs="+", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.way:
        one(given.way, given.episodes)
        return
    for figure in compare(given.inspect_python, given.episodes, given.rounds):
        print(figure.row(), flush=True)


if __name__ == "__main__":
    main()
