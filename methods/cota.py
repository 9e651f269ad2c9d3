"""COTA: a comparator's winners, shown as non-binding advice (paper section 3.1, table 1)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal

from methods._two_by_two import TITLE, JudgeAndAct


class Cota(JudgeAndAct):
    """COTA: a comparator's winners, shown as non-binding advice."""

    judge: ClassVar[Literal["pairwise", "absolute"]] = "pairwise"
    intervention: ClassVar[Literal["forced", "constructive"]] = "constructive"
    paper: ClassVar[Mapping[str, str]] = {
        "title": TITLE,
        "section": "section 3.1, table 1",
        "defaults": "K=4, R=1 (WebShop, ALFWorld) and K=4, R=2 (Retail): section 4.2 and table 5",
    }
    needs: ClassVar[frozenset[str]] = frozenset({"comparator", "candidates"})
    # The actor answers again at about a third of the steps (paper figure 1 and table 8).
    estimate: ClassVar[Mapping[str, float]] = {"turns": 0.35}
