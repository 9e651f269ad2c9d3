"""Interventions: what is done with a panel's winners.

Constructive: the proposal is withheld, the ranked winners are shown as non-binding advice, the actor answers again
(paper section 2, appendix B.7).  Forced: the best winner is executed in the proposal's place.
"""

from __future__ import annotations

from pathlib import Path
from string import Template

from harness.errors import UsageError
from harness.protocols import Desk, Execute, Verdict, Withhold
from harness.records import Action, Advice, Review
from methods.panel import Panel

ADVICE = """\
[ADVICE BEFORE EXECUTION]
You were about to execute: $proposal
It has not been executed. Compared one by one, these executable actions look like better next steps, best first:
$alternatives
This is a recommendation, not an order. Look at the current state again and give the one action that you really want
executed now: one of these, your original action, or another one."""


def message_template(path: str | None) -> str:
    """The advice text: the built-in one, or a user's file with $proposal and $alternatives."""
    if path is None:
        return ADVICE
    try:
        text = Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise UsageError(f"Cannot read the prompt file {path!r}: {error.strerror or error}.") from error
    missing = [name for name in ("$proposal", "$alternatives") if name not in text]
    if missing:
        raise UsageError(f"The prompt file {path!r} lacks the placeholder(s) {', '.join(missing)}.")
    return text


def _evidence(desk: Desk, panel: Panel, advice: Advice | None = None) -> Review:
    return Review(
        proposal=desk.proposal.action,
        candidates=panel.candidates,
        votes=panel.votes,
        scores=panel.scores,
        fired=panel.fired,
        message=advice.message if advice else "",
        recommended=panel.recommended,
        fail_open=panel.causes,
        comparisons=panel.comparisons,
        usage=panel.usage,
    )


def advice_of(proposal: Action, winners: tuple[Action, ...], template: str) -> Advice:
    """The structured message of a constructive intervention."""
    listed = "\n".join(f"{rank}. {action.text}" for rank, action in enumerate(winners, 1))
    return Advice(Template(template).safe_substitute(proposal=proposal.text, alternatives=listed), winners)


def constructive(desk: Desk, panel: Panel, template: str = ADVICE) -> Verdict:
    """Withhold and advise when the gate fired."""
    if not panel.fired:
        return Execute(desk.proposal.action, _evidence(desk, panel))
    advice = advice_of(desk.proposal.action, panel.recommended, template)
    return Withhold(advice, _evidence(desk, panel, advice))


def forced(desk: Desk, panel: Panel) -> Verdict:
    """Execute the best winner when the gate fired."""
    chosen = panel.recommended[0] if panel.fired else desk.proposal.action
    return Execute(chosen, _evidence(desk, panel))
