"""What can go wrong with a model endpoint, after everything worth trying was tried.

Mistakes of the user (no key, unknown model, wrong address) are `UsageError`; these here are the endpoint's, and whoever
asked says what they mean: an actor's episode fails, an advisor fails open.  No message ever holds a key.
"""

from __future__ import annotations


class ModelError(Exception):
    """An endpoint gave no usable answer; the message says which endpoint, why, and after how many tries."""


class Unavailable(ModelError):
    """Overload, faults or a dead connection, for longer than the client's patience."""


class ModelTimeout(ModelError, TimeoutError):
    """The deadline passed first."""


class Refused(ModelError):
    """The server will not answer this request, however often it is sent."""


class ContextTooLong(Refused):
    """The request does not fit the model's context."""


class Transient(Exception):
    """One attempt failed in a way that may pass; `retry_after` in seconds when the server named it.

    Args:
        kind: rate_limit, overloaded, server_error, reset, stall, truncated or connect.
        detail: for people, without secrets.
        retry_after: seconds the server asks to wait.
    """

    def __init__(self, kind: str, detail: str, retry_after: float | None = None) -> None:
        super().__init__(f"{kind}: {detail}")
        self.kind = kind
        self.detail = detail
        self.retry_after = retry_after

    @property
    def overload(self) -> bool:
        """Whether fewer requests at once would help."""
        return self.kind in ("rate_limit", "overloaded", "stall")
