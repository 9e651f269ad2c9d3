"""Torch threads: a share of the cores for each worker, and what was before afterwards."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from harness.models import threads
from harness.models.threads import cap_threads


@pytest.fixture
def cores(monkeypatch):
    joblib = pytest.importorskip("joblib")
    monkeypatch.setattr(joblib, "cpu_count", lambda: 8)
    monkeypatch.delenv(threads.VARIABLE, raising=False)


@pytest.mark.models
@pytest.mark.parametrize(("workers", "share"), [(None, 8), (1, 8), (2, 4), (3, 2), (8, 1), (100, 1)])
def test_cores_are_shared(cores, workers, share) -> None:
    torch = pytest.importorskip("torch")
    before = torch.get_num_threads()
    torch.set_num_threads(8)
    try:
        with cap_threads(workers) as given, ThreadPoolExecutor(1) as pool:
            assert given == share
            assert torch.get_num_threads() == share
            assert pool.submit(torch.get_num_threads).result() == share
        assert torch.get_num_threads() == 8
        assert threads.VARIABLE not in os.environ
    finally:
        torch.set_num_threads(before)


def test_a_users_smaller_number_stays(cores, monkeypatch) -> None:
    monkeypatch.setattr(threads.sys, "modules", {})  # torch not loaded
    monkeypatch.setenv(threads.VARIABLE, "3")
    with cap_threads(2) as given:
        assert given == 3
    with cap_threads(4) as given:
        assert given == 2
        assert os.environ[threads.VARIABLE] == "2"
    assert os.environ[threads.VARIABLE] == "3"


@pytest.mark.models
def test_torch_loaded_inside_the_block_gets_the_share() -> None:
    pytest.importorskip("torch")
    text = (
        "import joblib; joblib.cpu_count = lambda: 4\n"
        "from harness.models.threads import cap_threads\n"
        "with cap_threads(2):\n import torch; print(torch.get_num_threads())\n"
        "print(torch.get_num_threads())"
    )
    clean = {key: value for key, value in os.environ.items() if key != threads.VARIABLE}
    found = subprocess.run([sys.executable, "-c", text], env=clean, capture_output=True, text=True, check=True)
    assert found.stdout.split() == ["2", "4"]
