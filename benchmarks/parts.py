"""The parts of the suite: each is a generator of figures, short by default, whole with `full`.

A part runs in a process of its own (`python -m benchmarks.parts NAME`), so that it neither warms nor burdens the next;
it prints one JSON line a figure as soon as it has it.  What a part needs and does not find it says with `Missing`.
"""

from __future__ import annotations

import argparse
import importlib.util
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.figures import CPU, WALL, Figure

MARK = "figure: "
BYTES = """
study: bytes
environments:
  webshop: {split: test, tasks: 2, max_steps: 8}
  alfworld: {split: test, tasks: 2, max_steps: 12}
  retail: {split: test, tasks: 2, max_steps: 16, params: {tasks: tau2}}
actors: {medium: {plugin: simulated, params: {competence: medium, noise: 0.4}}}
judges:
  pairwise: {plugin: oracle, params: {noise: 0.2}}
  absolute: {plugin: oracle-critic}
candidates: {environment: }
methods:
  origin:
  self-reflection:
  agentprm: {critic: absolute, candidates: environment}
  absq-constructive: {critic: absolute, candidates: environment}
  pairwise-forced: {comparator: pairwise, candidates: environment}
  cota: {comparator: pairwise, candidates: environment}
seeds: [0]
throughput: {backend: sequential}
"""


class Missing(Exception):
    """Something that a part needs is not installed or was not given."""


@dataclass(frozen=True)
class Given:
    """What the command line gives every part."""

    full: bool = False
    results: Path | None = None
    inspect_python: Path | None = None


def need(*modules: str) -> None:
    """Raises `Missing` for packages that are not installed."""
    lacking = [name for name in modules if importlib.util.find_spec(name) is None]
    if lacking:
        raise Missing(f"not installed: {', '.join(lacking)}")


def start_up(_given: Given) -> Iterator[Figure]:
    """What a user waits for."""
    from benchmarks import core

    yield from core.start_up()


def loop(_given: Given) -> Iterator[Figure]:
    """The harness's own time in a step."""
    from benchmarks import core

    yield from core.loop()


def environments(_given: Given) -> Iterator[Figure]:
    """Step, reset, snapshot and restore of the three environments; one that is not installed is named."""
    from benchmarks import core

    needs = {"webshop": ("spacy", "numpy"), "retail": ("tau2",), "alfworld": ("textworld", "alfworld")}
    lacking = []
    for name, modules in needs.items():
        try:
            need(*modules)
        except Missing as reason:
            lacking.append(f"{name} ({reason})")
            continue
        yield from core.environment(name, 15)
        if name == "webshop":
            yield from core.webshop_clicks()
    if lacking:
        raise Missing("; ".join(lacking))


