"""Turn: who comes second waits, says so, and finds what the first one made."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import pytest

from harness.errors import UsageError
from harness.study import load_study
from methods.training import steps
from methods.training.studyrecipe import recipes
from methods.training.turn import turn

STUDY = """
study: turns
environments: {mock: {tasks: 3}}
actors: {weak: {plugin: simulated, params: {competence: weak}}}
training: {mock: {environment: mock, actor: weak, tasks: 6, most_points: 2}}
methods: {origin: }
seeds: [0]
throughput: {backend: sequential}
"""


def test_the_second_waits_and_a_killed_first_leaves_nothing(tmp_path: Path) -> None:
    hold = "import sys,time;from pathlib import Path;from methods.training.turn import turn\n"
    hold += "with turn(Path(sys.argv[1]), 'a', print):\n print('held', flush=True); time.sleep(60)"
    other = subprocess.Popen([sys.executable, "-c", hold, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    try:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        said: list[str] = []
        threading.Timer(0.5, other.kill).start()
        with turn(tmp_path, "web/comparator", said.append):
            assert other.wait(5) == -9
        assert len(said) == 1
        assert said[0].startswith("web/comparator: another process is making it")
    finally:
        other.kill()
    with turn(tmp_path, "web/comparator", said.append):
        assert len(said) == 1


def test_a_place_that_cannot_be_written_is_one_message(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with (
        pytest.raises(UsageError, match=r"web/comparator cannot be made there.*COTA_BENCH_CACHE"),
        turn(tmp_path / "file" / "x", "web/comparator", print),
    ):
        pass


def test_two_collections_of_one_recipe_make_it_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COTA_BENCH_CACHE", str(tmp_path / "cache"))
    (tmp_path / "turns.yaml").write_text(STUDY)
    one = recipes(load_study(tmp_path / "turns.yaml"))["mock"]
    said: list[str] = []
    made = []
    with turn(one.branches, "mock/branches", print):
        second = threading.Thread(target=lambda: made.append(steps.collected(one, said.append)))
        second.start()
        second.join(0.6)
        assert second.is_alive()
        assert [line for line in said if "waiting" in line]
    second.join(30)
    assert made[0].statuses == {"done": 6}
