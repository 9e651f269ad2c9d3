"""Chat actor: a language model behind any OpenAI-compatible endpoint, one action a turn.

`choice: legal` is for models too small to keep a form, on servers that can go on with a begun answer (vLLM, SGLang):
the thought is begun for the model and written freely, then the action is begun and, where the executable actions are
listed, decoded under the constraint that it is one of them; where all that can be done is one open-ended action such
as `search[...]`, that one is begun.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Unpack

from harness.actors.history import Message, Style, begun_action
from harness.actors.react import ReActActor
from harness.actors.toolschemas import native_tools
from harness.errors import UsageError, nearest
from harness.models.answer import Completion
from harness.models.asking import ACTOR, THROUGHPUT, Asking, endpoint
from harness.models.thinking import STYLES, thinking_fields
from harness.protocols import Mind
from harness.records import DecisionState, Observation

CHOICES = ("free", "legal")


class ChatActor(ReActActor):
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
        choice: `free`, or `legal`: thought and action are begun for the model and the action is one of those listed.
        extra: more fields of the request, such as `{"top_k": 20}`.
        asking: as in `harness.models.asking`: timeout_s, patience_s, attempts, max_in_flight, cache.
    """

    version: ClassVar[str] = "1"
    # A step in the middle of a WebShop episode; paper table 11 has 2,800 tokens a step.
    estimate: ClassVar[Mapping[str, float]] = {"calls": 1, "prompt": 2700, "completion": 100, "seconds": 3.0}
    throughput: ClassVar[tuple[str, ...]] = THROUGHPUT
    passes_on: ClassVar[Asking] = ACTOR

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
        choice: str = "free",
        extra: Mapping[str, Any] | None = None,
        **asking: Unpack[Asking],
    ) -> None:
        if thinking_style not in STYLES:
            raise UsageError(f"chat: unknown thinking_style {thinking_style!r}.{nearest(thinking_style, STYLES)}")
        if choice not in CHOICES or (choice == "legal" and native_tools):
            raise UsageError(
                f"chat: choice {choice!r} is not possible here (not with native_tools).{nearest(choice, CHOICES)}"
            )
        self.choice = choice
        self.endpoint = endpoint(base_url, model, revision, key_env, self.passes_on, asking)
        super().__init__(Style(prompts, native_tools), max_tokens, context_tokens, format_retries)
        self.sampling: dict[str, Any] = {"temperature": temperature, "top_p": top_p, "max_tokens": max_tokens}
        if not thinking and not native_tools:
            self.sampling["stop"] = ["\nObservation:"]  # a thinking model may write this and go on
        self.sampling |= thinking_fields(thinking, thinking_style) | dict(extra or {})

    def complete(
        self, state: DecisionState, messages: Sequence[Message], mind: Mind, seed: int, draw: int
    ) -> Completion:
        """Ask the endpoint. Raises as `Endpoint.complete`."""
        if self.choice == "legal":
            return self._choose(messages, state.observation, seed, mind.deadline, draw)
        request: dict[str, Any] = {"messages": list(messages), **self.sampling}
        tools = native_tools(state.observation.schemas) if self.style.native else ()
        if tools:
            request |= {"tools": list(tools), "tool_choice": "auto"}
        return self.endpoint.complete(request, seed, mind.deadline, draw)

    def _choose(
        self, messages: Sequence[Message], can: Observation, seed: int, deadline: float | None, draw: int
    ) -> Completion:
        """A thought, then the action."""
        thought = self._go_on(messages, "Thought:", {"stop": ["\nAction", "\nObservation:"]}, seed, deadline, draw)
        said = f"Thought: {thought.text.strip()}\nAction:"
        head, end = begun_action(can)
        form: dict[str, Any] = {"stop": [end, "\n"] if end else ["\n"]}
        if can.actions:
            form = {"structured_outputs": {"choice": [f" {text}" for text in can.actions]}}
        action = self._go_on(messages, said + head, form, seed, deadline, draw)
        text = f"{said}{head or ' '}{action.text.strip()}{end}"
        return replace(action, text=text, usage=thought.usage + action.usage)

    def _go_on(
        self,
        messages: Sequence[Message],
        begun: str,
        form: Mapping[str, Any],
        seed: int,
        until: float | None,
        draw: int,
    ) -> Completion:
        """What the model adds to an answer that was begun for it."""
        own = {"role": "assistant", "content": begun}
        request = {"messages": [*messages, own], **self.sampling, **form}
        request |= {"continue_final_message": True, "add_generation_prompt": False}
        return self.endpoint.complete(request, seed, until, draw)
