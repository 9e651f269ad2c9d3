"""Kill a study again and again at random moments, and count what is lost: nothing may be.

    python -m benchmarks.faults [--kills 50] [--seed 0] [--backend loky]

A mock study is run in a process of its own.  At a random moment it is struck, and the same command is given again,
until the study is complete; then the next study begins, until there were enough strikes.  Strikes: kill -9 of the
parent, of one worker, of the whole process group, and a power cut (the group is killed and the ledger's last record is
cut at a random byte, as a disk may do to what was never synced).

After each strike every row that was durable before must still be there, the same (but for the one that a power cut
takes); a complete study must have the rows of an undisturbed one, and no row twice.  Times differ, nothing else may.
Exit status 1 when anything is lost, doubled or different.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.ledger import FILE, RETRYABLE, read
from tests.grid.samples import rows

KINDS = ("parent", "worker", "group", "power cut")
PLUGIN = """
import time
from methods.origin import Origin

class Slow(Origin):
    def review(self, state, proposal, desk):
        time.sleep(0.004)
        return super().review(state, proposal, desk)
"""
STUDY = """
study: struck
environments: {{mock: {{params: {{length: 3}}, tasks: {tasks}}}}}
actors:
  weak: {{plugin: simulated, params: {{competence: weak}}}}
  strong: {{plugin: simulated, params: {{competence: strong}}}}
