"""Failing open: advisor trouble means that the actor's proposal is executed, and is counted by cause."""

from __future__ import annotations

from harness.errors import EpisodeError, IllegalAction, UsageError
from harness.guard import CallTimeout


def cause_of(error: Exception, where: str) -> str:
    """The cause under which trouble is counted, such as `judge:timeout`.

    Raises the error again where failing open would hide a mistake of the user's or an abandoned review.
    """
    if isinstance(error, UsageError | EpisodeError):
        raise error
    if isinstance(error, TimeoutError | CallTimeout):
        return f"{where}:timeout"
    if isinstance(error, IllegalAction):
        return f"{where}:malformed"
    return f"{where}:{type(error).__name__}"
