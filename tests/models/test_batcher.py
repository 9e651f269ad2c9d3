"""The batcher: who waits together is answered together, errors reach their cause, deadlines are kept."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from harness.models.batcher import Batcher


class Worker:
    """Doubles numbers, one batch at a time; the first batch waits for `go`."""

    def __init__(self) -> None:
        self.batches: list[list[int]] = []
        self.busy = 0
        self.go = threading.Event()

    def __call__(self, asks: list[int]) -> list[int]:
        self.busy += 1
        assert self.busy == 1
        self.batches.append(list(asks))
        if len(self.batches) == 1:
            assert self.go.wait(10)
        self.busy -= 1
        if any(ask < 0 for ask in asks):
            raise ValueError(f"no doubling of {min(asks)}")
        return [2 * ask for ask in asks]


def waiting(batcher: Batcher[int, int], count: int) -> None:
    """Until `count` requests queue behind the running batch."""
    end = time.monotonic() + 10
    while len(batcher._queue) < count:
        assert time.monotonic() < end
        time.sleep(0.001)


def outcome(batcher: Batcher[int, int], ask: int, deadline: float | None = None) -> object:
    try:
        return batcher(ask, deadline)[0]
    except Exception as error:
        return error


def test_who_waits_together_is_answered_together() -> None:
    worker = Worker()
    batcher = Batcher(worker, lambda asks: len(asks) <= 4)
    with ThreadPoolExecutor(12) as pool:
        first = pool.submit(batcher, 100)
        while not worker.batches:
            time.sleep(0.001)
        rest = [pool.submit(batcher, number) for number in range(10)]
        waiting(batcher, 10)
        worker.go.set()
        assert first.result(10)[0] == 200
        assert [one.result(10)[0] for one in rest] == [2 * number for number in range(10)]
        assert all(one.result()[1] > 0 for one in rest)  # seconds queued
    assert sorted(len(batch) for batch in worker.batches) == [1, 2, 4, 4]
    assert batcher.sizes == {1: 1, 4: 2, 2: 1}
    assert batcher(7)[0] == 14  # alone: at once


def test_an_error_is_raised_where_it_was_caused() -> None:
    worker = Worker()
    batcher = Batcher(worker, lambda asks: True)
    with ThreadPoolExecutor(6) as pool:
        first = pool.submit(outcome, batcher, 1)
        while not worker.batches:
            time.sleep(0.001)
        rest = [pool.submit(outcome, batcher, number) for number in (2, -3, 4, -5)]
        waiting(batcher, 4)
        worker.go.set()
        found = [one.result(10) for one in rest]
    assert first.result() == 2
    assert (found[0], found[2]) == (4, 8)
    assert [str(found[i]) for i in (1, 3)] == ["no doubling of -3", "no doubling of -5"]
    assert batcher(5)[0] == 10


def test_a_deadline_is_kept_in_the_queue_and_behind_a_running_batch() -> None:
    worker = Worker()
    batcher = Batcher(worker, lambda asks: True)
    with ThreadPoolExecutor(3) as pool:
        first = pool.submit(batcher, 1)
        while not worker.batches:
            time.sleep(0.001)
        began = time.monotonic()
        late = pool.submit(outcome, batcher, 2, time.monotonic() + 0.05)
        assert isinstance(late.result(10), TimeoutError)
        assert time.monotonic() - began < 5
        patient = pool.submit(batcher, 3, time.monotonic() + 60)
        worker.go.set()
        assert (first.result(10)[0], patient.result(10)[0]) == (2, 6)
    assert [2] not in worker.batches  # nobody worked for who had left
    with pytest.raises(TimeoutError):
        batcher(4, time.monotonic() - 1)
    assert batcher(4)[0] == 8


def test_an_interrupted_leader_leaves_nobody_waiting() -> None:
    class Interrupted(Worker):
        def __call__(self, asks: list[int]) -> list[int]:
            if len(asks) > 1:
                raise KeyboardInterrupt
            return super().__call__(asks)

    worker = Interrupted()
    batcher = Batcher(worker, lambda asks: True)
    with ThreadPoolExecutor(3) as pool:
        first = pool.submit(batcher, 1)
        while not worker.batches:
            time.sleep(0.001)
        rest = [pool.submit(batcher, number) for number in (2, 3)]
        waiting(batcher, 2)
        worker.go.set()
        assert first.result(10)[0] == 2
        errors = {type(one.exception(10)) for one in rest}
    assert errors == {KeyboardInterrupt, RuntimeError}
    assert batcher(4)[0] == 8
