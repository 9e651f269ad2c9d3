"""The benchmark suite: its table says what was measured, what was missed, and what is not there and why."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.__main__ import run
from benchmarks.figures import Figure, table
from benchmarks.parts import PARTS

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize(
    ("value", "most", "least", "met"),
    [(1, None, None, None), (1, 1, None, True), (1.1, 1, None, False), (90, None, 90, True), (89.9, None, 90, False)],
)
def test_a_target_is_met_or_not(value: float, most: float | None, least: float | None, met: bool | None) -> None:
    assert Figure("x", value, "s", "wall", most, least).met is met


def test_the_table_says_what_is_missed_and_what_is_left_out() -> None:
    text = table([Figure("slow", 1234.5, "ms", "CPU", 1)], [("judge", "not installed: torch")], "2 cores")
    assert "| slow | 1,234 | ms | CPU | at most 1 | **no** |" in text
    assert "- judge: not installed: torch" in text


def test_a_part_that_fails_is_named_and_one_that_cannot_run_says_why() -> None:
    figures, reason, failed = run("prefix-cache", [])
    assert (figures, failed) == ([], False)
    assert "vLLM" in reason
    figures, reason, failed = run("nonsense", [])
    assert (figures, failed) == ([], True)
    assert reason.startswith("failed with status 2")


def test_the_one_command(tmp_path: Path) -> None:
    out = tmp_path / "figures.md"
    command = [sys.executable, "-m", "benchmarks", "--only", "loop", "prefix-cache", "--out", str(out)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == out.read_text(encoding="utf-8")
    assert "load average at start" in done.stdout
    assert "| overhead a step" in done.stdout
    for name in PARTS.keys() - {"loop"}:
        assert f"- {name}: " in done.stdout
    assert "[1/2] loop" in done.stderr
