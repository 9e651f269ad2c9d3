"""AgentPRM: execute the action of highest estimated Q; exact ties keep the proposal (paper appendix B.7, table 1)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal

from methods._two_by_two import TITLE, JudgeAndAct


class AgentPRM(JudgeAndAct):
    """AgentPRM: execute the action of highest estimated Q; exact ties keep the proposal."""

    judge: ClassVar[Literal["pairwise", "absolute"]] = "absolute"
    intervention: ClassVar[Literal["forced", "constructive"]] = "forced"
    paper: ClassVar[Mapping[str, str]] = {
        "title": TITLE,
        "section": "appendix B.7, table 1",
        "defaults": "K=4 as for COTA; argmax, so R=1: appendix B.7",
    }
    needs: ClassVar[frozenset[str]] = frozenset({"critic", "candidates"})
    estimate: ClassVar[Mapping[str, float]] = {}
