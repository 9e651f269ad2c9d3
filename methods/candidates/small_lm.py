"""Small-LM candidates: a compact generator proposes actions under several decision modes (paper appendix B.6).

The answer is begun for the model: a heading that says the mode and a few executable actions as a list, which it goes
on with.  A model of 135 M parameters that chats about actions when asked for one writes well-formed ones this way.
Each line is parsed by the environment and kept when it is legal and new; what is not is counted by reason.  The
generator never votes: what it writes is only ever one of the things that are compared.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from harness.errors import IllegalAction, UsageError
from harness.protocols import Desk
from harness.seeds import seed_of, stream
from methods.candidates.drawn import Drawn, Sieve
from methods.candidates.generation import Samples, generator

MODES = {
    "information": "Actions that find out something still unknown",
    "progress": "Actions that bring the task forward",
    "recovery": "Actions that repair a mistake or try another way",
    "distinct": "Actions that are quite different from: {proposal}",
}
SYSTEM = (
    "You list possible next actions for an interactive agent, each on a line of its own, in the form of the examples."
)
PROMPT = """\
{view}

List actions that could be executed now."""
EXAMPLES = 3
_PLACEHOLDER = re.compile(r"<[a-z_ ]+>|\.\.\.")  # the form of an action copied instead of an action


class SmallLMCandidates:
    """Actions proposed by a small language model under several decision modes; validity-filtered, never votes.

    Args:
        model: "smollm2", a folder, or a name on the model hub (the paper: Qwen/Qwen2.5-0.5B-Instruct).
        revision: of a hub model.
        modes: which of information, progress, recovery, distinct, in the order they are used.
        rounds: how often all modes are asked at most while candidates are missing.
        tokens: at most so many new tokens an answer.
        temperature: of sampling.
        top_p: nucleus of sampling.
        device: auto, cpu or cuda.
        dtype: auto (bfloat16 on a GPU, else float32) or a type.
        prompt: file with a user message of one's own, with the placeholder {view}.
    """

    version: ClassVar[str] = "1"
    throughput: ClassVar[tuple[str, ...]] = ("device",)
    estimate: ClassVar[Mapping[str, float]] = {"calls": 1, "prompt": 3000, "completion": 60, "seconds": 1.0}

    def __init__(
        self,
        model: str = "smollm2",
        revision: str | None = None,
        modes: Sequence[str] = tuple(MODES),
        rounds: int = 2,
        tokens: int = 64,
        temperature: float = 0.8,
        top_p: float = 0.95,
        device: str = "auto",
        dtype: str = "auto",
        prompt: str | None = None,
    ) -> None:
        self.model = model
        self.revision = revision
        self.modes = modes
        self.rounds = rounds
        self.tokens = tokens
        self.temperature = temperature
        self.top_p = top_p
        self.device = device
        self.dtype = dtype
        self.prompt = prompt

    def draw(self, desk: Desk, k: int) -> Drawn:
        """Up to k actions in the order of modes and rounds, from `desk.seed` alone; tokens go to the desk."""
        sieve = Sieve(desk, k, "small-lm")
        user = self._template().replace("{view}", desk.question().view)
        for number in range(self.rounds):
            if sieve.full:
                break
            seed = seed_of(role="small-lm-candidates", seed=desk.seed, round=number)
            settings = (seed, self.tokens, self.temperature, self.top_p)
            answer = self._generator(desk.deadline).sample(SYSTEM, user, self._leads(desk, seed), *settings)
            desk.count(answer.usage)
            for text in answer.texts:
                if not sieve.full:
                    _offer(desk, sieve, text)
        return sieve.drawn()

    def _generator(self, deadline: float | None) -> Samples:
        """What samples; a model here cannot stop in the middle, so `deadline` is for one behind an endpoint."""
        return generator(self.model, self.revision, self.device, self.dtype)

    def _leads(self, desk: Desk, seed: int) -> list[str]:
        unknown = [mode for mode in self.modes if mode not in MODES]
        if unknown or not self.modes:
            raise UsageError(f"candidates 'small-lm': modes {unknown} are unknown. Valid: {', '.join(MODES)}.")
        proposal = desk.proposal.action
        others = sorted(action.text for action in desk.pool() if action.canonical != proposal.canonical)
        shown = stream(role="small-lm-examples", seed=seed).sample(others, min(EXAMPLES, len(others)))
        listed = "".join(f"- {text}\n" for text in shown)
        return [f"{MODES[mode].replace('{proposal}', proposal.text)}:\n{listed}-" for mode in self.modes]

    def _template(self) -> str:
        if self.prompt is None:
            return PROMPT
        try:
            text = Path(self.prompt).read_text(encoding="utf-8")
        except OSError as error:
            raise UsageError(f"Cannot read the prompt file {self.prompt!r}: {error.strerror or error}.") from error
        if "{view}" not in text:
            raise UsageError(f"The prompt file {self.prompt!r} lacks the placeholder {{view}}.")
        return text


def _offer(desk: Desk, sieve: Sieve, text: str) -> None:
    if _PLACEHOLDER.search(text):
        sieve.refuse("placeholder")
        return
    try:
        sieve.offer(desk.parse(text.strip("-* \t`")))
    except IllegalAction:
        sieve.refuse("unparsed")
