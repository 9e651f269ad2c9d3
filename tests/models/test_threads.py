"""A job's share of the cores."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from typing import Any

import pytest

from harness.models import threads

pytestmark = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="needs the models extra")


@pytest.fixture
def torch(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    import torch

    before = torch.get_num_threads()
    monkeypatch.setattr(threads, "cores", lambda: 8)
    monkeypatch.setattr(threads, "_jobs", 1)  # whatever other tests of this process have said
    torch.set_num_threads(8)
    yield torch
    torch.set_num_threads(before)


def test_a_model_takes_its_share_and_never_more_than_it_had(torch: Any) -> None:
    assert threads.cap() == 8
    for jobs, share in ((4, 2), (3, 2), (64, 1), (1, 1)):
        threads.share_cores(jobs)
        assert threads.cap() == share == torch.get_num_threads()
    threads.share_cores(64)
    assert threads.cap(5) == 5, "who names a number gets it"
