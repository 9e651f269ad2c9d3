"""Asym-AC: a separate zero-shot critic writes free-form feedback, then the actor revises once (paper 4.1, B.7).

The critic sees task, executed trajectory, current state and affordances, and the proposal; on Retail its view holds
policy and tool arguments too.  It is given no candidates and makes none up.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from harness.protocols import Desk, Execute, Verdict, Withhold
from harness.records import Advice, DecisionState, Proposal, Review
from methods._two_by_two import TITLE
from methods.failopen import cause_of

SYSTEM = """\
You check the next action of an interactive agent before it is executed. Use only what is given: the task, what was
executed and observed, the present state with what can be done in it, and the proposed action. Say in at most three
sentences what is wrong with the action, if anything is: not executable, not grounded in an observation, a repetition,
against the rules, or no progress. If it is fine, say so. Do not list alternatives that were not given to you."""
USER = """\
{view}

Proposed action (not executed): {proposal}

Your feedback:"""
MESSAGE = """\
[FEEDBACK BEFORE EXECUTION]
Your action has not been executed yet: {proposal}
A critic says: {feedback}
Consider this and give the one action to execute now; it may be the same."""


class AsymAC:
    """Asym-AC: free-form feedback by a separate critic model, then one revision turn of the actor.

    Args:
        max_feedback: characters of feedback shown to the actor; the rest is cut.
    """

    paper: ClassVar[Mapping[str, str]] = {
        "title": TITLE + "; Asym-AC as its baseline",
        "section": "4.1, appendix B.7",
        "defaults": "one revision turn a step: appendix B.7; feedback length is ours",
    }
    needs: ClassVar[frozenset[str]] = frozenset({"adviser"})
    estimate: ClassVar[Mapping[str, float]] = {"turns": 1}

    def __init__(self, max_feedback: int = 1200) -> None:
        self.max_feedback = max_feedback

    def review(self, state: DecisionState, proposal: Proposal, desk: Desk) -> Verdict:
        """Feedback on the first proposal of a step; the revision is executed as it is."""
        action = proposal.action
        if desk.attempt > 0:
            return Execute(action, Review(action))
        user = USER.format(view=desk.question().view, proposal=action.text)
        try:
            text, usage = desk.adviser().feedback(SYSTEM, user, desk.seed, desk.deadline)
        except Exception as error:  # noqa: BLE001  fails open, counted by cause
            return Execute(action, Review(action, fail_open=(cause_of(error, "critic"),)))
        feedback = " ".join(text.split())[: self.max_feedback] if isinstance(text, str) else ""
        if not feedback:
            cause = "critic:empty" if isinstance(text, str) else "critic:malformed"
            return Execute(action, Review(action, fail_open=(cause,), usage=usage))
        message = MESSAGE.format(proposal=action.text, feedback=feedback)
        advice = Advice(message, kind="feedback")
        return Withhold(advice, Review(action, fired=True, message=message, usage=usage))
