"""Style: colours and markers of methods, the same in every figure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from harness.colours import METHODS, colour

__all__ = ["colour", "marker"]

MARKERS: Final = "osD^vPX"


def marker(method: str, methods: Sequence[str]) -> str:
    """The marker of a method: by its place among all known ones, else among those shown."""
    names = list(METHODS)
    at = names.index(method.lower()) if method.lower() in names else list(methods).index(method)
    return MARKERS[at % len(MARKERS)]
