"""A key in the environment is in nothing that a whole study leaves behind: ledger, tracking store, report, output."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

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
    assert (ran.returncode == 0) == (refusal is None), ran.stderr[-2000:]
    assert "4 planned" in ran.stdout
    files = [file for file in tmp_path.rglob("*") if file.is_file()]
    assert any(file.suffix == ".db" for file in files), "no tracking store was written"
    for file in files:
        assert CANARY.encode() not in file.read_bytes(), file
    assert CANARY not in ran.stdout + ran.stderr
