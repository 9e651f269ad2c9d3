"""Grid, ledger and scheduler by themselves: mock environment and actor, so that all the time is the harness's.

    python -m benchmarks.grid [--episodes 1000] [--steps 10] [--workers 2]
    python -m benchmarks.grid --memory [--workers 2]          peak memory after 1,000, 5,000 and 10,000 episodes
    python -m benchmarks.grid --ledger results/quickstart     bytes an episode takes, by environment

Prints a Markdown table: a plain loop over `run_episode` as the floor, then each backend with a durable ledger, then
what an invocation with nothing to do costs, and the ledger's own figures.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from harness.codec import to_json
from harness.frames import pack
from harness.grid import plan_cells
from harness.ledger import FILE, Ledger, head_of, read, read_episodes, read_heads
from harness.run import jobs_left, run_study
from harness.study import Study, parse_study
from harness.worker import run_job
from harness.yamlfile import loads

STUDY = """
study: grid-{backend}
environments: {{mock: {{params: {{length: {steps}, size: {tasks}}}, tasks: {tasks}, max_steps: 100}}}}
actors: {{mock: {{}}}}
methods: {{origin: {{}}}}
seeds: [0, 1]
policy: {{call_timeout_s: null, episode_timeout_s: null}}
throughput: {{backend: {backend}, workers: {workers}}}
"""


def timed(work: Callable[[], object]) -> float:
    """Wall seconds of a call."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def made(backend: str, tasks: int, steps: int, workers: int) -> Study:
    """The study for one backend."""
    return parse_study(loads(STUDY.format(backend=backend, tasks=tasks, steps=steps, workers=workers), "benchmark"))


def row(what: str, seconds: float, episodes: int, steps: int) -> None:
    """One line of the table."""
    each = seconds / episodes * 1e3
    print(f"| {what} | {seconds:.2f} s | {each:.2f} ms | {each / steps:.3f} ms |", flush=True)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--episodes", type=int, default=1000)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--memory", action="store_true")
    parser.add_argument("--ledger", type=Path)
    given = parser.parse_args()
    if given.ledger is not None:
        sizes(given.ledger)
    elif given.memory:
        memory(given.steps, given.workers)
    else:
        speed(given)


def speed(given: argparse.Namespace) -> None:
    """The table of times."""
    tasks, episodes = given.episodes // 2, given.episodes // 2 * 2
    print(f"{episodes} episodes of {given.steps} steps\n")
    print("| what | total | an episode | a step |\n| --- | --- | --- | --- |")
    study = made("sequential", tasks, given.steps, 1)
    jobs = list(jobs_left(study, plan_cells(study), {}))
    row("plain loop, nothing stored", timed(lambda: [run_job(job) for job in jobs]), episodes, given.steps)
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        for backend in ("sequential", "threading", "loky"):
            study = made(backend, tasks, given.steps, given.workers)
            took = timed(lambda study=study: run_study(study, root, live=False))  # type: ignore[misc]
            row(f"{backend}, durable ledger", took, episodes, given.steps)
        folder = root / study.study
        again = timed(lambda: run_study(study, root, live=False))
        ledger_figures(folder, episodes, again)
        took = run_again(root, study, tasks, given.steps, given.workers)
        print(f"nothing to do, a fresh process from start to end: {took:.2f} s")


def ledger_times(folder: Path) -> dict[str, float]:
    """Seconds to encode and pack one record, to append one durably, to read all headers and all bodies; bytes each."""
    items = list(read_episodes(folder))
    some = items[:200]
    packing = timed(lambda: [pack(head_of(item), to_json(item)) for item in some]) / len(some)
    with tempfile.TemporaryDirectory(dir=folder) as name, Ledger(Path(name)) as ledger:
        began = time.perf_counter()
        for item in some:
            ledger.append(item)
        appending = (time.perf_counter() - began) / len(some)
    return {
        "pack": packing,
        "append": appending,
        "heads": timed(lambda: read_heads(folder)),
        "bodies": timed(lambda: list(read_episodes(folder))),
        "bytes": (folder / FILE).stat().st_size / len(items),
    }


