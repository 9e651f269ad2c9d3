"""Colours: one a method, the same in the tracking page and in figures; safe for colour-blind readers (Okabe-Ito)."""

from __future__ import annotations

from typing import Final

from harness.seeds import seed_of

METHODS: Final = {
    "origin": "#6b6b6b",
    "cota": "#0072b2",
    "agentprm": "#d55e00",
    "absq-constructive": "#009e73",
    "pairwise-forced": "#cc79a7",
    "self-reflection": "#e69f00",
    "asym-ac": "#56b4e9",
}
OTHERS: Final = ("#999933", "#882255", "#44aa99", "#332288", "#aa4499")


def colour(method: str) -> str:
    """The colour of a method label; one that is not known here gets its own from its name."""
    return METHODS.get(method.lower(), OTHERS[seed_of(colour=method.lower()) % len(OTHERS)])
