"""An actor in one file: take the listed actions in turn. It holds no state, so it can answer from any prefix."""

from __future__ import annotations

from harness.errors import IllegalAction
from harness.protocols import Mind
from harness.records import Advice, DecisionState, Proposal


class InTurn:
    """In turn: proposes the next of the listed actions at each step, and adopts advice every other time (a script)."""

    simulated = True  # a script and not a language model: every table says so

    def __init__(self, stubborn: bool = False) -> None:
        self.stubborn = stubborn  # a constructor only stores parameters; the study file sets them

    def propose(self, state: DecisionState, mind: Mind) -> Proposal:
        """The action whose turn it is."""
        listed = state.observation.actions
        if not listed:
            raise IllegalAction("no action is listed here, and this actor can invent none")
        action = mind.parse(listed[state.step % len(listed)])
        return Proposal(action, thought=f"It is the turn of {action.text}.")

    def replan(self, state: DecisionState, proposal: Proposal, advice: Advice, mind: Mind) -> Proposal:
        """The best recommended action, or the old proposal. `mind.seed` is the actor's own random stream."""
        if self.stubborn or not advice.recommended or mind.seed % 2:
            return Proposal(proposal.action, thought="I stay with it.")
        return Proposal(advice.recommended[0], thought="Why not.")
