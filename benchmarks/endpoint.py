"""Endpoint benchmark: how near episodes in flight come to what a server of known latency allows.

Runs whole episodes of the chat actor in the mock corridor against a mock server in a process of its own.  The ideal
rate is the number in flight divided by the latency; the ratio to what the server really gives (the asked latency plus
its own overrun, measured by one caller alone) is printed too.  With faults the outcomes must equal those without.

    python -m benchmarks.endpoint --flying 64 --latency 0.05
    python -m benchmarks.endpoint --flying 64 --faults 0.2
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import get_context
from typing import Any

from harness.actors.chat import ChatActor
from harness.desk import Tools
from harness.environments.mock import MockEnvironment
from harness.episode import run_episode
from harness.loop import Limits
from harness.models.client import Endpoint, connection
from methods.origin import Origin

STEPS = 20


@dataclass(frozen=True)
class Cell:
    """A cell that stands for nothing."""

    key: str = "0" * 16
    study: str = "benchmark"
    method: str = "origin"
    actor: str = "chat"
    environment: str = "mock"
    seed: int = 0
    split: str = "test"


@contextmanager
def server(latency: float, faults: float) -> Iterator[str]:
    """Address of a mock server in its own process."""
    command = [sys.executable, "-m", "tests.models.mock_endpoint", "--latency", str(latency), "--faults", str(faults)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        port = int(process.stdout.readline()) if process.stdout else 0
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        process.communicate(timeout=10)  # the end of its input ends it


def work(url: str, tasks: Sequence[str], flying: int, length: int) -> tuple[list[Any], float, float, int]:
    """(outcomes, seconds, CPU seconds, calls) of the tasks with `flying` episodes at once in this process."""
    actor = ChatActor(url, "mock", attempts=20, timeout_s=1.0)

    def one(task: str) -> Any:
        environment = MockEnvironment(length=length, size=1_000_000)
        episode = run_episode(
            environment=environment,
            actor=actor,
            method=Origin(),
            tools=Tools(),
            cell=Cell(),
            task_id=task,
            limits=Limits(max_steps=STEPS),
        )
        return episode.status, episode.reward, [step.executed.text for step in episode.steps]

    began, spent = time.perf_counter(), resource.getrusage(resource.RUSAGE_SELF)
    with ThreadPoolExecutor(flying) as pool:
        outcomes = list(pool.map(one, tasks))
    took, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_SELF)
    cpu = after.ru_utime + after.ru_stime - spent.ru_utime - spent.ru_stime
    return outcomes, took, cpu, connection(actor.endpoint).counts["answers"]


def alone(url: str, calls: int = 40) -> float:
    """Seconds of one call when nothing else is going on: the latency the server really gives."""
    endpoint = Endpoint(url, "mock", attempts=20, timeout_s=1.0)
    request = {"messages": [{"role": "user", "content": "x"}]}
    return min(endpoint.complete(request, seed=i).seconds for i in range(calls))


def measure(url: str, given: argparse.Namespace) -> list[Any]:
    """Run, print one line, give the outcomes."""
    tasks = [f"test-{number}" for number in range(given.flying * given.rounds)]
    processes, real = given.processes, alone(url)
    began = time.perf_counter()
    if processes == 1:
        parts = [work(url, tasks, given.flying, given.length)]
    else:
        shares = [tasks[index::processes] for index in range(processes)]
        with ProcessPoolExecutor(processes, get_context("spawn")) as pool:
            jobs = [pool.submit(work, url, share, given.flying // processes, given.length) for share in shares]
            parts = [job.result() for job in jobs]
    wall = max(part[1] for part in parts)
    calls, cpu = sum(part[3] for part in parts), sum(part[2] for part in parts)
    steps = sum(len(outcome[2]) for part in parts for outcome in part[0])
    rate, asked = steps / wall, given.flying / given.latency
    print(
        f"{steps} steps in {wall:.2f} s ({time.perf_counter() - began:.2f} s with start-up): {rate:.0f} a second;\n"
        f"  {rate / asked:.1%} of the ideal {asked:.0f} a second,"
        f" {rate * real / given.flying:.1%} of what the server's real {1e3 * real:.1f} ms allow;\n"
        f"  {1e3 * cpu / max(1, calls):.2f} ms CPU a call, {calls} answers"
    )
    return sorted(outcome for part in parts for outcome in part[0])


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--flying", type=int, default=64, help="episodes at once")
    parser.add_argument("--latency", type=float, default=0.05, help="seconds a call takes at the server")
    parser.add_argument("--faults", type=float, default=0.0, help="share of calls that go wrong")
    parser.add_argument("--rounds", type=int, default=3, help="episodes for each place in flight")
    parser.add_argument("--length", type=int, default=100, help="corridor length; 100: all episodes take 20 steps")
    parser.add_argument("--processes", type=int, default=1, help="processes that share the episodes")
    given = parser.parse_args()
    with server(given.latency, 0.0) as url:
        clean = measure(url, given)
    if given.faults:
        with server(given.latency, given.faults) as url:
            faulty = measure(url, given)
        same = sum(a == b for a, b in zip(clean, faulty, strict=True))
        print(f"outcomes equal to those without faults: {same} of {len(clean)}")


if __name__ == "__main__":
    main()
