"""Time limits and the clock that knows whose time it is."""

from __future__ import annotations

import threading
import time

import pytest

from harness.guard import CallTimeout, Clock, Guard, give_up_at


def test_results_and_errors_pass_through() -> None:
    guard = Guard()
    assert guard.call(lambda: 3, 1.0) == 3
    with pytest.raises(ZeroDivisionError):
        guard.call(lambda: 1 // 0, 1.0)
    assert guard.call(lambda: threading.current_thread().name) == threading.current_thread().name


def test_a_hanging_call_is_abandoned_and_the_next_one_works() -> None:
    guard = Guard()
    with pytest.raises(CallTimeout):
        guard.call(lambda: time.sleep(0.5), 0.05)
    assert guard.call(lambda: "next", 0.5) == "next"
    with pytest.raises(CallTimeout):
        guard.call(lambda: 1, 0.0)


def test_a_call_that_knows_its_limit_ends_before_it_is_abandoned() -> None:
    now = time.monotonic()
    assert give_up_at(None, None) is None
    for deadline, call_s, first in ((None, 100.0, 100.0), (now + 50, 100.0, 50.0), (now + 500, 100.0, 100.0)):
        end = give_up_at(deadline, call_s)
        assert end is not None
        assert now + first - 1.0 <= end <= time.monotonic() + first - 1.0
    short = give_up_at(None, 1.0)
    assert short is not None
    assert now + 0.9 <= short <= time.monotonic() + 0.9


def test_nested_roles_add_up() -> None:
    clock = Clock()
    began = time.perf_counter()
    with clock.role("advisor"):
        time.sleep(0.02)
        with clock.role("actor"):
            time.sleep(0.03)
        time.sleep(0.01)
    whole = time.perf_counter() - began
    seconds = clock.take()
    assert seconds["actor"] >= 0.03
    assert seconds["advisor"] >= 0.03
    assert sum(seconds.values()) == pytest.approx(whole, abs=2e-3)
    assert clock.take() == {}


def test_an_abandoned_role_does_not_spoil_the_clock() -> None:
    clock = Clock()
    inner = clock.role("actor")
    with clock.role("advisor"):
        inner.__enter__()
    inner.__exit__(None, None, None)
    with clock.role("environment"):
        time.sleep(0.01)
    assert clock.take()["environment"] >= 0.01
