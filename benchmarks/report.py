"""How long a full report takes, and how much memory: a synthetic ledger, each step timed in a process of its own.

python -m benchmarks.report                      63 cells x 500 episodes
python -m benchmarks.report --cells 12 --tasks 50
python -m benchmarks.report --results results/quickstart      a study that was run
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

METHODS = ("origin", "self-reflection", "cota", "agentprm", "absq-constructive", "pairwise-forced", "asym-ac")
ACTORS = ("weak", "medium", "strong")


def build(folder: Path, cells: int, tasks: int, steps: int) -> None:
    """A ledger of synthetic episodes: seven methods, three actors, three environments, then more seeds."""
    from tests.synthetic import episodes_of, planned_cells, write_ledger, write_plan

    seeds = range(-(-cells // (len(METHODS) * len(ACTORS) * 3)))
    plan = planned_cells("bench", METHODS, ACTORS, seeds=seeds, tasks=tasks)[:cells]
    write_plan(folder, plan)
    write_ledger(folder, episodes_of(plan, steps=steps))


def report(folder: Path, out: Path) -> dict[str, float]:
    """One full report, timed by part; peak memory in MB."""
    from reports.frames import open_source
    from reports.write import drawings, report_files, write_report

    began = time.perf_counter()
    source = open_source(folder)
    episodes = len(source.rows)
    read = time.perf_counter()
    report_files(source, against="paper")
    made = time.perf_counter()
    write_report(source, out, against="paper")
    ended = time.perf_counter()
    return {
        "episodes": episodes,
        "read_s": read - began,
        "tables_s": made - read,
        "figures_and_files_s": ended - made,
        "total_s": ended - began,
        "cpu_s": time.process_time(),
        "figures": len(drawings(source)),
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def main() -> None:
    """Build, measure in a fresh process, print a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cells", type=int, default=63)
    parser.add_argument("--tasks", type=int, default=500)
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--results", type=Path, help="a results folder to report on in place of a synthetic one")
    parser.add_argument("--measure", nargs=2, type=Path, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.measure:
        print(json.dumps(report(*chosen.measure)))
        return
    found = measured(chosen.cells, chosen.tasks, chosen.steps, chosen.results)
    print(f"| {' | '.join(found)} |\n| {' | '.join('---:' for _ in found)} |")
    print(f"| {' | '.join(f'{value:.5g}' for value in found.values())} |")


def measured(cells: int, tasks: int, steps: int, results: Path | None = None) -> dict[str, float]:
    """What `report` gives of a synthetic ledger (or of a study that was run), from a fresh process; its whole time."""
    with tempfile.TemporaryDirectory(prefix="cota-bench-") as name:
        folder = results or Path(name) / "bench"
        if results is None:
            print(f"building {cells} cells x {tasks} episodes of {steps} steps", file=sys.stderr)
            build(folder, cells, tasks, steps)
        command = [sys.executable, "-m", "benchmarks.report", "--measure", str(folder), str(Path(name) / "report")]
        began = time.perf_counter()
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        whole = time.perf_counter() - began
    found: dict[str, float] = json.loads(done.stdout)
    return found | {"process_s": whole}


if __name__ == "__main__":
    main()
