"""Colours: one a method, the same in the tracking page and in figures; safe for colour-blind readers (Okabe-Ito)."""

from __future__ import annotations

from collections.abc import Iterable
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


def colour(method: str, beside: Iterable[str] = ()) -> str:
    """The colour of a method label; one that is not known here gets its own from its name.

    `beside` are the methods of the study: where two of them would get one colour, the later in the alphabet takes the
    next that is free, so that the answer depends on the set of methods alone.
    """
    wanted = method.lower()
    if wanted in METHODS:
        return METHODS[wanted]
    names = {wanted, *(name.lower() for name in beside)}
    spare = [tint for name, tint in METHODS.items() if name not in names]
    used: dict[str, str] = {}
    for name in sorted(names - METHODS.keys()):
        first = seed_of(colour=name) % len(OTHERS)
        tints = [*OTHERS[first:], *OTHERS[:first], *spare]
        used[name] = next((tint for tint in tints if tint not in used.values()), OTHERS[first])
    return used[wanted]
