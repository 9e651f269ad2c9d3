"""Self-Reflection: one conservative self-check by the actor before execution (paper section 4.1, appendix B.7).

The default is to keep; a malformed or illegal revision fails open.  A proposal that is a tool call stays one: a
revision that only talks to the user about it is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from harness.errors import UsageError
from harness.protocols import Desk, Execute, Verdict
from harness.records import Action, Advice, DecisionState, Proposal, Review
from methods._two_by_two import TITLE
from methods.failopen import cause_of

SELF_CHECK = """\
[SELF-CHECK BEFORE EXECUTION]
Your last action has not been executed yet. Check it once. Keep it unless you can name a definite error: it is not
executable here, it repeats what was already done, it refers to something that was not observed, it breaks a rule, or
it does not serve the task, and you know an executable action that is clearly better. If in doubt, keep it.
Answer with exactly one action: the original one, or its replacement."""
TOOL_RULE = """
A tool call stays exactly one tool call that is still to be executed; do not say that it has been carried out."""
TALK = "respond("


class SelfReflection:
    """Self-Reflection: the actor checks its own proposal once; the default is to keep it."""

    paper: ClassVar[Mapping[str, str]] = {
        "title": TITLE,
        "section": "4.1, appendix B.7",
        "defaults": "one check a step: appendix B.7",
    }
    estimate: ClassVar[Mapping[str, float]] = {"turns": 1, "seconds": 0.0001}
    needs: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, prompt_file: str | None = None) -> None:
        self.prompt_file = prompt_file

    def review(self, state: DecisionState, proposal: Proposal, desk: Desk) -> Verdict:
        """Ask the actor once; execute what it says if that is one legal action of the same kind."""
        tool_call = proposal.action.text.rstrip().endswith(")") and not proposal.action.text.startswith(TALK)
        message = self._prompt() + (TOOL_RULE if tool_call else "")
        try:
            revised = desk.ask_actor(Advice(message, kind="self_check")).action
            trouble = self._refusal(revised, tool_call, desk)
        except Exception as error:  # noqa: BLE001  fails open, counted by cause
            revised, trouble = proposal.action, cause_of(error, "revision")
        chosen = proposal.action if trouble else revised
        changed = chosen.canonical != proposal.action.canonical
        evidence = Review(
            proposal.action,
            message=message,
            fired=changed,
            response="novel" if changed else "keep",
            fail_open=(trouble,) if trouble else (),
        )
        return Execute(chosen, evidence)

    @staticmethod
    def _refusal(revised: Action, tool_call: bool, desk: Desk) -> str | None:
        if not desk.legal(revised):
            return "revision:illegal"
        if tool_call and revised.text.startswith(TALK):
            return "revision:tool_call_dropped"
        return None

    def _prompt(self) -> str:
        if self.prompt_file is None:
            return SELF_CHECK
        try:
            return Path(self.prompt_file).read_text(encoding="utf-8")
        except OSError as error:
            raise UsageError(f"Cannot read the prompt file {self.prompt_file!r}: {error.strerror or error}.") from error
