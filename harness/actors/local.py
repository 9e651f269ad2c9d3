"""Local actor: a language model in this process, prompted exactly as the served one.

With `choice: legal` its thought and action are begun for it: it writes the thought freely and then takes the executable
action that is most probable after it (or draws one, by temperature), so it cannot write anything that is no action.
Where no actions are listed it writes one, begun for it when only one kind is possible, such as `search[...]`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from harness.actors.history import Message, Style, begun_action
from harness.actors.react import ReActActor
from harness.errors import UsageError, nearest
from harness.models.answer import Completion
from harness.models.errors import ContextTooLong
from harness.models.local import LocalModel, Sampling, local_model
from harness.protocols import Mind
from harness.records import DecisionState, Observation
from harness.seeds import stream

CHOICES = ("free", "legal")


class LocalActor(ReActActor):
    """Language model run here with transformers (SmolLM2 on a CPU, Qwen3-8B on a GPU), prompted by ReAct.

    Args:
        model: `smollm2`, a hub name or a folder.
        revision: of a hub name.
        temperature: sampling temperature; 0 takes the most probable.
        top_p: nucleus of sampling.
        max_tokens: tokens of one answer.
        choice: `free`, or `legal`: the action is chosen among the executable ones by its probability.
        thinking: whether the chat template lets the model think (templates that know this).
        prompts: folder with replacements for the built-in prompt files.
        context_tokens: a smaller context than the model's own.
        format_retries: further answers asked for when no action can be read.
        device: `auto`, `cpu`, `cuda`, `cuda:1`.
        dtype: `auto`, `float32`, `bfloat16`, `float16`.
        batch_size: requests of waiting threads that are done together.
        threads: CPU threads of this process (None: its share of the cores among all workers).
    """

    version: ClassVar[str] = "1"
    estimate: ClassVar[Mapping[str, float]] = {"calls": 1, "prompt": 2700, "completion": 100, "seconds": 6.0}
    throughput: ClassVar[tuple[str, ...]] = ("device", "batch_size", "threads")

    def __init__(
        self,
        model: str = "smollm2",
        revision: str | None = None,
        temperature: float = 0.2,
        top_p: float = 1.0,
        max_tokens: int = 256,
        choice: str = "free",
        thinking: bool | None = None,
        prompts: str | None = None,
        context_tokens: int | None = None,
        format_retries: int = 1,
        device: str = "auto",
        dtype: str = "auto",
        batch_size: int = 8,
        threads: int | None = None,
    ) -> None:
        if choice not in CHOICES:
            raise UsageError(f"local: unknown choice {choice!r}.{nearest(choice, CHOICES)}")
        super().__init__(Style(prompts), max_tokens, context_tokens, format_retries)
        self.model = model
        self.choice = choice
        self.load = (model, revision, device, dtype, batch_size, threads)
        self.sampling = Sampling(temperature, top_p, max_tokens, ("\nObservation:",))
        self.template: dict[str, Any] = {} if thinking is None else {"enable_thinking": thinking}

    def complete(
        self, state: DecisionState, messages: Sequence[Message], mind: Mind, seed: int, draw: int
    ) -> Completion:
        """Generate here. Raises `ContextTooLong`, `ModelTimeout`, or `UsageError` when the model cannot be loaded."""
        model = local_model(*self.load)
        tokens = model.encode(messages, **self.template)
        if self.context_tokens is not None and len(tokens) + self.max_tokens > self.context_tokens:
            raise ContextTooLong(f"{self.model}: {len(tokens)} tokens do not fit {self.context_tokens}")
        if self.choice == "free":
            return model.generate(tokens, self.sampling, seed, mind.deadline)
        return self._choose(model, messages, state.observation, mind, seed)

    def _choose(
        self, model: LocalModel, messages: Sequence[Message], can: Observation, mind: Mind, seed: int
    ) -> Completion:
        """A thought, then the action."""
        free = replace(self.sampling, stop=("\nAction", *self.sampling.stop))
        begun = model.encode(messages, "Thought:", **self.template)
        thought = model.generate(begun, free, seed, mind.deadline)
        said = f"Thought: {thought.text.strip()}\nAction:"
        head, end = begun_action(can)
        tokens = model.encode(messages, said + head, **self.template)
        if can.actions:
            scores, usage = model.score(tokens, [f" {text}" for text in can.actions])
            chosen = f" {can.actions[draw_from(scores, self.sampling.temperature, seed)]}"
        else:
            line = replace(self.sampling, stop=("\n", *((end,) if end else ())))
            answer = model.generate(tokens, line, seed, mind.deadline)
            chosen, usage = f"{head or ' '}{answer.text.strip()}{end}", answer.usage
        return replace(thought, text=said + chosen, finish="stop", usage=thought.usage + replace(usage, calls=0))


def draw_from(scores: Sequence[float], temperature: float, seed: int) -> int:
    """An index: the largest score, or with a temperature a draw by softmax (Gumbel noise of the seed's stream)."""
    if temperature <= 0:
        return max(range(len(scores)), key=lambda index: scores[index])
    chance = stream(role="choice", seed=seed)
    noised = [score / temperature - math.log(-math.log(chance.random() or 1e-300)) for score in scores]
    return max(range(len(scores)), key=lambda index: noised[index])
