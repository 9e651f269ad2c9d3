"""The client against a real socket: every fault, the limiter, deadlines, usage, cache and the key."""

from __future__ import annotations

import math
import os
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from harness.errors import UsageError
from harness.models.cache import ResponseCache
from harness.models.client import Endpoint, connection
from harness.models.errors import ContextTooLong, ModelTimeout, Refused, Unavailable
from harness.models.limiter import Limiter
from harness.models.transport import retry_after
from harness.models.usage import parse_usage
from tests.models.mock_endpoint import FAULTS, Behaviour, MockEndpoint

SLOW_S = 60.0  # longer than an honest answer takes on the busiest machine
REQUEST = {"messages": [{"role": "user", "content": "go"}], "max_tokens": 8}


def ask(server: MockEndpoint, **options: object) -> Endpoint:
    return Endpoint(server.url, "m", **{"timeout_s": SLOW_S, **options})  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", FAULTS)
def test_every_kind_of_fault_is_survived(kind: str) -> None:
    script = [kind, "fine", "fine", kind, kind]
    with MockEndpoint(Behaviour(0.0, stall_s=SLOW_S, retry_after=0.01, script=script)) as server:
        endpoint = ask(server, attempts=30, timeout_s=1.0 if kind == "stall" else SLOW_S)
        texts = {endpoint.complete(REQUEST, seed=1).text for _ in range(3)}
        assert len(texts) == 1, "faults change answers"
        assert server.counts[kind] == 3
        assert server.counts["fine"] >= 3


def test_retry_after_is_honoured_and_waiting_is_not_working() -> None:
    with MockEndpoint(Behaviour(0.02, retry_after=0.4, script=["rate_limit"])) as server:
        began = time.monotonic()
        answer = ask(server).complete(REQUEST)
        took = time.monotonic() - began
        assert server.counts["calls"] == 2
        assert answer.usage.waited_s >= 0.4, "it asked again before it was told to"
        assert answer.seconds <= took - 0.4


def test_rate_limits_do_not_use_up_attempts_but_patience() -> None:
    with MockEndpoint(Behaviour(0.0, 1.0, ("rate_limit",), retry_after=0.01)) as server:
        with pytest.raises(Unavailable, match="rate limits"):
            ask(server, attempts=1, patience_s=3.0).complete(REQUEST)
        assert server.counts["calls"] > 1


def test_faults_use_up_attempts() -> None:
    with MockEndpoint(Behaviour(0.0, 1.0, ("server_error",))) as server:
        with pytest.raises(Unavailable, match="3 faults"):
            ask(server, attempts=3).complete(REQUEST)
        assert server.counts["calls"] == 3


def test_a_deadline_ends_a_stalled_call() -> None:
    with MockEndpoint(Behaviour(0.0, 1.0, ("stall",), stall_s=2 * SLOW_S)) as server:
        began = time.monotonic()
        with pytest.raises(ModelTimeout):
            ask(server).complete(REQUEST, deadline=time.monotonic() + 0.4)
        assert time.monotonic() - began < SLOW_S / 2


@pytest.mark.parametrize(
    ("status", "text", "error"),
    [
        (400, "maximum context length is 2048 tokens", ContextTooLong),
        (400, "bad parameter", Refused),
        (401, "wrong key", UsageError),
        (404, "no such model", UsageError),
    ],
)
def test_what_cannot_pass_is_not_repeated(status: int, text: str, error: type[Exception]) -> None:
    with MockEndpoint(Behaviour(0.0, refusal=(status, text))) as server:
        with pytest.raises(error, match=text):
            ask(server).complete(REQUEST)
        assert server.counts["calls"] == 1


def test_nobody_listening_is_unavailable() -> None:
    with pytest.raises(Unavailable, match="connect"):
        Endpoint("http://127.0.0.1:9/v1", "m", attempts=2).complete(REQUEST)


def test_a_server_that_is_started_anew_costs_time_and_no_attempt() -> None:
    with MockEndpoint(Behaviour(0.0)) as server:
        endpoint = ask(server, attempts=2)
        endpoint.complete(REQUEST)
        port = server.port
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(endpoint.complete, REQUEST)
        while connection(endpoint).counts["connect"] < 3:  # more refused connections than it has attempts
            assert not answer.done()
            time.sleep(0.02)
        with MockEndpoint(Behaviour(0.0), port):
            assert answer.result(timeout=SLOW_S).usage.waited_s > 0.0


