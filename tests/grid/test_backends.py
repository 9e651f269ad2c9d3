"""Durable before the slot takes new work: at no moment are more jobs begun than settled plus slots."""

from __future__ import annotations

import os
import signal
import time
from functools import partial
from pathlib import Path

import pytest

from harness.backends import stream


def mark(folder: str, number: int) -> tuple[int, int, int]:
    """Begin (one byte, atomic), then look at how many were settled; slow enough for the others to overtake."""
    handle = os.open(Path(folder, "begun"), os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(handle, b".")
    os.close(handle)
    settled = (
        Path(folder, "settled").stat().st_size
    )  # before `begun`: others may begin in between, none may settle late
    begun = Path(folder, "begun").stat().st_size
    time.sleep(0.002 * (number % 3))
    return number, begun, settled


@pytest.mark.parametrize(("backend", "workers"), [("sequential", 1), ("threading", 3), ("loky", 2)])
def test_a_slot_waits_for_its_result_to_be_durable(tmp_path, backend, workers):
    (tmp_path / "settled").touch()
    settled = []

    def settle(result):
        time.sleep(0.01)  # a slow disk
        with (tmp_path / "settled").open("ab") as file:
            file.write(b".")
        settled.append(result[0])

    work = partial(mark, str(tmp_path))
    found = list(stream(work, range(40), backend=backend, workers=workers, settle=settle, stopped=lambda: False))
    assert sorted(settled) == sorted(number for number, _, _ in found) == list(range(40))
    assert all(begun - done <= workers for _, begun, done in found)
    assert backend == "sequential" or any(begun - done > 1 for _, begun, done in found)


@pytest.mark.parametrize("backend", ["sequential", "threading", "loky"])
def test_what_settling_raises_ends_the_stream(backend):
    def settle(number):
        if number == 5:
            raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        list(stream(abs, range(100), backend=backend, workers=2, settle=settle, stopped=lambda: False))


@pytest.mark.parametrize("backend", ["sequential", "threading", "loky"])
def test_nothing_is_started_after_a_stop(backend):
    """The jobs here do not end by themselves, so that joblib asks for all of them."""
    settled = []
    found = list(
        stream(abs, range(1000), backend=backend, workers=4, settle=settled.append, stopped=lambda: len(settled) >= 10)
    )
    assert sorted(found) == sorted(settled)
    assert 10 <= len(settled) <= 14


def blocked(_: int) -> set[int]:
    return set(signal.pthread_sigmask(signal.SIG_BLOCK, ()))


def test_workers_are_born_deaf_to_ctrl_c_and_this_process_is_not():
    masks = list(stream(blocked, range(6), backend="loky", workers=2, settle=lambda r: None, stopped=lambda: False))
    assert all(signal.SIGINT in mask for mask in masks)
    assert signal.SIGINT not in blocked(0)
