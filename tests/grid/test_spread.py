"""Episodes over several processes of many threads; faults of the processes are in `test_faults`."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from harness import spread
from harness.cli.run import adjusted
from harness.errors import UsageError
from harness.models import limiter
from harness.models.threads import cores
from harness.run import run_study
from harness.slot import Done, Ticket
from harness.spread import EACH, processes_for
from harness.study import Throughput
from tests.grid.samples import BASE, episode, rows, study
from tests.models.mock_endpoint import Behaviour, MockEndpoint

SEQUENTIAL = "backend: sequential"


def test_the_rows_are_those_of_any_other_backend(tmp_path: Path) -> None:
    several = study(BASE, (SEQUENTIAL, "backend: threading, workers: 7, processes: 3"))
    summary = run_study(several, tmp_path / "spread", live=False)
    assert (summary.exit_status, summary.ran) == (0, 40)
    run_study(study(), tmp_path / "plain", live=False)
    assert rows(tmp_path / "spread" / "small") == rows(tmp_path / "plain" / "small")


def test_calls_are_in_flight_in_all_processes_at_once(tmp_path: Path) -> None:
    actor = "{plugin: chat, params: {base_url: URL, model: m}}"
    with MockEndpoint(Behaviour(0.2)) as server:
        changes = (
            ("{weak: {plugin: t-random}, strong: {plugin: t-random, params: {skill: 0.9}}}", f"{{chat: {actor}}}"),
            ("  judged: {plugin: t-judged, comparator: pair, candidates: pool}\n", ""),
            ("URL", server.url),
            ("tasks: 5", "tasks: 12"),
            ("seeds: [0, 1]", "seeds: [0]"),
            (SEQUENTIAL, "backend: threading, workers: 12, processes: 3"),
        )
        assert run_study(study(BASE, *changes), tmp_path, live=False).exit_status == 0
        assert server.counts["peak"] > 4, "one process alone has four threads"


SCRIPT = """
from pathlib import Path
from harness.run import run_study
from tests.grid.samples import BASE, study
found = study(BASE, ("backend: sequential", "backend: threading, workers: 2, processes: 2"))
run_study(found, Path({root!r}), live=False{more})
"""


@pytest.mark.parametrize("more", ["", ", run=lambda job: None"])
def test_processes_that_cannot_start_are_one_message_and_no_failed_episode(tmp_path: Path, more: str) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT.format(root=str(tmp_path), more=more))
    ran = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=60, check=False)
    assert ran.returncode == 1
    assert ran.stderr.rstrip().rpartition("\n")[2].startswith("harness.errors.UsageError: ")
    assert "processes: 1" in ran.stderr
    assert not rows(tmp_path / "small")


def test_a_death_is_noticed_though_a_child_holds_the_pipe(tmp_path: Path) -> None:
    taken: set[int] = set()
    found = list(
        spread.stream(
            Dies(str(tmp_path)),
            (Ticket(number, None) for number in range(1, 7)),  # type: ignore[arg-type]
            workers=4,
            processes=2,
            settle=lambda _done: None,
            stopped=lambda: False,
            lost=lambda numbers, _error: taken.update(numbers),
        )
    )
    (orphan,) = [int(line) for line in (tmp_path / "orphan").read_text().split()]
    os.kill(orphan, signal.SIGKILL)
    assert 3 in taken
    assert {done.number for done in found} | taken == set(range(1, 7))
    assert not {done.number for done in found} & taken


class Dies:
    """Ticket 3 leaves a child behind that has all of its files, and dies."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def __call__(self, ticket: Ticket) -> Done:
        if ticket.number == 3:
            child = os.fork()
            if child == 0:
                time.sleep(60)
                os._exit(0)
            Path(self.folder, "orphan").write_text(str(child))
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(0.05)
        return Done(ticket.number, episode(f"test-{ticket.number}"))


def test_how_many_processes() -> None:
    assert processes_for(Throughput(backend="threading", workers=8), 8) == 1
    assert processes_for(Throughput(backend="threading", workers=8, processes=3), 8) == 3
    assert processes_for(Throughput(backend="threading", workers=2, processes=3), 2) == 2, "none without a thread"
    auto = Throughput(backend="threading", processes="auto")
    assert processes_for(auto, EACH) == 1
    assert processes_for(auto, 100 * EACH) == min(cores(), 100)


def test_they_share_the_ceiling_of_an_endpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limiter, "_processes", 1)
    limiter.share_endpoints(4)
    assert limiter.Limiter(ceiling=64).ceiling == 16
    assert limiter.Limiter(ceiling=2).ceiling == 1


@pytest.mark.parametrize("backend", ["loky", "sequential"])
def test_processes_without_threads_are_a_mistake(backend: str) -> None:
    with pytest.raises(UsageError, match=r"(?s)study.yaml:\d+.*processes.*backend: threading"):
        study(BASE, (SEQUENTIAL, f"backend: {backend}, processes: 2"))
    with pytest.raises(UsageError, match=f"--processes .* not {backend}"):
        adjusted(study(BASE, (SEQUENTIAL, f"backend: {backend}")), processes=2)
    with pytest.raises(UsageError, match="--processes must be at least 1"):
        adjusted(study(), processes=0)