def webshop_scale(given: Given) -> Iterator[Figure]:
    """Making, opening and searching a large catalogue."""
    need("spacy", "numpy")
    products = 100_000 if given.full else 5_000
    command = [sys.executable, "-m", "benchmarks.webshop_scale", "--products", str(products)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    wanted = {"make": ("make: ([0-9.]+)", "s"), "search": ("search: mean ([0-9.]+)", "ms"),
              "another step": ("other steps: mean ([0-9.]+)", "ms")}  # fmt: skip
    for what, (pattern, unit) in wanted.items():
        found = re.search(pattern, done.stdout)
        if found:
            how = f"{WALL}, n=1" if what == "make" else f"{WALL}, mean over 200 searches"
            yield Figure(f"webshop of {products:,} products: {what}", float(found[1]), unit, how)


def grid(given: Given) -> Iterator[Figure]:
    """Episodes a second by backend and workers, against a plain loop over the same jobs; resuming."""
    from benchmarks.grid import made, run_again, timed
    from harness.grid import plan_cells
    from harness.run import jobs_left, run_study
    from harness.worker import run_job

    episodes, steps = 1000, 10
    how = f"{WALL}, {episodes} mock episodes of {steps} steps, n=1"
    plain = made("sequential", episodes // 2, steps, 1)
    jobs = list(jobs_left(plain, plan_cells(plain), {}))
    took = timed(lambda: [run_job(job) for job in jobs])
    yield Figure("plain loop over the jobs, nothing stored", episodes / took, "episodes/s", how)
    ways = [("sequential", 1), ("threading", 2), ("loky", 1), ("loky", 2)] + [("loky", 4)] * given.full
    with tempfile.TemporaryDirectory() as name:
        for backend, workers in ways:
            root = Path(name) / f"{backend}-{workers}"
            study = made(backend, episodes // 2, steps, workers)
            took = timed(lambda study=study, root=root: run_study(study, root, live=False, stream=sys.stderr))  # type: ignore[misc]
            yield Figure(f"{backend}, {workers} worker(s), durable ledger", episodes / took, "episodes/s", how)
            if (backend, workers) == ("loky", 2):
                yield Figure("1,000 episodes of 10 steps, loky, 2 workers", took, "s", how, 15)
        again = timed(lambda: run_study(study, root, live=False, stream=sys.stderr))
        yield Figure("resume with nothing to do, 1,000 episodes", again, "s", f"{WALL}, after start", 1)
        took = run_again(root, study, episodes // 2, steps, workers)
        yield Figure("the same, a fresh process from start to end", took, "s", f"{WALL}, n=1")


def ledger(_given: Given) -> Iterator[Figure]:
    """Durable appends, and reading back."""
    from benchmarks.grid import ledger_times, made
    from harness.run import run_study

    with tempfile.TemporaryDirectory() as name:
        study = made("sequential", 500, 10, 1)
        run_study(study, Path(name), live=False, stream=sys.stderr)
        took = ledger_times(Path(name) / study.study)
    yield Figure("ledger: append, fsync included", took["append"] * 1e3, "ms", f"{WALL}, mean, n=200")
    yield Figure("ledger: of which encode and compress", took["pack"] * 1e3, "ms", f"{WALL}, mean, n=200")
    yield Figure("ledger: statuses of 1,000 records", took["heads"] * 1e3, "ms", f"{WALL}, n=1")
    yield Figure("ledger: 1,000 records read whole", took["bodies"] * 1e3, "ms", f"{WALL}, n=1")


def judge(given: Given) -> Iterator[Figure]:
    """Four candidates in both orders over one state, against eight independent full prompts as one batch."""
    need("torch", "transformers")
    import torch

    from benchmarks.judge_prefill import STATE, Bench, agreement, ratios, total
    from harness.errors import UsageError
    from harness.models.weights import load

    torch.set_num_threads(1)
    try:
        bench = Bench(load("smollm2", dtype="float32"))
    except (UsageError, OSError) as reason:
        raise Missing(f"weights of smollm2: {' '.join(str(reason).split())[:200]}") from reason
    bench.fresh.run([1, 2, 3], [[4]])
    times, logits = [], []
    for number in range(8 if given.full else 5):
        print(f"judge: step {number}", file=sys.stderr, flush=True)
        one, found = bench.step(number)
        times.append(one)
        logits.append(found)
    cold, whole = ratios(times[STATE : STATE + 1])["cold"], ratios([total(times)])["kept"]
    how = f"SmolLM2-135M fp32, {torch.get_num_threads()} thread, {CPU}"
    yield Figure("judge: cold state of 450 tokens / eight prompts", cold[0], "x", f"{how}, n=1", least=3.5)
    yield Figure(f"judge: {len(times)} steps, cache kept / eight prompts", whole[0], "x", f"{how}, sums", least=6)
    kept, apart = (torch.cat([one[way] for one in logits]) for way in ("kept", "apart"))
    same = agreement(kept, apart)
    yield Figure("judge: decisions that differ", same["decisions_differ"], f"of {same['decisions']}", "fp32", 0)


def endpoint(given: Given) -> Iterator[Figure]:
    """How near whole studies come to what a server of 50 ms allows."""
    from benchmarks.endpoint import Load, measure, server

    latency = 0.05
    for flying, processes in ((1, 1), (16, 1), (64, 1), (64, 2), (256, 2)):
        print(f"endpoint: {flying} in flight, {processes} process(es)", file=sys.stderr, flush=True)
        rounds = {1: 3, 16: 10, 64: 30, 256: 10 if given.full else 3}[flying]  # few rounds measure begin and end
        with server(latency, 0.0) as url:
            found = measure(url, Load(flying, rounds, processes=processes))
        what = f"endpoint: {flying} in flight, {processes} process(es), share of the ideal rate"
        each = 1e3 * found.cpu / found.steps
        how = f"{WALL}, studies of {rounds} rounds, mock server of 50 ms (gives {found.real * 1e3:.1f})"
        target = 90 if (flying, processes) == (64, 2) else None
        yield Figure(what, 100 * found.rate * latency / flying, "%", f"{how}, {each:.2f} ms CPU a step", least=target)


def report(given: Given) -> Iterator[Figure]:
    """A full report: tables, figures, page."""
    need("mlflow", "pandas", "matplotlib")
    from benchmarks.report import measured

    cells, tasks = (63, 500) if given.full else (63, 50)
    found = measured(cells, tasks, 8)
    limit = 20 if given.full else None
    what = f"report of {cells} cells x {tasks} episodes"
    yield Figure(what, found["total_s"], "s", f"{WALL}, n=1, {found['figures']:.0f} figures", limit)
    yield Figure(f"{what}: peak memory", found["peak_mb"], "MB", "ru_maxrss", 1024 if given.full else None)
    if given.results is not None:
        own = measured(0, 0, 0, given.results)
        yield Figure(f"report of {given.results}", own["total_s"], "s", f"{WALL}, {own['episodes']:.0f} episodes", 10)


def memory(given: Given) -> Iterator[Figure]:
    """Peak memory of parent and worker after 1,000, 5,000 and 10,000 episodes of one study."""
    need("psutil")
    from benchmarks.grid import peaks

    for backend in ("sequential", "loky") if given.full else ("loky",):
        found = peaks(backend, 10 if given.full else 3, 2)
        for done, parent, worker in found:
            yield Figure(f"memory after {done:,.0f} episodes, {backend}, parent", parent, "MB", "VmHWM")
            if worker:
                yield Figure(f"memory after {done:,.0f} episodes, {backend}, worker", worker, "MB", "VmHWM")
        grown = (found[-1][1] - found[0][1]) * 1024 / (found[-1][0] - found[0][0])
        yield Figure(f"parent's growth, {backend}", grown, "KB an episode", "from 1,000 to 10,000", 0.1)


def size(given: Given) -> Iterator[Figure]:
    """Bytes of a record as it is stored, by environment."""
    from harness.ledger import read
    from harness.run import run_study
    from harness.study import parse_study
    from harness.yamlfile import loads

    with tempfile.TemporaryDirectory() as name:
        folder, how = given.results, f"compressed, mean, {given.results}"
        if folder is None:
            need("spacy", "tau2", "textworld")
            study = parse_study(loads(BYTES, "benchmark"))
            run_study(study, Path(name), live=False, stream=sys.stderr)
            folder, how = Path(name) / "bytes", "compressed, mean, six methods with judges that read latent state"
        frames = read(folder).frames
    by: dict[str, list[int]] = {}
    for frame in frames:
        by.setdefault(frame.head["environment"], []).append(frame.size)
    for label, sizes in sorted(by.items()):
        yield Figure(f"record of {label}", sum(sizes) / len(sizes), "bytes", f"{how}, n={len(sizes)}")
    every = [size for sizes in by.values() for size in sizes]
    yield Figure("record, all", sum(every) / len(every), "bytes", f"{how}, n={len(every)}", 4096)


def faults(given: Given) -> Iterator[Figure]:
    """Rows lost, doubled or different after kill -9 and power cuts at random moments."""
    need("psutil")
    from benchmarks.faults import Campaign

    with tempfile.TemporaryDirectory() as name:
        tally = Campaign(Path(name), 50 if given.full else 6, int(time.time())).run()
    strikes = sum(tally.strikes.values())
    wrong = tally.lost + tally.doubled + tally.different + len(tally.failures)
    yield Figure("rows lost, doubled or different", wrong, "rows", f"{strikes} kills at random moments", 0)


def peers(given: Given) -> Iterator[Figure]:
    """A plain loop, cota-bench and inspect_ai on the same work."""
    from benchmarks import peers

    yield from peers.compare(given.inspect_python, rounds=3 if given.full else 1)


def prefix_cache(_given: Given) -> Iterator[Figure]:
    """Needs a server with a prefix cache, which no short suite can start."""
    raise Missing("needs a running vLLM: `python -m benchmarks.prefix_cache URL MODEL`")


PARTS: dict[str, Callable[[Given], Iterator[Figure]]] = {
    "start-up": start_up,
    "loop": loop,
    "grid": grid,
    "ledger": ledger,
    "environments": environments,
    "webshop-scale": webshop_scale,
    "judge": judge,
    "endpoint": endpoint,
    "report": report,
    "memory": memory,
    "bytes": size,
    "faults": faults,
    "peers": peers,
    "prefix-cache": prefix_cache,
}


def options(parser: argparse.ArgumentParser) -> None:
    """What both this command and the suite's take."""
    parser.add_argument("--full", action="store_true", help="the sizes of the targets, about half an hour")
    parser.add_argument("--results", type=Path, help="a finished study for `bytes` and `report`, as results/quickstart")
    parser.add_argument("--inspect-python", type=Path, help="a Python that has inspect_ai, for `peers`")


def given_of(chosen: Any) -> Given:
    """The options as parts take them."""
    return Given(chosen.full, chosen.results, chosen.inspect_python)


def main() -> int:
    """Run one part. Exit status 3: left out, with the reason as the last line of the error stream."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", choices=PARTS)
    options(parser)
    chosen = parser.parse_args()
    try:
        for figure in PARTS[chosen.part](given_of(chosen)):
            print(MARK + figure.line(), flush=True)
    except Missing as reason:
        print(f"missing: {reason}", flush=True)
        return 3
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
