"""Transport: one attempt of one request, every fault sorted into "may pass" or "will not".

libcurl, because what a call costs is what limits how many episodes one process keeps in flight: with 64 threads against
one server on two cores it spent 0.11 ms of CPU a call and was woken once, urllib3 0.30 ms and five times, httpx 2.1 ms
(`benchmarks/endpoint.py` measures the whole).
"""

from __future__ import annotations

import json
import re
import resource
import ssl
import threading
import time
import urllib.request
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from email.utils import parsedate_to_datetime
from typing import Any, Final
from urllib.parse import urlsplit

import pycurl

from harness.errors import UsageError
from harness.guard import Guard
from harness.models.errors import ContextTooLong, Refused, Transient

MAX_BODY = 64 * 2**20
CONNECT_S = 15.0
LONGEST_S: Final = 1e6  # libcurl counts milliseconds in 31 bits
FILES: Final = 65_536
TRANSIENT = {408: "stall", 425: "overloaded", 429: "rate_limit", 503: "overloaded", 529: "overloaded"}
ADVICE = {
    401: "The key was not accepted: check the environment variable named in `key_env`.",
    402: "The account has no balance.",
    403: "The key may not use this model.",
    404: "Check `base_url` (it usually ends in /v1) and `model`.",
}
_NO_CONNECTION: Final = (pycurl.E_COULDNT_CONNECT, pycurl.E_COULDNT_RESOLVE_HOST, pycurl.E_COULDNT_RESOLVE_PROXY)
_NO_TRUST: Final = (pycurl.E_PEER_FAILED_VERIFICATION, pycurl.E_SSL_CACERT_BADFILE, pycurl.E_SSL_CERTPROBLEM)
_NO_ADDRESS: Final = (pycurl.E_URL_MALFORMAT, pycurl.E_UNSUPPORTED_PROTOCOL)


class Pool:
    """Connections to an endpoint, through the proxy the environment names; each is kept by one of libcurl's handles.

    Args:
        base_url: http or https.
        size: connections that are kept when nobody uses them.

    Raises `UsageError`.
    """

    def __init__(self, base_url: str, size: int) -> None:
        try:
            parts = urlsplit(base_url)
        except ValueError as error:
            raise UsageError(f"base_url {base_url!r} is no address: {error}.") from error
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise UsageError(f"base_url {base_url!r} is no http address; write it like 'http://localhost:8000/v1'.")
        if parts.username or parts.password or parts.query:
            raise UsageError(
                "base_url must hold no user, password or query: name a key's variable in `key_env` instead."
            )
        proxy = urllib.request.getproxies().get(parts.scheme)
        self._proxy = proxy if proxy and not urllib.request.proxy_bypass(parts.netloc) else ""
        self._idle: deque[Any] = deque(maxlen=size)
        _allow_files()

    def take(self) -> Any:
        """A handle, the one used last if there is one: its connection is the likeliest to be alive."""
        try:
            return self._idle.pop()
        except IndexError:
            return self._made()

    def give(self, curl: Any) -> None:
        """A handle whose answer was read to its end."""
        self._idle.append(curl)  # the oldest falls out of a full pool, and closes its connection

    def _made(self) -> Any:
        curl = pycurl.Curl()
        curl.setopt(pycurl.NOSIGNAL, 1)  # signals and threads do not mix
        curl.setopt(pycurl.PROXY, self._proxy)
        curl.setopt(pycurl.HTTP_VERSION, pycurl.CURL_HTTP_VERSION_1_1)
        for option, place in zip((pycurl.CAINFO, pycurl.CAPATH), _authorities(), strict=True):
            if place:
                curl.setopt(option, place)
        return curl


