"""Small-LM candidates: a compact generator proposes actions under several decision modes (paper appendix B.6).

One prompt a mode, the state shared; each answer's first line is parsed by the environment and kept when it is legal
and new.  The generator never votes, and what it writes is only ever one of the things that are compared.  Answers that
are no action are counted by reason: a tiny model writes many.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

from harness.errors import IllegalAction, UsageError
from harness.protocols import Desk
from harness.seeds import seed_of
from methods.candidates.drawn import Drawn, Sieve
from methods.candidates.generation import Generator, generator

MODES = {
    "information": "Suggest an action that finds out something that is still unknown and matters for the task.",
    "progress": "Suggest the action that brings the task forward most directly.",
    "recovery": "Suppose the last steps were a mistake. Suggest an action that repairs it or tries another way.",
    "distinct": "Suggest a sensible action that is quite different from the one below.",
}
SYSTEM = "You suggest one next action for an interactive agent. Answer with the action alone, on one line."
PROMPT = """\
{view}

# How an action is written
{forms}

# Suggestion wanted
{mode} Not this one: {proposal}
Action:"""
_LEAD = re.compile(r"^(?:\W*(?:next )?action\s*[:=-]\s*|[-*>\"'`\s]+|\d+[.)]\s+)+", re.IGNORECASE)


class SmallLMCandidates:
    """Actions proposed by a small language model under several decision modes; validity-filtered, never votes.

    Args:
        model: "smollm2", a folder, or a model name that transformers knows.
        modes: which of information, progress, recovery, distinct, in the order they are used.
        rounds: how often all modes are asked at most while candidates are missing.
        tokens: at most so many new tokens an answer.
        temperature: of sampling.
        top_p: nucleus of sampling.
        prompt: file with a prompt of one's own, with {view}, {forms}, {mode} and {proposal}.
    """

    version: ClassVar[str] = "1"

    def __init__(
        self,
        model: str = "smollm2",
        modes: Sequence[str] = tuple(MODES),
        rounds: int = 2,
        tokens: int = 48,
        temperature: float = 0.8,
        top_p: float = 0.95,
        prompt: str | None = None,
    ) -> None:
        self.model = model
        self.modes = modes
        self.rounds = rounds
        self.tokens = tokens
        self.temperature = temperature
        self.top_p = top_p
        self.prompt = prompt

    def draw(self, desk: Desk, k: int) -> Drawn:
        """Up to k actions in the order of modes and rounds, from `desk.seed` alone; tokens go to the desk."""
        sieve = Sieve(desk, k, "small-lm")
        users = self._prompts(desk)
        for number in range(self.rounds):
            if sieve.full:
                break
            seed = seed_of(role="small-lm-candidates", seed=desk.seed, round=number)
            answer = self._generator().sample(SYSTEM, users, seed, self.tokens, self.temperature, self.top_p)
            desk.count(answer.usage)
            for text in answer.texts:
                if not sieve.full:
                    _offer(desk, sieve, text)
        return sieve.drawn()

    def _generator(self) -> Generator:
        return generator(self.model)

    def _prompts(self, desk: Desk) -> list[str]:
        unknown = [mode for mode in self.modes if mode not in MODES]
        if unknown or not self.modes:
            raise UsageError(f"candidates 'small-lm': modes {unknown} are unknown. Valid: {', '.join(MODES)}.")
        values = {"view": desk.question().view, "forms": _forms(desk), "proposal": desk.proposal.action.text}
        return [_filled(self._template(), {**values, "mode": MODES[mode]}) for mode in self.modes]

    def _template(self) -> str:
        if self.prompt is None:
            return PROMPT
        try:
            text = Path(self.prompt).read_text(encoding="utf-8")
        except OSError as error:
            raise UsageError(f"Cannot read the prompt file {self.prompt!r}: {error.strerror or error}.") from error
        missing = [name for name in ("{view}", "{mode}") if name not in text]
        if missing:
            raise UsageError(f"The prompt file {self.prompt!r} lacks the placeholder(s) {', '.join(missing)}.")
        return text


def _filled(template: str, values: dict[str, Any]) -> str:
    return re.sub(r"\{(\w+)\}", lambda m: str(values.get(m.group(1), m.group(0))), template)


def _forms(desk: Desk) -> str:
    """Up to eight examples of actions here, concrete ones first, and schemas where actions are open-ended."""
    seen = desk.state.observation
    return "\n".join([*seen.actions[:8], *seen.schemas[: 8 - len(seen.actions[:8])]]) or "one line of text"


def _offer(desk: Desk, sieve: Sieve, text: str) -> None:
    line = _LEAD.sub("", text).strip().rstrip("`\"'")
    try:
        sieve.offer(desk.parse(line))
    except IllegalAction:
        sieve.refuse("unparsed")
