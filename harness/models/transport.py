"""Transport: one attempt of one request, every fault sorted into "may pass" or "will not".

urllib3 because it is the lightest thread-safe pool that knows proxies and TLS: with 64 threads against one server on
two cores it spent 0.3 ms of CPU a call, httpx 2.1 ms (`benchmarks/endpoint.py` measures the whole).
"""

from __future__ import annotations

import json
import time
import urllib.request
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import urlsplit

import urllib3
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.exceptions import (
    ConnectTimeoutError,
    HTTPError,
    LocationParseError,
    NewConnectionError,
    ReadTimeoutError,
    SSLError,
)

from harness.errors import UsageError
from harness.models.errors import ContextTooLong, Refused, Transient

Pool = urllib3.HTTPConnectionPool | urllib3.ProxyManager
NO_RETRIES = urllib3.Retry(total=False, redirect=False)
MAX_BODY = 64 * 2**20
CONNECT_S = 15.0
TRANSIENT = {408: "stall", 425: "overloaded", 429: "rate_limit", 503: "overloaded", 529: "overloaded"}
ADVICE = {
    401: "The key was not accepted: check the environment variable named in `key_env`.",
    402: "The account has no balance.",
    403: "The key may not use this model.",
    404: "Check `base_url` (it usually ends in /v1) and `model`.",
}


def make_pool(base_url: str, size: int) -> Pool:
    """A connection pool for an endpoint, through the proxy the environment names. Raises `UsageError`."""
    parts = urlsplit(base_url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise UsageError(f"base_url {base_url!r} is no http address; write it like 'http://localhost:8000/v1'.")
    if parts.username or parts.password or parts.query:
        raise UsageError("base_url must hold no user, password or query: name a key's variable in `key_env` instead.")
    proxy = urllib.request.getproxies().get(parts.scheme)
    if proxy and not urllib.request.proxy_bypass(parts.hostname):
        return urllib3.ProxyManager(proxy, maxsize=size)
    pool = urllib3.connection_from_url(base_url, maxsize=size)  # half the overhead of a manager
    pool.ConnectionCls = _OneWriteTls if parts.scheme == "https" else _OneWrite
    return pool


class _OneWrite(HTTPConnection):
    """Sends the head of a request together with its body: http.client writes twice.

    With many threads each write is a wait for the interpreter lock too, and the server wakes up twice.
    """

    _waits = False
    _head = b""

    def request(self, method: str, url: str, body: Any = None, *args: Any, **named: Any) -> None:
        self._waits, self._head = bool(body), b""
        super().request(method, url, body, *args, **named)

    def send(self, data: Any) -> None:
        if self._waits:
            self._waits, self._head = False, data
            return
        head, self._head = self._head, b""
        super().send(head + data if head else data)


class _OneWriteTls(_OneWrite, HTTPSConnection):
    """The same over TLS."""


def post(pool: Pool, url: str, body: Mapping[str, Any], headers: Mapping[str, str], deadline: float) -> dict[str, Any]:
    """Send once and give the JSON object of a 200.

    Raises:
        Transient: the attempt may be repeated.
        ContextTooLong, Refused: it makes no sense to.
        UsageError: the user has to change something (key, address, model).
    """
    data = json.dumps(body, ensure_ascii=False, allow_nan=False).encode("utf-8", "replace")
    status, heads, raw = _exchange(pool, "POST", url, data, headers, deadline)
    if status != 200:
        raise _trouble(status, heads, raw)
    answer = _object(raw)
    if answer is None:
        raise Transient("truncated", f"the answer is no JSON object ({len(raw)} bytes)")
    if "error" in answer and "choices" not in answer:
        raise Transient("server_error", _message(raw))
    return answer


def get(pool: Pool, url: str, headers: Mapping[str, str], deadline: float) -> tuple[int, bytes]:
    """(status, body) of a GET. Raises `Transient` when nothing came back."""
    status, _, raw = _exchange(pool, "GET", url, None, headers, deadline)
    return status, raw


def _exchange(
    pool: Pool, method: str, url: str, data: bytes | None, headers: Mapping[str, str], deadline: float
) -> tuple[int, Mapping[str, str], bytes]:
    left = max(0.001, deadline - time.monotonic())
    timeout = urllib3.Timeout(connect=min(CONNECT_S, left), read=left)
    try:
        response = pool.urlopen(
            method,
            url if isinstance(pool, urllib3.ProxyManager) else urlsplit(url).path,
            body=data,
            headers=dict(headers),
            timeout=timeout,
            retries=NO_RETRIES,
            redirect=False,
            preload_content=False,
        )
        try:
            raw = _read(response, deadline)
        except BaseException:
            response.close()  # what is left of this answer must not meet the next request
            raise
        response.release_conn()
        return response.status, response.headers, raw
    except LocationParseError as error:
        raise UsageError(f"{url!r} is no address: {error}") from error
    except (ConnectTimeoutError, NewConnectionError) as error:
        raise Transient("connect", f"no connection: {_cause(error)}") from error
    except ReadTimeoutError as error:
        raise Transient("stall", f"nothing came for {left:.0f} s") from error
    except SSLError as error:
        raise Refused(f"TLS failed: {_cause(error)}") from error
    except (HTTPError, OSError) as error:
        raise Transient("reset", _cause(error)) from error


def _read(response: Any, deadline: float) -> bytes:
    parts, size = [], 0
    while chunk := response.read1(1 << 16):
        parts.append(chunk)
        size += len(chunk)
        if size > MAX_BODY:
            raise Refused(f"the answer is larger than {MAX_BODY} bytes")
        if response.length_remaining == 0:  # all there: spares a call that would say so
            break
        if time.monotonic() > deadline:
            raise Transient("stall", "the answer trickles")
    return b"".join(parts)


def _cause(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"[:200]


def _object(raw: bytes) -> dict[str, Any] | None:
    try:
        value = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _message(raw: bytes) -> str:
    """The server's own words, at most 300 characters."""
    value: Any = _object(raw)
    for key in ("error", "message", "detail"):
        if isinstance(value, dict) and key in value:
            value = value[key]
    text = value if isinstance(value, str) else json.dumps(value) if value else raw.decode("utf-8", "replace")
    return " ".join(text.split())[:300]


def _trouble(status: int, headers: Mapping[str, str], raw: bytes) -> Exception:
    text = f"HTTP {status}: {_message(raw)}"
    if status == 429 and "insufficient_quota" in text:
        return UsageError(f"{text}. {ADVICE[402]}")
    if status in TRANSIENT or status >= 500:
        return Transient(TRANSIENT.get(status, "server_error"), text, retry_after(headers))
    if status in ADVICE:
        return UsageError(f"{text}. {ADVICE[status]}")
    lowered = text.lower()
    if status in (400, 413, 422) and ("context" in lowered or "too long" in lowered or "max_model_len" in lowered):
        return ContextTooLong(text)
    return Refused(text)


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds a server asks to wait, by `retry-after-ms` or `Retry-After` (seconds or a date), or None."""
    for name, scale in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        text = headers.get(name)
        if not text:
            continue
        try:
            return min(max(0.0, float(text) * scale), 3600.0)
        except ValueError:
            pass
        try:
            return min(max(0.0, parsedate_to_datetime(text).timestamp() - time.time()), 3600.0)
        except (ValueError, TypeError):
            continue
    return None
