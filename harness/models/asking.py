"""Asking: the parameters that every plugin behind an endpoint takes, written down once.

A plugin takes them as `**asking: Unpack[Asking]`, names its defaults in the class attribute `passes_on`, from which the
registry knows them, and hands both to `endpoint`.  None of them can change an answer, so none is identity.
"""

from __future__ import annotations

from typing import Final, TypedDict

from harness.models.client import Endpoint

THROUGHPUT: Final = ("base_url", "key_env", "timeout_s", "patience_s", "attempts", "max_in_flight", "cache")


class Asking(TypedDict, total=False):
    """How patiently an endpoint is asked.

    timeout_s: seconds of one attempt.
    patience_s: seconds of one call with all its waiting.
    attempts: faults forgiven in one call; rate limits do not count.
    max_in_flight: ceiling of the adaptive limit of this address, for each process.
    cache: keep answers and reuse them.
    """

    timeout_s: float
    patience_s: float
    attempts: int
    max_in_flight: int
    cache: bool


ACTOR: Final[Asking] = {
    "timeout_s": 180.0,
    "patience_s": 1800.0,
    "attempts": 8,
    "max_in_flight": 256,
    "cache": False,
}
# An advisor that does not answer lets the proposal pass, so it is waited for less long.
ADVISER: Final[Asking] = {**ACTOR, "timeout_s": 120.0, "patience_s": 600.0, "attempts": 5}
QUICK: Final[Asking] = {**ACTOR, "timeout_s": 60.0, "patience_s": 300.0, "attempts": 5}


def endpoint(
    base_url: str, model: str, revision: str | None, key_env: str | None, defaults: Asking, asking: Asking
) -> Endpoint:
    """The endpoint of a plugin."""
    whole: Asking = {**defaults, **asking}
    return Endpoint(base_url, model, revision, key_env, **whole)
