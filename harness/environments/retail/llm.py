"""A language model as customer, and one as judge, over any OpenAI-compatible endpoint.

The prompts are written anew to upstream's contract: the customer follows its scenario, tells things when asked, never
makes anything up, and ends with one of three tokens; the judge answers each assertion with yes or no.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from harness.environments.retail.data import Task
from harness.environments.retail.endpoint import Endpoint
from harness.environments.retail.scoring import Message, Ruling
from harness.environments.retail.user import Reply, split_ending
from harness.seeds import seed_of

USER_PROMPT = """You play a customer who is in a chat with the support agent of an online shop. Stay in this role.
What you know and want is in the scenario below; nobody else can see it.

How to behave:
- Write one chat message at a time, in your own words; never copy sentences of the scenario.
- Do not tell everything at once. Give a detail when the agent asks for it or when the scenario says so.
- Use only what the scenario says. If you are asked for something it does not say, you do not know it.
- When everything you wanted is settled, add ###STOP### to your message.
- When the agent says that it transfers you to a human, answer with ###TRANSFER###.
- When the scenario gives you no way to go on, answer with ###OUT-OF-SCOPE###.

Scenario
Why you write: {reason}
What you know: {known}
What you do not know: {unknown}
How you are and what to mind: {instructions}"""

JUDGE_PROMPT = """You check a finished support conversation against a list of statements about the agent.
Decide each statement on its own, only from what the conversation shows.
Answer with one JSON object and nothing else: {"met": [true or false, one for each statement, in the given order]}"""

_FIRST = "Hi! How can I help you today?"
_OBJECT = re.compile(r"\{.*\}", re.DOTALL)


class LLMUser:
    """A customer played by a language model; the messages are its whole state."""

    simulated = "LLM user"

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint = endpoint
        self._messages: tuple[tuple[str, str], ...] = ()
        self._seed = 0

    def opening(self, task: Task, seed: int) -> Reply:
        told = task.scenario
        prompt = USER_PROMPT.format(
            reason=told.reason,
            known=told.known or "nothing else",
            unknown=told.unknown or "nothing in particular",
            instructions=told.instructions.strip(". \n") or "nothing in particular",
        )
        self._messages, self._seed = (("system", prompt),), seed
        return self.reply(_FIRST)

    def reply(self, message: str) -> Reply:
        asked = (*self._messages, ("user", message))
        text, usage, seconds = self.endpoint.complete(
            [{"role": role, "content": content} for role, content in asked],
            seed_of(part="LLM user", seed=self._seed, turn=len(asked)),
            "simulator",
        )
        self._messages = (*asked, ("assistant", text))
        said, ended = split_ending(text)
        return Reply(said, ended, usage, seconds)

    def snapshot(self) -> object:
        return self._messages, self._seed

    def restore(self, snapshot: object) -> None:
        self._messages, self._seed = snapshot  # type: ignore[misc]


class LLMJudge:
    """A judge of assertions played by a language model."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint = endpoint
        self.label = endpoint.model

    def rule(self, messages: Sequence[Message], assertions: Sequence[str]) -> Ruling:
        talk = "\n".join(f"{role}: {text}" for role, text in messages)
        listed = "\n".join(f"{number}. {text}" for number, text in enumerate(assertions, 1))
        text, usage, seconds = self.endpoint.complete(
            [
                {"role": "system", "content": JUDGE_PROMPT},
                {"role": "user", "content": f"Conversation\n{talk}\n\nStatements\n{listed}"},
            ],
            seed_of(part="retail judge"),
            "environment",
        )
        return Ruling(_verdicts(text), usage, seconds)


def _verdicts(text: str) -> tuple[bool, ...]:
    found = _OBJECT.search(text)
    try:
        met: Any = json.loads(found.group(0)).get("met") if found else None
    except (ValueError, RecursionError):
        met = None
    return tuple(met) if isinstance(met, list) and all(isinstance(item, bool) for item in met) else ()
