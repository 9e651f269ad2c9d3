"""What a customer is to the environment: a small protocol, so that a script, a model or a test can play it.

A simulator keeps its own state and must hand it out as an immutable value, so that a restore is exact and costs no
model call: the replies given so far are never asked for again.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, Protocol

from harness.environments.retail.data import Task
from harness.records import Usage

Ending = Literal["", "stop", "transfer", "out_of_scope"]
TRANSFER_PHRASE = "YOU ARE BEING TRANSFERRED TO A HUMAN AGENT"
AGENT_STOP = "###STOP###"
TOKENS: dict[str, Ending] = {
    "###STOP###": "stop",
    "###TRANSFER###": "transfer",
    "###OUT-OF-SCOPE###": "out_of_scope",
}


@dataclass(frozen=True, slots=True)
class Reply:
    """One message of the customer; `ended` says that it ends the conversation. `usage` None-fields are unknown."""

    text: str
    ended: Ending = ""
    usage: Usage = field(default_factory=Usage)
    seconds: float = 0.0


class UserSimulator(Protocol):
    """A customer for one conversation at a time."""

    simulated: str  # label: "user" for a script, "LLM user" for a model

    def opening(self, task: Task, seed: int) -> Reply:
        """Begin a conversation: the first message, decided by task and seed."""

    def reply(self, message: str) -> Reply:
        """Answer the agent's message. May raise `EpisodeError` with the boundary "simulator"."""

    def snapshot(self) -> object:
        """The state of the conversation as an immutable value."""

    def restore(self, snapshot: object) -> None:
        """Back to a snapshot."""


def split_ending(text: str) -> tuple[str, Ending]:
    """The message without its end token, and the ending that the token says."""
    ending: Ending = ""
    for token, meaning in TOKENS.items():
        if token in text:
            text, ending = text.replace(token, ""), ending or meaning
    return text.strip(), ending
