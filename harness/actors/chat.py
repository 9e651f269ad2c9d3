"""Chat actor: ReAct over any OpenAI-compatible endpoint, one action a turn.

It holds no state: each proposal is built from the decision state and the actor's own past thoughts, so it can answer
from any prefix.  Sampling is seeded from the episode's stream.  An answer from which no action can be read is asked for
once more (`format_retries`), then it is an `IllegalAction`, which the loop records as `unparsed`; trouble with the
endpoint is an `EpisodeError` of the actor and never a score.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from harness.actors import history, prompting
from harness.actors.history import Message
from harness.actors.parsing import Reading, read
from harness.actors.toolschemas import native_tools
from harness.errors import EpisodeError, IllegalAction, UsageError, nearest
from harness.models.answer import Completion
from harness.models.client import Endpoint
from harness.models.errors import ContextTooLong, ModelError, ModelTimeout
from harness.models.thinking import STYLES, thinking_fields
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


class ChatActor:
    """Language model over an OpenAI-compatible endpoint (vLLM, DeepSeek, others), prompted by ReAct.

    Args:
        base_url: address up to and including `/v1`.
        model: name the server knows the model by.
        revision: which weights are served under that name; part of the identity.
        key_env: name of the environment variable that holds the key; the key itself is never stored.
        temperature: sampling temperature.
        top_p: nucleus of sampling.
        max_tokens: tokens of one answer, thinking included.
        thinking: switch thinking on or off where the model can (None: as the server does).
        thinking_style: how a server is told so: `template` (vLLM, Qwen3) or `deepseek`.
        prompts: folder with replacements for the built-in prompt files.
        native_tools: offer tools as such instead of in the text (environments with tool schemas only).
        context_tokens: context of the model; older steps are left out to fit (None: only when the server objects).
        format_retries: further answers asked for when no action can be read.
        extra: more fields of the request, such as `{"top_k": 20}`.
        timeout_s: seconds of one attempt.
        patience_s: seconds of one call with all its waiting.
        attempts: faults forgiven in one call; rate limits do not count.
        max_in_flight: ceiling of the adaptive limit of this address, for each process.
        cache: keep answers and reuse them.
    """

    simulated = False
    version: ClassVar[str] = "1"
    throughput: ClassVar[tuple[str, ...]] = (
        "base_url",
        "key_env",
        "timeout_s",
        "patience_s",
        "attempts",
        "max_in_flight",
        "cache",
    )

    def __init__(
        self,
        base_url: str,
        model: str,
        revision: str | None = None,
        key_env: str | None = None,
        temperature: float = 0.2,
        top_p: float = 1.0,
        max_tokens: int = 1024,
        thinking: bool | None = None,
        thinking_style: str = "template",
        prompts: str | None = None,
        native_tools: bool = False,
        context_tokens: int | None = None,
        format_retries: int = 1,
        extra: Mapping[str, Any] | None = None,
        timeout_s: float = 180.0,
        patience_s: float = 1800.0,
        attempts: int = 8,
        max_in_flight: int = 256,
        cache: bool = False,
    ) -> None:
        if thinking_style not in STYLES:
            raise UsageError(f"chat: unknown thinking_style {thinking_style!r}.{nearest(thinking_style, STYLES)}")
        self.endpoint = Endpoint(
            base_url, model, revision, key_env, timeout_s, patience_s, attempts, max_in_flight, cache
        )
        self.style = history.Style(prompts, native_tools)
        self.context_tokens = context_tokens
        self.max_tokens = max_tokens
        self.format_retries = format_retries
        self.sampling: dict[str, Any] = {"temperature": temperature, "top_p": top_p, "max_tokens": max_tokens}
        if not thinking and not native_tools:
            self.sampling["stop"] = ["\nObservation:"]  # a thinking model may write this and go on
        self.sampling |= thinking_fields(thinking, thinking_style) | dict(extra or {})

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
                return self.endpoint.complete(self._request(state, messages), seed, talk.mind.deadline, draw)
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

    def _request(self, state: DecisionState, messages: Sequence[Message]) -> dict[str, Any]:
        request: dict[str, Any] = {"messages": list(messages), **self.sampling}
        tools = native_tools(state.observation.schemas) if self.style.native else ()
        return request | {"tools": list(tools), "tool_choice": "auto"} if tools else request


def _length(messages: Sequence[Message]) -> int:
    return sum(
        len(str(message.get("content") or "")) + len(str(message.get("tool_calls") or "")) for message in messages
    )
