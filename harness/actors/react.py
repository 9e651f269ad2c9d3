"""ReAct: how a prompted language model decides, wherever the model runs.

An actor of this kind holds no state: each proposal is built from the decision state and the actor's own past thoughts,
so it can answer from any prefix.  Sampling is seeded from the episode's stream.  An answer from which no action can be
read is asked for again (`format_retries` times), then it is an `IllegalAction`, which the loop records as `unparsed`;
trouble with the model is an `EpisodeError` of the actor and never a score.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass

from harness.actors import history, prompting
from harness.actors.history import Message
from harness.actors.parsing import Reading, read
from harness.errors import EpisodeError, IllegalAction
from harness.models.answer import Completion
from harness.models.errors import ContextTooLong, ModelError, ModelTimeout
from harness.protocols import Mind
from harness.records import Advice, DecisionState, Proposal, Usage
from harness.seeds import seed_of

log = logging.getLogger(__name__)


class NoAction(IllegalAction):
    """No action in the answers of one decision; `usage` is what they cost."""

    def __init__(self, problem: str, usage: Usage) -> None:
        super().__init__(problem)
        self.usage = usage


class ActorFailed(EpisodeError):
    """The endpoint failed; `usage` is what earlier answers of the same decision cost."""

    def __init__(self, error: ModelError, usage: Usage) -> None:
        super().__init__("actor", str(error), "timeout" if isinstance(error, ModelTimeout) else "failed")
        self.usage = usage


@dataclass
class Talk:
    """One decision's exchange with the model."""

    mind: Mind
    tail: list[Message]
    dropped: int
    usage: Usage


class ReActActor:
    """Base of prompted actors: subclasses say how one list of messages is completed."""

    simulated = False

    def __init__(self, style: history.Style, max_tokens: int, context_tokens: int | None, format_retries: int) -> None:
        self.style = style
        self.max_tokens = max_tokens
        self.context_tokens = context_tokens
        self.format_retries = format_retries

    def complete(
        self, state: DecisionState, messages: Sequence[Message], mind: Mind, seed: int, draw: int
    ) -> Completion:
        """One completion. Raises `ModelError`, or `UsageError` for what the user has to change."""
        raise NotImplementedError

    def identity(self) -> dict[str, str]:
        """What decides outcomes besides the parameters: the prompt texts in effect."""
        return {"prompts": prompting.identity(self.style.prompts)}

    def propose(self, state: DecisionState, mind: Mind) -> Proposal:
        """The model's next action. Raises `IllegalAction` (unparsed) or `EpisodeError` (endpoint)."""
        return self._decide(state, mind, [])

    def replan(self, state: DecisionState, proposal: Proposal, advice: Advice, mind: Mind) -> Proposal:
        """The model's answer to advice, feedback or a self-check about its unexecuted proposal."""
        text = advice.message
        if not self.style.native:
            text = prompting.turn(self.style.prompts, "revise", message=text)
        return self._decide(
            state, mind, history.asked_again(proposal.action, proposal.thought, text, self.style, state.step)
        )

    def _decide(self, state: DecisionState, mind: Mind, tail: list[Message]) -> Proposal:
        talk = Talk(mind, list(tail), 0, Usage())
        for draw in range(self.format_retries + 1):
            answer = self._ask(state, talk, draw)
            talk.usage = talk.usage + answer.usage
            try:
                found: Reading = read(answer, mind.parse, mind.legal, talk=self.style.native)
            except IllegalAction as error:
                problem = str(error)[:400]
                talk.tail += self._complaint(answer, problem)
                continue
            return Proposal(found.action, history.note(talk.dropped) + found.thought, talk.usage)
        raise NoAction(problem, talk.usage)

    def _complaint(self, answer: Completion, problem: str) -> list[Message]:
        calls = " ".join(f"{call.name}({call.arguments})" for call in answer.tool_calls)
        own = (answer.text.strip() or calls or "(nothing)")[-2_000:]
        text = prompting.turn(self.style.prompts, "reformat", problem=problem)
        return [{"role": "assistant", "content": own}, {"role": "user", "content": text}]

    def _ask(self, state: DecisionState, talk: Talk, draw: int) -> Completion:
        seed = talk.mind.seed if draw == 0 else seed_of(role="format", draw=draw, seed=talk.mind.seed)
        while True:
            messages = self._messages(state, talk)
            try:
                return self.complete(state, messages, talk.mind, seed, draw)
            except ContextTooLong as error:
                if talk.dropped >= state.step:
                    raise ActorFailed(error, talk.usage) from error
                talk.dropped = min(talk.dropped + history.BLOCK, state.step)
                log.info("%s step %d: steps 1 to %d left out", state.task_id, state.step, talk.dropped)
            except ModelError as error:
                raise ActorFailed(error, talk.usage) from error

    def _messages(self, state: DecisionState, talk: Talk) -> list[Message]:
        """Messages that are estimated to fit, with at least the steps left out that already had to be."""
        if self.context_tokens is not None:
            budget = int((self.context_tokens - self.max_tokens) * history.CHARS_PER_TOKEN)
            sizes = history.sizes(state, talk.mind)
            everything = _length([*history.build(state, talk.mind, self.style), *talk.tail])
            talk.dropped = max(talk.dropped, history.fitting(sizes, everything - sum(sizes), budget))
        return [*history.build(state, talk.mind, self.style, talk.dropped), *talk.tail]


def _length(messages: Sequence[Message]) -> int:
    return sum(
        len(str(message.get("content") or "")) + len(str(message.get("tool_calls") or "")) for message in messages
    )
