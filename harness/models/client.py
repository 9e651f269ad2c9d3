"""Client: one OpenAI-compatible chat endpoint, asked by many threads at once.

A call is: wait for a ticket of the endpoint's limiter, send, sort the fault if there is one, back off with jitter (or
as long as the server asks), again.  The time of the attempt that answered is working time; everything before it,
queueing, lost attempts and back-off, is `Usage.waited_s`.  Rate limits use up patience, never attempts, so a busy
server makes a study slower and never worse; so does a server that answered before and is being started anew.

An `Endpoint` is plain data and may be pickled; connections and limiters belong to the process and are shared by
address.  The key is read from the environment when a request is sent, held nowhere, and taken out of every message.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NoReturn

import tenacity

from harness.errors import UsageError
from harness.models import transport
from harness.models.answer import Completion, parse_completion
from harness.models.cache import ResponseCache
from harness.models.errors import ModelError, ModelTimeout, Transient, Unavailable
from harness.models.keys import key_for, redact
from harness.models.limiter import Limiter

log = logging.getLogger(__name__)
SEED_MASK = 0x7FFFFFFF


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a model is asked and how patiently; only `model` and `revision` can change an answer.

    Args:
        base_url: up to and including `/v1`.
        model: the name the server knows it by.
        revision: what is served under that name, for the record (the server cannot be made to prove it).
        key_env: name of the environment variable with the key; None for servers that need none.
        timeout_s: one attempt.
        patience_s: one call with all its waiting.
        attempts: faults that are forgiven in one call; rate limits do not count, nor does a server that has answered
            before and cannot be reached now.
        max_in_flight: ceiling of the adaptive limit, for this process and all roles at this address.
        cache: keep answers in the response cache and take them from there.
    """

    base_url: str
    model: str
    revision: str | None = None
    key_env: str | None = None
    timeout_s: float = 180.0
    patience_s: float = 1800.0
    attempts: int = 8
    max_in_flight: int = 256
    cache: bool = False

    def complete(
        self, request: Mapping[str, Any], seed: int | None = None, deadline: float | None = None, draw: int = 0
    ) -> Completion:
        """One chat completion; `request` is the body without `model` and `seed`.

        Args:
            request: messages and sampling settings.
            seed: passed on, cut to 31 bits.
            deadline: `time.monotonic()` after which no answer is of use.
            draw: tells apart answers that are wanted more than once, in the cache only.

        Raises:
            ModelError: `Unavailable`, `ModelTimeout`, `Refused` or `ContextTooLong`.
            UsageError: no key, a key that is not accepted, a wrong address or model name.
        """
        body = {"model": self.model, **request}
        if seed is not None:
            body["seed"] = seed & SEED_MASK
        store = ResponseCache.default() if self.cache else None
        key = store.key(self, body, draw) if store else ""
        held = store.get(key) if store else None
        if held is not None:
            return parse_completion(held, cached=True)
        answer, completion = connection(self).call(self, body, deadline)
        if store:
            store.put(key, answer)
        return completion


