"""A mock OpenAI-compatible server on plain asyncio: answers by rule after a latency, with faults on demand.

`python -m tests.models.mock_endpoint --latency 0.05 --faults 0.2` serves until its input ends.
Answers depend on the request alone, so what a client makes of them must not depend on faults.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import random
import re
import selectors
import sys
import threading
from collections import Counter
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

LENGTH = re.compile(rb"(?i)\r\ncontent-length: *(\d+)")
BEARER = re.compile(rb"(?i)\r\nauthorization: *bearer ([^\r\n]+)")
FAULTS = ("rate_limit", "server_error", "reset", "stall", "truncated_json", "short_body")


@dataclass
class Behaviour:
    """How the server behaves; `faults` is the share of calls that go wrong, `capacity` how many it takes at once."""

    latency: float = 0.05
    faults: float = 0.0
    kinds: tuple[str, ...] = FAULTS
    stall_s: float = 1.0
    retry_after: float = 0.1
    capacity: int | None = None
    seed: int = 0
    key: str | None = None
    refusal: tuple[int, str] | None = None
    replies: list[str] = field(default_factory=list)  # fixed answers, in order; empty: by rule
    script: list[str] = field(default_factory=list)  # what the first calls meet: "fine" or a fault, in order
    context_chars: int | None = None
    answers_as: str | None = None  # the model's name in answers
    remembers: bool = True  # requests, in `seen`


class MockEndpoint:
    """The server, on a thread of its own; `url`, `seen` (requests) and `counts` are for tests."""

    def __init__(self, behaviour: Behaviour | None = None, port: int = 0) -> None:
        self.behaviour = behaviour or Behaviour()
        self.port = port
        self.seen: list[dict[str, Any]] = []
        self.authorizations: Counter[str] = Counter()
        self.counts: Counter[str] = Counter()
        self._chance = random.Random(self.behaviour.seed)
        self._loop = asyncio.SelectorEventLoop(selectors.SelectSelector())  # epoll would round latencies up to 1 ms
        self._ready = threading.Event()
        self.links: set[Link] = set()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def __enter__(self) -> MockEndpoint:
        self._thread = threading.Thread(target=self._serve, daemon=True, name="mock-endpoint")
        self._thread.start()
        self._ready.wait(10)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(10)

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_until_complete(self._main())
        self._loop.close()

    async def _main(self) -> None:
        self._stop = asyncio.Event()
        server = await self._loop.create_server(lambda: Link(self), "127.0.0.1", self.port, backlog=1024)
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        await self._stop.wait()
        server.close()
        for link in list(self.links):
            link.hang_up()

    def request(self, path: str, key: str, body: bytes, link: Link) -> None:
        """A request is all there: answer it at once or after the latency."""
        self.authorizations[key] += 1
        if path != "/v1/chat/completions":
            link.write(200, {"version": "mock-1", "data": [{"id": "m"}], **self.counts})
            return
        behaviour = self.behaviour
        self.counts["calls"] += 1
        self.counts["flying"] += 1
        self.counts["peak"] = max(self.counts["peak"], self.counts["flying"])
        crowded = behaviour.capacity is not None and self.counts["flying"] > behaviour.capacity
        faulty = self._chance.random() < behaviour.faults
        kind = "rate_limit" if crowded else self._chance.choice(behaviour.kinds) if faulty else "fine"
        kind = behaviour.script.pop(0) if behaviour.script else kind
        self._loop.call_later(0.001 if crowded else behaviour.latency, self._answer, kind, body, link)

    def _answer(self, kind: str, body: bytes, link: Link) -> None:
        self.counts["flying"] -= 1  # counted before the client can know the answer
        self.counts[kind] += 1
        behaviour = self.behaviour
        if kind == "rate_limit":
            link.write(429, {"error": {"message": "slow down"}}, behaviour.retry_after)
        elif kind == "server_error":
            link.write(500, {"error": {"message": "oops"}})
        elif kind == "reset":
            link.abort()
        elif kind == "stall":
            self._loop.call_later(behaviour.stall_s, link.hang_up)
        elif behaviour.refusal and kind == "fine":
            link.write(behaviour.refusal[0], {"error": {"message": behaviour.refusal[1]}})
        else:
            self.say(kind, json.loads(body), link)

    def say(self, kind: str, request: dict[str, Any], link: Link) -> None:
        """Answer a request that meets no fault before its body."""
        limit = self.behaviour.context_chars
        if limit is not None and sum(len(str(m.get("content"))) for m in request["messages"]) > limit:
            link.write(400, {"error": {"message": "maximum context length is exceeded"}})
            return
        answer = self._complete(request)
        raw = json.dumps(answer).encode()
        if kind == "truncated_json":
            link.write(200, raw[: len(raw) // 2])
        elif kind == "short_body":
            link.write(200, raw[: len(raw) // 2], promised=len(raw))
            link.hang_up()
        else:
            if self.behaviour.remembers:
                self.seen.append(request)
            self.counts["prompt"] += answer["usage"]["prompt_tokens"]
            self.counts["completion"] += answer["usage"]["completion_tokens"]
            link.write(200, raw)

    def _complete(self, request: dict[str, Any]) -> dict[str, Any]:
        text = self.behaviour.replies.pop(0) if self.behaviour.replies else rule(request)
        message: dict[str, Any] = {"role": "assistant", "content": text}
        choice: dict[str, Any] = {"index": 0, "finish_reason": "stop", "message": message}
        if request.get("logprobs"):
            others = [{"token": t, "logprob": -5.0} for t in "ABT" if t != text]
            choice["logprobs"] = {"content": [{"token": text, "logprob": -0.02, "top_logprobs": others}]}
            choice["logprobs"]["content"][0]["top_logprobs"].insert(0, {"token": text, "logprob": -0.02})
        prompt = len(json.dumps(request["messages"])) // 4
        usage: dict[str, Any] = {"prompt_tokens": prompt, "completion_tokens": len(text.split())}
        usage |= {"prompt_tokens_details": {"cached_tokens": prompt // 2}, "total_tokens": prompt + len(text.split())}
        return {
            "id": "x",
            "object": "chat.completion",
            "model": self.behaviour.answers_as or request["model"],
            "choices": [choice],
            "usage": usage,
        }


class Link(asyncio.Protocol):
    """One connection. A protocol and not a stream: a client on the same two cores pays for what its server spends."""

    def __init__(self, owner: MockEndpoint) -> None:
        self._owner = owner
        self._held = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self._owner.links.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._owner.links.discard(self)

    def data_received(self, data: bytes) -> None:
        self._held += data
        while b"\r\n\r\n" in self._held:
            head, rest = self._held.split(b"\r\n\r\n", 1)
            found = LENGTH.search(head)
            length = int(found[1]) if found else 0
            if len(rest) < length:
                return
            self._held = rest[length:]
            key = BEARER.search(head)
            self._owner.request(head.split(b" ", 2)[1].decode(), key[1].decode() if key else "", rest[:length], self)

    def write(self, status: int, answer: Any, retry_after: float | None = None, promised: int | None = None) -> None:
        """An answer; `promised`: the length it claims to have."""
        raw = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
        extra = "" if retry_after is None else f"Retry-After: {retry_after}\r\n"
        length = len(raw) if promised is None else promised
        head = f"HTTP/1.1 {status} X\r\nContent-Type: application/json\r\n{extra}Content-Length: {length}\r\n\r\n"
        self.transport.write(head.encode() + raw)

    def hang_up(self) -> None:
        """Close once everything is written."""
        self.transport.close()

    def abort(self) -> None:
        """Close with a reset."""
        self.transport.abort()


def rule(request: dict[str, Any]) -> str:
    """What the mock model says, from the request alone: it walks right most of the time and prefers right."""
    last = str(request["messages"][-1]["content"])
    if request.get("logprobs"):
        first, second = re.findall(r"^[AB]: (.*)$", last, re.MULTILINE)[-2:]
        return "T" if first == second else "A" if first == "right" else "B" if second == "right" else "T"
    if request["messages"][0]["content"].startswith("You check the next action"):
        return "The action loses time; look at where the end is."
    seen = json.dumps([request["messages"], request.get("seed")]).encode()
    draw = int.from_bytes(hashlib.sha256(seen).digest()[:4], "big") / 2**32
    return f"Thought: the end is near.\nAction: {'right' if draw < 0.7 else 'left' if draw < 0.85 else 'wait'}"


def main() -> None:
    """Serve until the input ends; the counters go to the output then."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--latency", type=float, default=0.05)
    parser.add_argument("--faults", type=float, default=0.0)
    parser.add_argument("--stall", type=float, default=1.0)
    parser.add_argument("--capacity", type=int)
    parser.add_argument("--port", type=int, default=0)
    given = parser.parse_args()
    behaviour = Behaviour(given.latency, given.faults, stall_s=given.stall, capacity=given.capacity, remembers=False)
    with MockEndpoint(behaviour, given.port) as server:
        print(server.port, flush=True)
        sys.stdin.read()
        print(json.dumps(server.counts), flush=True)


if __name__ == "__main__":
    main()
