"""Time limits and the clock that knows whose time it is."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest

from harness.guard import Call, CallTimeout, Clock, Guard, Plan, ends_at, give_up_at, left_behind


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


def steps(seen: list[str], *works: Callable[[], object], limit: float | None = 30.0) -> Plan[list[object]]:
    """A plan that makes a list of what its calls give or raise, and notes which thread it runs on."""
    found: list[object] = []
    for work in works:
        seen.append(threading.current_thread().name + str(threading.get_ident()))
        try:
            found.append((yield Call(work, limit)))
        except Exception as error:
            found.append(type(error))
    return found


def raises(error: BaseException) -> None:
    raise error


def test_a_plan_runs_on_one_thread_with_its_calls() -> None:
    guard, seen = Guard(), []
    found = guard.run(steps(seen, threading.get_ident, threading.get_ident, lambda: raises(KeyError()), lambda: 3))
    assert found[0] == found[1] != threading.get_ident()
    assert found[2:] == [KeyError, 3]
    assert len(set(seen)) == 1
    guard.close()


def test_a_plan_without_limits_runs_here() -> None:
    found = Guard().run(steps([], threading.get_ident, lambda: raises(StopIteration()), limit=None), limited=False)
    assert found == [threading.get_ident(), RuntimeError], "a StopIteration would end the plan"


def test_a_plan_goes_on_elsewhere_when_a_call_hangs_and_what_comes_late_is_dropped() -> None:
    release, seen = threading.Event(), []
    guard = Guard()
    works = (lambda: 1, release.wait, lambda: 2, release.set, lambda: time.sleep(0.05), lambda: 4)
    began = time.perf_counter()
    found = guard.run(steps(seen, *works, limit=0.5))
    assert found == [1, CallTimeout, 2, None, None, 4]
    assert time.perf_counter() - began >= 0.5
    assert len(set(seen[:2])) == len(set(seen[2:])) == 1
    assert seen[0] != seen[2]
    assert guard.run(steps(seen, lambda: 5)) == [5]


def test_every_call_may_hang() -> None:
    never = threading.Event()
    found = Guard().run(steps([], *[never.wait] * 3, limit=0.1))
    assert found == [CallTimeout] * 3
    never.set()


def test_a_limit_that_is_shorter_than_the_one_before_holds() -> None:
    def plan() -> Plan[str]:
        yield Call(lambda: time.sleep(0.1), 100.0)  # the watching thread means to wake up in 100 s
        try:
            yield Call(lambda: time.sleep(20), 0.2)
        except CallTimeout as error:
            return f"late after {error.seconds}"
        return "in time"

    began = time.perf_counter()
    assert Guard().run(plan()) == "late after 0.2"
    assert time.perf_counter() - began < 10


def test_what_a_plan_raises_comes_here() -> None:
    def plan() -> Plan[None]:
        yield Call(lambda: None, 1.0)
        raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        Guard().run(plan())


def test_helper_threads_serve_again() -> None:
    def ident() -> int:
        guard = Guard()
        try:
            return guard.call(threading.get_ident, 30.0)
        finally:
            guard.close()

    assert ident() == ident()


def test_what_is_left_behind_is_counted() -> None:
    before, release = left_behind(), threading.Event()
    with pytest.raises(CallTimeout):
        Guard().call(release.wait, 0.05)
    assert left_behind() == before + 1
    release.set()
    deadline = time.monotonic() + 30
    while left_behind() > before and time.monotonic() < deadline:
        time.sleep(0.01)
    assert left_behind() == before


def test_a_call_can_ask_when_it_should_end() -> None:
    guard, now = Guard(), time.monotonic()
    found = guard.call(ends_at, 100.0)
    assert found is not None
    assert now + 99.0 <= found <= time.monotonic() + 99.0
    assert guard.run(steps([], ends_at, limit=None)) == [None]
    assert ends_at() is None


def test_a_thread_that_was_abandoned_serves_again_once_its_call_returns() -> None:
    for _ in range(3):  # whoever rests from other tests is used up or counted below
        guard = Guard()
        before = threading.active_count()
        for _ in range(20):
            with pytest.raises(CallTimeout):
                guard.call(lambda: time.sleep(0.03), 0.01)
        time.sleep(0.2)
    assert threading.active_count() <= before + 2


def test_an_interrupted_wait_loses_its_thread_and_no_other_waits_behind_it(monkeypatch: pytest.MonkeyPatch) -> None:
    release, guard = threading.Event(), Guard()

    def stop(_relay: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("harness.guard.Relay.watch", stop)
        with pytest.raises(KeyboardInterrupt):
            guard.call(release.wait, 60.0)
    guard.close()
    assert Guard().call(lambda: 7, 10.0) == 7
    release.set()