@pytest.mark.parametrize("url", ["localhost:8000/v1", "ftp://x/v1", "http://user:secret@x/v1", "http://[::1/v1"])
def test_a_wrong_address_is_a_message(url: str) -> None:
    with pytest.raises(UsageError) as caught:
        Endpoint(url, "m").complete(REQUEST)
    assert "secret" not in str(caught.value)


def test_a_missing_key_names_its_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_SUCH_KEY", raising=False)
    with pytest.raises(UsageError, match="NO_SUCH_KEY"):
        Endpoint("http://127.0.0.1:9/v1", "m", key_env="NO_SUCH_KEY").complete(REQUEST)


def test_a_key_that_the_server_repeats_is_taken_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEST_KEY", "sk-canary-123")
    with MockEndpoint(Behaviour(0.0, refusal=(401, "bad key sk-canary-123"))) as server:
        with pytest.raises(UsageError) as caught:
            ask(server, key_env="TEST_KEY").complete(REQUEST)
        assert server.authorizations["sk-canary-123"] == 1, "the key was not sent"
        assert "canary" not in str(caught.value)


def test_usage_is_the_servers_and_unknown_stays_unknown() -> None:
    assert parse_usage(None).prompt is None
    deepseek = parse_usage({"prompt_tokens": 9, "completion_tokens": 3, "prompt_cache_hit_tokens": 4})
    assert (deepseek.prompt, deepseek.completion, deepseek.cached, deepseek.reasoning) == (9, 3, 4, None)
    openai = parse_usage({"prompt_tokens": 9, "completion_tokens_details": {"reasoning_tokens": 0}})
    assert (openai.completion, openai.reasoning) == (None, 0)
    assert (deepseek + openai).completion is None


def test_the_limit_follows_what_the_server_can_take() -> None:
    # A latency so long that even a crawling machine has more than the server's capacity on its way.
    with MockEndpoint(Behaviour(0.2, capacity=8, retry_after=0.2)) as server:
        endpoint = ask(server)
        with ThreadPoolExecutor(32) as pool:
            list(pool.map(lambda i: endpoint.complete(REQUEST, seed=i), range(256)))
        limiter = connection(endpoint).limiter
        assert server.counts["fine"] == 256
        assert limiter.decreases > 0
        assert 2 <= limiter.limit <= 24, limiter.limit
        assert limiter.flying == 0
        assert server.counts["rate_limit"] < 256, "it keeps hammering"


def rounds(limiter: Limiter, number: int, overloads: int = 0, flying: int = 2) -> None:
    """Rounds of four answers each, some of them overloads."""
    for _ in range(number):
        for start in range(0, 4, flying):
            tickets = [limiter.acquire(time.monotonic() + SLOW_S) for _ in range(flying)]
            for index, ticket in enumerate(tickets, start):
                assert ticket is not None
                limiter.release(ticket, overload=index < overloads)


def test_the_limit_doubles_then_grows_by_one_and_falls_in_proportion() -> None:
    limiter = Limiter(ceiling=100, start=2)
    rounds(limiter, 5)
    assert limiter.limit == 4, "two in flight justify no limit above twice that"
    rounds(limiter, 1, overloads=2)
    assert limiter.limit == 3
    rounds(limiter, 1)
    assert limiter.limit == 4, "after a decrease it grows by one a round"
    rounds(limiter, 20, overloads=4, flying=1)
    assert limiter.limit == 1


def test_requests_that_flew_during_a_decrease_do_not_count_again() -> None:
    limiter = Limiter(start=8)
    tickets = [limiter.acquire(time.monotonic() + SLOW_S) for _ in range(8)]
    held = [ticket for ticket in tickets if ticket is not None]
    extra = limiter.acquire(time.monotonic() + 0.05)
    assert (len(held), extra) == (8, None), "the limit holds, and waiting ends at the deadline"
    for ticket in held[:7]:
        limiter.release(ticket, overload=True)
    assert limiter.limit == 8
    late = limiter.acquire(time.monotonic() + SLOW_S)
    limiter.release(held[7], overload=True)
    assert (limiter.limit, limiter.decreases) == (4, 1)
    assert late is not None
    limiter.release(late, overload=True)
    assert (limiter.limit, limiter.decreases, limiter.flying) == (4, 1, 0)


