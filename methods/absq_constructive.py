"""AbsQ-Constructive: actions of higher estimated Q, shown as non-binding advice (paper section 4.4, table 2)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal

from methods._two_by_two import TITLE, JudgeAndAct


class AbsQConstructive(JudgeAndAct):
    """AbsQ-Constructive: actions of higher estimated Q, shown as non-binding advice."""

    judge: ClassVar[Literal["pairwise", "absolute"]] = "absolute"
    intervention: ClassVar[Literal["forced", "constructive"]] = "constructive"
    paper: ClassVar[Mapping[str, str]] = {
        "title": TITLE,
        "section": "section 4.4, table 2",
        "defaults": "K and R as for COTA: section 4.4",
    }
    needs: ClassVar[frozenset[str]] = frozenset({"critic", "candidates"})
    # The actor answers again at about a third of the steps (paper figure 1 and table 8).
    estimate: ClassVar[Mapping[str, float]] = {"turns": 0.35}