def _allow_files() -> None:
    """Raise the soft limit of open files: libcurl has three for a connection, and 256 connections are 768."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = FILES if hard == resource.RLIM_INFINITY else min(FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with suppress(ValueError, OSError):  # a system with a bound of its own keeps what it has
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def _authorities() -> tuple[str | None, str | None]:
    """(file, folder) of the certificates that Python itself trusts: a libcurl from a wheel knows no place."""
    found = ssl.get_default_verify_paths()
    if found.cafile or found.capath:
        return found.cafile, found.capath
    try:
        import certifi
    except ImportError:
        return None, None
    return certifi.where(), None


def post(pool: Pool, url: str, body: Mapping[str, Any], headers: Mapping[str, str], deadline: float) -> dict[str, Any]:
    """Send once and give the JSON object of a 200.

    Raises:
        Transient: the attempt may be repeated.
        ContextTooLong, Refused: it makes no sense to.
        UsageError: the user has to change something (key, address, model).
    """
    data = json.dumps(body, ensure_ascii=False, allow_nan=False).encode("utf-8", "replace")
    status, heads, raw = _exchange(pool, url, data, headers, deadline)
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
    status, _, raw = _exchange(pool, url, None, headers, deadline)
    return status, raw


def _exchange(
    pool: Pool, url: str, data: bytes | None, headers: Mapping[str, str], deadline: float
) -> tuple[int, Mapping[str, str], bytes]:
    left = min(max(0.001, deadline - time.monotonic()), LONGEST_S)
    answer = _Answer()
    curl = pool.take()
    curl.setopt(pycurl.URL, url.encode())
    curl.setopt(pycurl.HTTPHEADER, [_line(name, value) for name, value in headers.items()] + [b"Expect:"])
    curl.setopt(pycurl.TIMEOUT_MS, max(1, int(1e3 * left)))
    curl.setopt(pycurl.CONNECTTIMEOUT_MS, max(1, int(1e3 * min(CONNECT_S, left))))
    curl.setopt(pycurl.WRITEFUNCTION, answer.write)
    curl.setopt(pycurl.HEADERFUNCTION, answer.lines.append)
    if data is None:
        curl.setopt(pycurl.HTTPGET, 1)
    else:
        curl.setopt(pycurl.POSTFIELDS, data)
    try:
        if threading.current_thread() is threading.main_thread():
            _away(curl.perform, left + CONNECT_S)  # libcurl hears no Ctrl-C
        else:
            curl.perform()
    except pycurl.error as error:
        fault = _fault(curl, answer, url, left, *error.args[:2])
        curl.close()  # and its connection: what is left of this answer must not meet the next request
        raise fault from None
    status: int = curl.getinfo(pycurl.RESPONSE_CODE)
    pool.give(curl)
    return status, answer.headers(), b"".join(answer.parts)


def _away(work: Callable[[], None], limit: float) -> None:
    guard = Guard()
    try:
        guard.call(work, limit)
    finally:
        guard.close()


class _Answer:
    """What comes in: header lines as they are, the body up to a size."""

    def __init__(self) -> None:
        self.lines: list[bytes] = []
        self.parts: list[bytes] = []
        self.size = 0

    def write(self, part: bytes) -> int:
        """Keep a part of the body; fewer bytes than came end the transfer."""
        self.size += len(part)
        if self.size > MAX_BODY:
            return 0
        self.parts.append(part)
        return len(part)

    def headers(self) -> dict[str, str]:
        """By lower-case name; of several answers (100, a proxy's) the last."""
        found = {}
        for line in self.lines:
            name, colon, value = line.decode("latin-1").partition(":")
            if colon:
                found[name.strip().lower()] = value.strip()
            elif name.startswith("HTTP/"):
                found.clear()
        return found


def _line(name: str, value: str) -> bytes:
    if any(sign in value for sign in "\r\n\0"):
        raise UsageError(
            f"The value for the header {name} holds a line break: look at the variable that holds the key."
        )
    return f"{name}: {value}".encode()


def _fault(curl: Any, answer: _Answer, url: str, left: float, code: int, text: str) -> Exception:
    """What libcurl's error means."""
    text = re.sub(r"//[^/\s@]*@", "//", text)  # a proxy's password
    if code in _NO_ADDRESS and "HTTP/0.9" not in text:
        return UsageError(f"{url!r} is no address: {text}")
    if code in _NO_TRUST:
        return Refused(f"TLS failed: {text}")
    if code == pycurl.E_WRITE_ERROR and answer.size > MAX_BODY:
        return Refused(f"the answer is larger than {MAX_BODY} bytes")
    late = code == pycurl.E_OPERATION_TIMEDOUT
    if code in _NO_CONNECTION or (late and not curl.getinfo(pycurl.PRETRANSFER_TIME)):
        return Transient("connect", f"no connection: {text}"[:200])
    if late:
        return Transient("stall", "the answer trickles" if answer.size else f"nothing came for {left:.0f} s")
    return Transient("reset", f"{text} (libcurl {code})"[:200])


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