def test_rare_faults_do_not_choke_an_endpoint() -> None:
    limiter = Limiter(start=40)
    for number in range(2_000):
        ticket = limiter.acquire(time.monotonic() + SLOW_S)
        assert ticket is not None
        limiter.release(ticket, overload=number % 16 == 0)
    assert limiter.limit >= 40


def test_several_rejections_in_a_row_rest_the_endpoint() -> None:
    limiter = Limiter(start=8)
    tickets = [limiter.acquire(time.monotonic() + SLOW_S) for _ in range(3)]
    began = time.monotonic()
    for ticket in tickets:
        assert ticket is not None
        limiter.release(ticket, overload=True, retry_after=0.3)
    assert limiter.acquire(began + SLOW_S) is not None
    assert time.monotonic() - began >= 0.3


def test_the_cache_answers_without_the_server(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("COTA_BENCH_CACHE", str(tmp_path))
    with MockEndpoint(Behaviour(0.0)) as server:
        endpoint = ask(server, cache=True)
        first = endpoint.complete(REQUEST, seed=1)
        second = endpoint.complete(REQUEST, seed=1)
        assert server.counts["calls"] == 1
        assert second.text == first.text
        assert first.usage.saved_prompt == 0
        assert (second.usage.calls, second.usage.saved_prompt) == (0, first.usage.prompt)
        for other in ({"seed": 2}, {"seed": 1, "draw": 1}):
            endpoint.complete(REQUEST, **other)  # type: ignore[arg-type]
        Endpoint(server.url, "m", revision="r2", cache=True).complete(REQUEST, seed=1)
        assert server.counts["calls"] == 4, "seed, draw and revision are in the key"


def test_the_cache_key_holds_what_differs_and_nothing_else() -> None:
    parts = ResponseCache.parts(Endpoint("http://x/v1", "m", key_env="K"), {"model": "m", "seed": 3, "a": 1}, 2)
    assert parts == {"model": "m", "revision": None, "request": {"a": 1}, "seed": 3, "draw": 2}


def test_an_answer_by_another_model_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    with MockEndpoint(Behaviour(0.0, answers_as="m-2")) as server:
        for _ in range(3):
            ask(server).complete(REQUEST)
    assert caplog.text.count("answered by m-2") == 1


def test_retry_after_in_all_its_forms() -> None:
    assert retry_after({"retry-after": "2"}) == 2.0
    assert retry_after({"retry-after-ms": "250"}) == 0.25
    assert retry_after({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}) == 0.0
    assert retry_after({"retry-after": "soon"}) is None
    assert retry_after({}) is None


def test_calls_of_the_main_thread_leave_no_threads_behind() -> None:
    with MockEndpoint(Behaviour(0.0)) as server:
        endpoint = ask(server)
        endpoint.complete(REQUEST)
        before = threading.active_count()
        for number in range(20):
            endpoint.complete(REQUEST, seed=number)
        assert threading.active_count() <= before


def test_failed_calls_leave_no_open_files_behind() -> None:
    def files() -> int:
        return len(os.listdir("/proc/self/fd"))

    with MockEndpoint(Behaviour(0.0, 1.0, ("reset",))) as server:
        endpoint = ask(server, attempts=1)
        with pytest.raises(Unavailable):
            endpoint.complete(REQUEST)
        before = files()
        for _ in range(20):
            with pytest.raises(Unavailable):
                endpoint.complete(REQUEST)
        assert files() <= before + 4


def test_a_proxys_password_is_in_no_message(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "foo://us:topsecret@localhost:1")
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    with pytest.raises((UsageError, Unavailable)) as caught:
        Endpoint("http://example.invalid:7/v1", "m", attempts=1).complete(REQUEST)
    assert "topsecret" not in str(caught.value)


def test_what_is_not_http_is_a_fault_and_not_the_users_mistake() -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()

        def talk() -> None:
            for _ in range(2):
                with listener.accept()[0] as one:
                    one.recv(10_000)
                    one.sendall(b"SSH-2.0-nothing\r\n")

        threading.Thread(target=talk, daemon=True).start()
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/v1"
        with pytest.raises(Unavailable, match="reset"):
            Endpoint(url, "m", attempts=2, timeout_s=SLOW_S).complete(REQUEST)


@pytest.mark.parametrize("value", [1e16, math.inf])
def test_a_limit_of_ages_is_one(value: float) -> None:
    with MockEndpoint(Behaviour(0.0)) as server:
        assert ask(server, timeout_s=value, patience_s=value).complete(REQUEST).text
