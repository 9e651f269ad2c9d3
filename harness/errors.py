"""Errors that people read: each says what, where, the nearest valid value, and how to fix it."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from harness.records import Role, Status


class UsageError(Exception):
    """Something the user can fix: printed as one message without a traceback, exit status 2."""


class IllegalAction(Exception):
    """A text that is no action of this environment; the message is for the actor."""


class EpisodeError(Exception):
    """An episode cannot go on; `boundary` says who broke, `status` how it is recorded."""

    def __init__(self, boundary: Role, reason: str, status: Status = "failed") -> None:
        super().__init__(f"{boundary}: {reason}")
        self.boundary: Role = boundary
        self.reason = reason
        self.status: Status = status


def nearest(word: str, valid: Iterable[str]) -> str:
    """A hint such as ` Did you mean 'origin'? Valid: cota, origin.` for a message about an unknown word."""
    options = sorted(set(valid))
    close = difflib.get_close_matches(word, options, n=1, cutoff=0.5)
    hint = f" Did you mean {close[0]!r}?" if close else ""
    return f"{hint} Valid: {', '.join(options) or 'none'}."
