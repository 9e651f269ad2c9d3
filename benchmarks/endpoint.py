"""Endpoint benchmark: how near episodes in flight come to what a server of known latency allows.

Runs whole studies as `cota-bench run` does (durable ledger, call limits, the chat actor in the mock corridor) against a
mock server in a process of its own, on the same cores.  The ideal rate is the number in flight divided by the latency.
The rate is taken from the ledger, from the begin of the first episode to the end of the last.  With faults the outcomes
must equal those without.

    python -m benchmarks.endpoint --flying 64 --latency 0.05
    python -m benchmarks.endpoint --flying 64 --faults 0.2
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.ledger import read_episodes
from harness.run import run_study
from harness.spread import processes_for
from harness.study import Study, parse_study
from harness.yamlfile import loads

STEPS = 20
STUDY = """
study: endpoint
environments: {{mock: {{params: {{length: {length}, size: 5000}}, tasks: {tasks}, max_steps: {steps}}}}}
actors: {{chat: {{params: {{base_url: "{url}", model: mock, attempts: 20, timeout_s: 1.0}}}}}}
methods: {{origin: }}
seeds: [0]
policy: {{attempts: 3}}
throughput: {{backend: threading, workers: {flying}, processes: {processes}}}
"""


@dataclass(frozen=True)
class Load:
    """What is run: `flying` episodes at once, `rounds` for each place, in a corridor of `length`."""

    flying: int = 64
    rounds: int = 30
    length: int = 100  # all episodes take `STEPS` steps
    processes: int | str = "auto"

    def study(self, url: str) -> Study:
        """The study to run."""
        tasks = self.flying * self.rounds
        values = {"tasks": tasks, "length": self.length, "flying": self.flying, "processes": self.processes}
        return parse_study(loads(STUDY.format(url=url, steps=STEPS, **values), "endpoint.yaml"))


@dataclass(frozen=True)
class Measured:
    """`rate`: steps a second; `cpu`: seconds of this process and its workers; `real`: seconds of one call alone."""

    outcomes: list[Any]
    rate: float
    steps: int
    cpu: float
    real: float
    processes: int


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


def alone(url: str, calls: int = 40) -> float:
    """Seconds of one call when nothing else is going on: the latency the server really gives."""
    from harness.models.client import Endpoint

    endpoint = Endpoint(url, "mock", attempts=20, timeout_s=1.0)
    request = {"messages": [{"role": "user", "content": "x"}]}
    return min(endpoint.complete(request, seed=i).seconds for i in range(calls))


def measure(url: str, load: Load) -> Measured:
    """Run the load's study in a folder of its own."""
    study, real = load.study(url), alone(url)
    before = _spent()
    with tempfile.TemporaryDirectory() as folder:
        run_study(study, Path(folder), live=False)
        spent = _spent() - before
        episodes = list(read_episodes(Path(folder) / study.study))
    began = min(episode.started_at for episode in episodes)
    took = max(episode.started_at + episode.wall_s for episode in episodes) - began
    steps = sum(len(episode.steps) for episode in episodes)
    outcomes = sorted(
        (episode.task_id, episode.status, episode.reward, [step.executed.text for step in episode.steps])
        for episode in episodes
    )
    return Measured(outcomes, steps / took, steps, spent, real, processes_for(study.throughput, load.flying))


def _spent() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def said(found: Measured, flying: int, latency: float) -> str:
    """The lines for people."""
    return (
        f"{found.steps} steps, {found.rate:.0f} a second in {found.processes} process(es);\n"
        f"  {found.rate * latency / flying:.1%} of the ideal {flying / latency:.0f} a second,"
        f" {found.rate * found.real / flying:.1%} of what the server's real {1e3 * found.real:.1f} ms allow;\n"
        f"  {1e3 * found.cpu / found.steps:.2f} ms CPU a step, start-up included"
    )


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--flying", type=int, default=64, help="episodes at once")
    parser.add_argument("--latency", type=float, default=0.05, help="seconds a call takes at the server")
    parser.add_argument("--faults", type=float, default=0.0, help="share of calls that go wrong")
    parser.add_argument("--rounds", type=int, default=30, help="episodes for each place in flight")
    parser.add_argument("--length", type=int, default=100, help="corridor length; 100: all episodes take 20 steps")
    parser.add_argument("--processes", default="auto", help="processes that share the episodes, or auto")
    given = parser.parse_args()
    processes = given.processes if given.processes == "auto" else int(given.processes)
    load = Load(given.flying, given.rounds, given.length, processes)
    with server(given.latency, 0.0) as url:
        clean = measure(url, load)
    print(said(clean, given.flying, given.latency))
    if given.faults:
        with server(given.latency, given.faults) as url:
            faulty = measure(url, load)
        print(said(faulty, given.flying, given.latency))
        same = sum(a == b for a, b in zip(clean.outcomes, faulty.outcomes, strict=True))
        print(f"outcomes equal to those without faults: {same} of {len(clean.outcomes)}")


if __name__ == "__main__":
    main()
