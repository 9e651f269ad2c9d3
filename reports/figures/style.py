"""Style: one colour and marker a method everywhere, safe for colour-blind readers (Okabe-Ito)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from harness.seeds import seed_of

COLOURS: Final = {
    "origin": "#6b6b6b",
    "cota": "#0072b2",
    "agentprm": "#d55e00",
    "absq-constructive": "#009e73",
    "pairwise-forced": "#cc79a7",
    "self-reflection": "#e69f00",
    "asym-ac": "#56b4e9",
}
MARKERS: Final = "osD^vPX"
OTHERS: Final = ("#999933", "#882255", "#44aa99", "#332288", "#aa4499")


def colour(method: str) -> str:
    """The colour of a method label; one that is not known here gets one of its own from its name."""
    return COLOURS.get(method.lower(), OTHERS[seed_of(colour=method.lower()) % len(OTHERS)])


def marker(method: str, methods: Sequence[str]) -> str:
    """The marker of a method: by its place among all known ones, else among those shown."""
    names = list(COLOURS)
    at = names.index(method.lower()) if method.lower() in names else list(methods).index(method)
    return MARKERS[at % len(MARKERS)]
