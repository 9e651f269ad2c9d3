"""Episodes over several processes of many threads; faults of the processes are in `test_faults`."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.cli.run import adjusted
from harness.errors import UsageError
from harness.models import limiter
from harness.models.threads import cores
from harness.run import run_study
from harness.spread import EACH, processes_for
from harness.study import Throughput
from tests.grid.samples import BASE, rows, study
from tests.models.mock_endpoint import Behaviour, MockEndpoint

SEQUENTIAL = "backend: sequential"


def test_the_rows_are_those_of_any_other_backend(tmp_path: Path) -> None:
    spread = study(BASE, (SEQUENTIAL, "backend: threading, workers: 7, processes: 3"))
    summary = run_study(spread, tmp_path / "spread", live=False)
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