class Connection:
    """What a process shares for one address: connections, limiter, counters."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.pool = transport.Pool(endpoint.base_url, endpoint.max_in_flight)
        self.limiter = Limiter(endpoint.max_in_flight)
        self.counts: Counter[str] = Counter()
        self._lock = threading.Lock()
        self._aliases: set[tuple[str, str]] = set()

    def call(
        self, endpoint: Endpoint, body: Mapping[str, Any], deadline: float | None
    ) -> tuple[dict[str, Any], Completion]:
        """The answer as it came and as it reads. Raises as `Endpoint.complete`."""
        began = time.monotonic()
        until = began + endpoint.patience_s if deadline is None else min(deadline, began + endpoint.patience_s)
        try:
            answer, completion = self._attempt(endpoint, body, until)
        except Transient as fault:  # the machinery of retries is set up when there is something to retry
            answer, completion = self._again(endpoint, body, deadline, until, fault)
        self.count("answers")
        self._who_answered(endpoint, completion.model)
        waited = max(0.0, time.monotonic() - began - completion.seconds)
        return answer, replace(completion, usage=replace(completion.usage, waited_s=waited))

    def _again(
        self, endpoint: Endpoint, body: Mapping[str, Any], deadline: float | None, until: float, first: Transient
    ) -> tuple[dict[str, Any], Completion]:
        """What follows a first attempt that failed: the same pauses and ends as if it were one of these."""
        tries = Tries(endpoint, until, answered=self.counts["answers"] > 0)
        pending = [first]

        def attempt() -> tuple[dict[str, Any], Completion]:
            if pending:
                raise pending.pop()
            return self._attempt(endpoint, body, until)

        retrying = tenacity.Retrying(
            retry=tenacity.retry_if_exception_type(Transient), wait=tries.wait, stop=tries.stop, reraise=True
        )
        try:
            return retrying(attempt)
        except Transient as fault:
            self._give_up(endpoint, tries, fault, deadline, until)

    def _attempt(self, endpoint: Endpoint, body: Mapping[str, Any], until: float) -> tuple[dict[str, Any], Completion]:
        headers = {
            "Content-Type": "application/json",
            "Authorization": f"Bearer {key_for(endpoint.key_env, endpoint.base_url)}",
        }
        ticket = self.limiter.acquire(until)
        if ticket is None:
            raise Transient("queue", "no request slot came free in time")
        began = time.monotonic()
        overload, pause = False, None
        try:
            url = endpoint.base_url.rstrip("/") + "/chat/completions"
            answer = transport.post(self.pool, url, body, headers, min(until, began + endpoint.timeout_s))
            completion = parse_completion(answer)  # what cannot be read is a fault of this attempt
            return answer, replace(completion, seconds=time.monotonic() - began)
        except Transient as fault:
            self.count(fault.kind)
            overload, pause = fault.overload, fault.retry_after
            raise
        except (UsageError, ModelError) as error:
            raise type(error)(f"{endpoint.model} at {endpoint.base_url}: {redact(str(error))}") from None
        finally:
            self.limiter.release(ticket, overload, pause)

    def _give_up(
        self, endpoint: Endpoint, tries: Tries, fault: Transient, deadline: float | None, until: float
    ) -> NoReturn:
        where = f"{endpoint.model} at {endpoint.base_url}"
        counted = f"{tries.faults} faults, {tries.waits} rate limits or refused connections"
        last = f"{counted}; last: {fault.kind}, {redact(fault.detail)}"
        if deadline is not None and until == deadline and tries.late():
            raise ModelTimeout(f"{where}: no answer before the deadline ({last})") from None
        raise Unavailable(
            f"{where}: gave up after {tries.faults} faults and {tries.waits} rate limits; {last}"
        ) from None

    def _who_answered(self, endpoint: Endpoint, name: str) -> None:
        """Say once when a server answers under another model's name: providers redirect names that they retired."""
        if name and name != endpoint.model and (endpoint.model, name) not in self._aliases:
            self._aliases.add((endpoint.model, name))
            log.warning("%s: asked for %s, answered by %s", endpoint.base_url, endpoint.model, redact(name))

    def count(self, what: str) -> None:
        """Add one to a counter."""
        with self._lock:
            self.counts[what] += 1


class Tries:
    """How long to wait and when to stop, for one call."""

    def __init__(self, endpoint: Endpoint, until: float, answered: bool = False) -> None:
        self.endpoint = endpoint
        self.until = until
        self.forgiven = ("rate_limit", "connect") if answered else ("rate_limit",)
        self.faults = 0
        self.waits = 0
        self._pause = 0.0
        self._exponential = tenacity.wait_random_exponential(multiplier=0.2, max=20.0)

    def late(self) -> bool:
        """Whether the next attempt would begin after the end."""
        return time.monotonic() + self._pause >= self.until

    def wait(self, state: tenacity.RetryCallState) -> float:
        """Count the fault and choose the pause after it (tenacity asks this first, then whether to stop)."""
        fault = state.outcome.exception() if state.outcome else None
        if not isinstance(fault, Transient):
            return 0.0
        if fault.kind in self.forgiven:
            self.waits += 1
        else:
            self.faults += 1
        jitter = self._exponential(state)
        # With jitter on top of what the server asks, so that those it sent away do not come back together.
        self._pause = jitter if fault.retry_after is None else fault.retry_after + 0.1 * jitter
        return self._pause

    def stop(self, state: tenacity.RetryCallState) -> bool:
        """Whether to give up."""
        fault = state.outcome.exception() if state.outcome else None
        return getattr(fault, "kind", "") == "queue" or self.faults >= self.endpoint.attempts or self.late()


_connections: dict[tuple[int, str], Connection] = {}
_guard = threading.Lock()


def connection(endpoint: Endpoint) -> Connection:
    """The connection of this process to the endpoint's address; a forked child opens its own."""
    place = (os.getpid(), endpoint.base_url.rstrip("/"))
    with _guard:
        if place not in _connections:
            _connections[place] = Connection(endpoint)
        return _connections[place]


def _forked() -> None:
    global _guard
    _guard = threading.Lock()  # another thread of the parent may have held it
    _connections.clear()


os.register_at_fork(after_in_child=_forked)