def ledger_figures(folder: Path, episodes: int, again: float) -> None:
    """Sizes and times of the ledger."""
    took = ledger_times(folder)
    print(f"\nnothing to do, {episodes} finished episodes: {again:.3f} s")
    print(f"statuses: {took['heads']:.3f} s, all bodies: {took['bodies']:.3f} s")
    print(f"append: {took['append'] * 1e3:.2f} ms, of which packing {took['pack'] * 1e3:.2f} ms (the rest is fsync)")
    print(f"size: {took['bytes']:.0f} bytes a record")


def run_again(root: Path, study: Study, tasks: int, steps: int, workers: int) -> float:
    """The same in a fresh process, imports included: wall seconds."""
    path = root / "again.yaml"
    path.write_text(STUDY.format(backend=study.throughput.backend, tasks=tasks, steps=steps, workers=workers))
    code = (
        "import sys, pathlib; from harness.run import run_study; from harness.study import load_study;"
        "print(run_study(load_study(sys.argv[1]), pathlib.Path(sys.argv[2]), live=False).ran)"
    )
    return timed(lambda: subprocess.run([sys.executable, "-c", code, path, root], check=True, capture_output=True))


def memory(steps: int, workers: int) -> None:
    """Memory of this process and of its largest worker while one study runs: it must not grow with what is done."""
    print("| backend | episodes | this process, MB (peak) | largest worker, MB (peak) |\n| --- | --- | --- | --- |")
    for backend in ("sequential", "loky"):
        for done, parent, worker in peaks(backend, steps, workers):
            print(f"| {backend} | {done:.0f} | {parent:.1f} | {worker:.1f} |", flush=True)
    print("\n(peak is VmHWM)")


def peaks(backend: str, steps: int, workers: int) -> list[tuple[float, float, float]]:
    """(episodes, peak MB of the parent, of its largest worker) as one study of a fresh process goes on."""
    code = MEMORY.format(backend=backend, tasks=MARKS[-1] // 2, steps=steps, workers=workers, marks=MARKS)
    done = subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.PIPE, text=True)
    found = [line.split() for line in done.stdout.splitlines()]
    return [(float(a), float(b), float(c)) for a, b, c in found]


MARKS = (1000, 5000, 10_000)
MEMORY = """
import pathlib, sys, tempfile
import psutil
from benchmarks.grid import made
from harness.run import run_study

def peak(pid):
    try:
        text = pathlib.Path(f"/proc/{{pid}}/status").read_text()
    except OSError:
        return 0.0
    return next((int(line.split()[1]) / 1024 for line in text.splitlines() if line.startswith("VmHWM")), 0.0)

done = 0
def seen(episode):
    global done
    done += 1
    if done in {marks!r}:
        me = psutil.Process()
        workers = [p.pid for p in me.children() if "popen_loky" in " ".join(p.cmdline())]
        most = max(map(peak, workers), default=0.0)
        print(done, peak(me.pid), most, flush=True)

with tempfile.TemporaryDirectory() as name:
    study = made({backend!r}, {tasks}, {steps}, {workers})
    run_study(study, pathlib.Path(name), live=False, observers=[seen], stream=open("/dev/null", "w"))
"""


def sizes(folder: Path) -> None:
    """Bytes of the records of a finished study, compressed as they are stored."""
    by: dict[str, list[tuple[int, int]]] = {}
    for frame in read(folder).frames:
        for label in (frame.head["environment"], "all"):
            by.setdefault(label, []).append((frame.size, frame.head["steps"]))
    print("| environment | episodes | steps each | bytes each | largest |\n| --- | --- | --- | --- | --- |")
    for label, found in sorted(by.items()):
        count, total = len(found), sum(size for size, _ in found)
        steps = sum(steps for _, steps in found) / count
        print(f"| {label} | {count} | {steps:.1f} | {total / count:.0f} | {max(found)[0]} |")


if __name__ == "__main__":
    main()
