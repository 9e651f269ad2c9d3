"""A key in the environment is in nothing that a whole study leaves behind: ledger, tracking store, report, output."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

from harness.cli.app import add_commands, app
from tests.models.mock_endpoint import Behaviour, MockEndpoint

ROOT = Path(__file__).parents[2]
CANARY = "sk-canary-5d1e77"
STUDY = """
study: canary
environments: {{mock: {{tasks: 2, max_steps: 3}}}}
actors:
  chat: {{params: {{base_url: "{url}", model: m, key_env: CANARY_KEY, attempts: 20, timeout_s: 60, cache: true}}}}
judges:
  judge: {{plugin: served-comparator, params: {{base_url: "{url}", model: m, key_env: CANARY_KEY, timeout_s: 60}}}}
candidates: {{environment: }}
methods:
  origin:
  cota: {{comparator: judge, candidates: environment, params: {{k: 2, r: 1}}}}
seeds: [0]
throughput: {{backend: threading, workers: 2}}
"""
# What is made of a study afterwards, where this version has it: each is run, and all that it writes is searched too.
# `{0}`: the study file, `{1}`: the results folder, `{2}`: a folder for output.
AFTERWARDS = (
    ("sync", "{0} --results {1}"),
    ("report", "{0} --results {1}"),
    ("show", "{0} cota/chat/mock/0/test-0 --results {1} --full"),
    ("show", "{0} cota/chat/mock/0/test-0 --results {1} --json"),
    ("plan", "{0} --results {1}"),
    ("html", "{0} --results {1}"),
    ("trace", "{0} --results {1}"),
    ("doctor", ""),
)


@pytest.mark.skipif(importlib.util.find_spec("mlflow") is None, reason="needs the tracking extra")
@pytest.mark.parametrize("refusal", [None, (401, f"Incorrect API key provided: {CANARY}")])
def test_a_study_leaves_no_key_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refusal: tuple[int, str] | None
) -> None:
    monkeypatch.setenv("CANARY_KEY", CANARY)
    monkeypatch.setenv("COTA_BENCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    with MockEndpoint(Behaviour(0.0, 0.2, retry_after=0.01, stall_s=0.3, refusal=refusal)) as server:
        path = tmp_path / "canary.yaml"
        path.write_text(STUDY.format(url=server.url))
        command = [sys.executable, "-m", "harness.cli", "run", str(path), "--results", str(tmp_path / "results")]
        ran = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=300, check=False)
        assert server.authorizations[CANARY] > 0, ran.stderr[-2000:]
        said = _afterwards(path, tmp_path / "results", tmp_path / "out") if refusal is None else ""
    assert (ran.returncode == 0) == (refusal is None), ran.stderr[-2000:]
    assert "4 planned" in ran.stdout
    files = [file for file in tmp_path.rglob("*") if file.is_file()]
    assert any(file.suffix == ".db" for file in files), "no tracking store was written"
    for file in files:
        assert CANARY.encode() not in file.read_bytes(), file
    assert CANARY not in ran.stdout + ran.stderr + said


def _afterwards(path: Path, results: Path, out: Path) -> str:
    """Everything that the commands of `AFTERWARDS` say."""
    add_commands()
    known = {(c.name or (c.callback.__name__ if c.callback else "")).rstrip("_") for c in app.registered_commands}
    said = ""
    for name, options in AFTERWARDS:
        if name in known:
            words = [word.format(path, results, out) for word in options.split()]
            command = [sys.executable, "-m", "harness.cli", name, *words]
            ran = subprocess.run(command, capture_output=True, text=True, cwd=path.parent, timeout=300, check=False)
            assert ran.returncode == 0 or name in ("doctor", "html", "trace"), ran.stderr[-2000:]
            said += ran.stdout + ran.stderr
    return said
