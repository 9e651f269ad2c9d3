"""Style: colours, markers and dashes of methods, the same in every figure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from harness.colours import METHODS, colour
from reports.frames import Tracked

MARKERS: Final = "osD^vPX"
DASHES: Final = ("-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1)), (0, (1, 1)))


def tint(source: Tracked, method: str) -> str:
    """The colour of a method among all those of its study."""
    return colour(method, {cell.method for cell in source.cells})


def marker(method: str, methods: Sequence[str]) -> str:
    """The marker of a method: by its place among all known ones, else among those shown."""
    return MARKERS[_place(method, methods) % len(MARKERS)]


def dashes(method: str, methods: Sequence[str]) -> Any:
    """The dash pattern of a method's line, chosen as its marker is: colour is never the only difference."""
    return DASHES[_place(method, methods) % len(DASHES)]


def _place(method: str, methods: Sequence[str]) -> int:
    names = list(METHODS)
    return names.index(method.lower()) if method.lower() in names else list(methods).index(method)