methods: {{slow: {{plugin: "slow.py:Slow"}}}}
seeds: [0, 1]
throughput: {{backend: {backend}, workers: 2}}
"""
Rows = Mapping[tuple[str, str], Any]


@dataclass
class Tally:
    """What happened in a campaign."""

    strikes: Counter[str] = field(default_factory=Counter)
    missed: int = 0  # the study had ended before its strike came
    runs: int = 0
    studies: int = 0
    torn: int = 0
    lost: int = 0
    doubled: int = 0
    different: int = 0
    failures: list[str] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def clean(self) -> bool:
        """Whether nothing was lost, doubled or different, and every run that was left alone succeeded."""
        return not (self.lost or self.doubled or self.different or self.failures)

    def text(self) -> str:
        """The count as a table and one line."""
        total = sum(self.strikes.values())
        lines = ["| strike | times |", "| --- | --- |", *(f"| {kind} | {self.strikes[kind]} |" for kind in KINDS)]
        each = self.seconds / max(1, total)
        lines += [
            "",
            f"{total} strikes in {self.runs} runs of {self.studies} studies; {self.seconds:.0f} s, "
            f"{each:.1f} s a strike; {self.torn} torn records set aside",
            f"rows lost {self.lost}, doubled {self.doubled}, different {self.different}",
            *self.failures,
        ]
        return "\n".join(lines)


class Campaign:
    """Strikes until there were `kills` of them, in studies of `tasks` x 4 episodes below `root`."""

    def __init__(self, root: Path, kills: int, seed: int = 0, backend: str = "loky", tasks: int = 30) -> None:
        self.root, self.kills, self.random = root, kills, random.Random(seed)
        self.tally = Tally()
        self.study = root / "study.yaml"
        self.study.write_text(STUDY.format(tasks=tasks, backend=backend))
        (root / "slow.py").write_text(PLUGIN)
        self._span = (0.0, 0.0)  # seconds until the first row, and the end, of an undisturbed run
        self._kinds = KINDS if backend == "loky" else ("parent", "power cut")

    def run(self) -> Tally:
        """Everything; the undisturbed study first."""
        began = time.monotonic()
        process = self._start(self.root / "undisturbed")
        while process.poll() is None and not _finished(self.root / "undisturbed" / "struck"):
            time.sleep(0.02)
        self._span = (time.monotonic() - began, 0.0)
        self._finish(process)
        self._span = (self._span[0], time.monotonic() - began)
        wanted = rows(self.root / "undisturbed" / "struck")
        began = time.monotonic()
        while sum(self.tally.strikes.values()) < self.kills:
            self.tally.studies += 1
            place = self.root / str(self.tally.studies)
            while not self._once(place):
                pass
            self._doubled(place / "struck")
            self._compare(wanted, rows(place / "struck"))
            self.tally.torn += len(list((place / "struck").glob("ledger.torn-*")))
            shutil.rmtree(place)
        self.tally.seconds = time.monotonic() - began
        return self.tally

    def _start(self, place: Path) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "tests.grid.go", str(self.study), str(place)]
        pipe = subprocess.PIPE
        return subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, start_new_session=True)

    def _finish(self, process: subprocess.Popen[str]) -> None:
        _, err = process.communicate(timeout=300)
        if process.returncode != 0:
            self.tally.failures.append(f"a run that was left alone ended with {process.returncode}: {err[-2000:]}")

    def _moment(self) -> float:
        """Seconds after a start: mostly while episodes run, sometimes while the processes start."""
        first, last = self._span
        return self.random.uniform(first, last) if self.random.random() < 0.75 else self.random.uniform(0.2, first)

    def _once(self, place: Path) -> bool:
        """One run; whether the study is complete after it."""
        self.tally.runs += 1
        process = self._start(place)
        if sum(self.tally.strikes.values()) >= self.kills:
            self._finish(process)
            return True
        try:
            process.wait(self._moment())
        except subprocess.TimeoutExpired:
            return self._strike(process, place / "struck", self.random.choice(self._kinds))
        self.tally.missed += 1
        self._finish(process)
        return True

    def _strike(self, process: subprocess.Popen[str], folder: Path, kind: str) -> bool:
        before = _finished(folder)
        if kind == "worker":
            workers = _workers(process.pid)
            if workers:
                _kill(self.random.choice(workers))
                self.tally.strikes[kind] += 1
            else:
                self.tally.missed += 1  # none was started yet
            self._finish(process)
            self._kept(before, _finished(folder))
            return True
        os.kill(process.pid, signal.SIGKILL) if kind == "parent" else os.killpg(process.pid, signal.SIGKILL)
        process.communicate(timeout=60)
        self.tally.strikes[kind] += 1
        after = _finished(folder)
        self._kept(before, after)
        if kind == "power cut" and after:
            path, last = folder / FILE, read(folder).frames[-1]
            with path.open("r+b") as file:
                file.truncate(last.offset + self.random.randrange(last.size))
            gone = after - _finished(folder)
            if gone - {(last.head["cell"], last.head["task_id"])}:
                self.tally.lost += len(gone)
        return False

    def _kept(self, before: set[tuple[str, str]], after: set[tuple[str, str]]) -> None:
        self.tally.lost += len(before - after)

    def _compare(self, wanted: Rows, found: Rows) -> None:
        self.tally.lost += len(wanted.keys() - found.keys())
        self.tally.different += sum(found[key] != wanted[key] for key in wanted.keys() & found.keys())
        self.tally.different += len(found.keys() - wanted.keys())

    def _doubled(self, folder: Path) -> None:
        seen = Counter(
            (frame.head["cell"], frame.head["task_id"])
            for frame in read(folder).frames
            if frame.head["status"] not in RETRYABLE
        )
        self.tally.doubled += sum(count > 1 for count in seen.values())


def _finished(folder: Path) -> set[tuple[str, str]]:
    return {
        (frame.head["cell"], frame.head["task_id"])
        for frame in read(folder).frames
        if frame.head["status"] not in RETRYABLE
    }


def _workers(pid: int) -> list[int]:
    import psutil

    try:
        found = psutil.Process(pid).children()
        return [child.pid for child in found if "popen_loky_posix" in " ".join(child.cmdline())]
    except psutil.Error:
        return []


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def main() -> int:
    """Strike and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--backend", choices=["loky", "threading", "sequential"], default="loky")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        tally = Campaign(Path(name), given.kills, given.seed, given.backend).run()
    print(tally.text())
    return 0 if tally.clean else 1


if __name__ == "__main__":
    raise SystemExit(main())
