"""A long run does not grow with what it has done: what a row leaves behind is less than what its job took."""

from __future__ import annotations

import gc
import io
import pickle
import tracemalloc
from pathlib import Path

from benchmarks.grid import made
from harness.ledger import Ledger, read_heads
from harness.records import Episode
from harness.run import run_study
from harness.worker import Job, run_job

FIRST, LAST = 100, 590


def through_a_pipe(job: Job) -> Episode:
    """As a worker process gives it: no string is shared with the parent."""
    episode: Episode = pickle.loads(pickle.dumps(run_job(job)))
    return episode


def test_the_parent_stays_flat(tmp_path: Path) -> None:
    sizes: list[int] = []

    def seen(episode: Episode) -> None:
        sizes.append(0)
        if len(sizes) in (FIRST, LAST):
            gc.collect()
            sizes[-1] = tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    try:
        study = made("sequential", 300, 3, 1)
        summary = run_study(study, tmp_path, run=through_a_pipe, observers=[seen], live=False, stream=io.StringIO())
    finally:
        tracemalloc.stop()
    assert (summary.ran, summary.exit_status) == (600, 0)
    growth = (sizes[LAST - 1] - sizes[FIRST - 1]) / (LAST - FIRST)
    assert growth < 150, f"{growth:.0f} bytes an episode"


def test_a_reopened_ledger_remembers_what_a_run_needs_and_shares_it(tmp_path: Path) -> None:
    study = made("sequential", 30, 3, 1)
    run_study(study, tmp_path, live=False, stream=io.StringIO())
    folder = tmp_path / study.study
    whole = read_heads(folder)
    with Ledger(folder) as ledger:
        kept = ledger.heads()
    assert kept.keys() == whole.keys()
    assert all(whole[key] | head == whole[key] for key, head in kept.items())
    assert len({id(head) for head in kept.values()}) == 2  # two seeds, everything else alike
