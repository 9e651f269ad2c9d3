"""Pairwise-Forced: execute the top winner of the comparator (paper section 4.4, table 2)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal

from methods._two_by_two import TITLE, JudgeAndAct


class PairwiseForced(JudgeAndAct):
    """Pairwise-Forced: execute the top winner of the comparator."""

    judge: ClassVar[Literal["pairwise", "absolute"]] = "pairwise"
    intervention: ClassVar[Literal["forced", "constructive"]] = "forced"
    paper: ClassVar[Mapping[str, str]] = {
        "title": TITLE,
        "section": "section 4.4, table 2",
        "defaults": "K and R as for COTA: section 4.4",
    }
    needs: ClassVar[frozenset[str]] = frozenset({"comparator", "candidates"})
    estimate: ClassVar[Mapping[str, float]] = {}
