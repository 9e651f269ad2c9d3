"""Mock actor: walks right; for tests and for measuring the harness itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from harness.protocols import Mind
from harness.records import Advice, DecisionState, Proposal


class MockActor:
    """Mock: proposes the same action for ever (simulated)."""

    simulated = True
    estimate: ClassVar[Mapping[str, float]] = {"calls": 0, "seconds": 0.0001}

    def __init__(self, action: str = "right") -> None:
        self.action = action

    def propose(self, state: DecisionState, mind: Mind) -> Proposal:
        return Proposal(mind.parse(self.action), "on and on")

    def replan(self, state: DecisionState, proposal: Proposal, advice: Advice, mind: Mind) -> Proposal:
        return proposal
