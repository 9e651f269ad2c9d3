"""Local adviser: Asym-AC's critic as a language model in this process, for machines without an endpoint."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from harness.actors.parsing import split_thinking
from harness.models.local import Sampling, local_model
from harness.records import Usage


class LocalAdviser:
    """Critic model run here with transformers that writes concise feedback.

    Args:
        model: `smollm2`, a hub name or a folder.
        revision: of a hub name.
        temperature: sampling temperature; 0 takes the most probable.
        max_tokens: tokens of one answer; an answer cut off there is used as it is.
        max_prompt: tokens of the view; a longer one loses its middle.
        device: `auto`, `cpu`, `cuda`, `cuda:1`.
        dtype: `auto`, `float32`, `bfloat16`, `float16`.
        batch_size: requests of waiting threads that are done together.
        threads: CPU threads of this process. One a worker: more of them wait for each other.
    """

    needs_oracle = False
    version: ClassVar[str] = "1"
    estimate: ClassVar[Mapping[str, float]] = {"calls": 1, "prompt": 800, "completion": 24, "seconds": 1.5}
    throughput: ClassVar[tuple[str, ...]] = ("device", "batch_size", "threads")

    def __init__(
        self,
        model: str = "smollm2",
        revision: str | None = None,
        temperature: float = 0.0,
        max_tokens: int = 48,
        max_prompt: int = 1024,
        device: str = "auto",
        dtype: str = "auto",
        batch_size: int = 8,
        threads: int | None = 1,
    ) -> None:
        self.model = model
        self.max_prompt = max_prompt
        self.load = (model, revision, device, dtype, batch_size, threads)
        self.sampling = Sampling(temperature, max_tokens=max_tokens)

    def feedback(self, system: str, user: str, seed: int, deadline: float | None) -> tuple[str, Usage]:
        """The critic's words without its thinking.

        Raises:
            ModelTimeout, ContextTooLong: no answer in time, or no room for one.
            UsageError: the model cannot be loaded.
        """
        model = local_model(*self.load)
        messages = [{"role": "system", "content": system}, {"role": "user", "content": user}]
        tokens = model.encode(messages)
        if len(tokens) > self.max_prompt:
            half = self.max_prompt // 2
            tokens = [*tokens[:half], *tokens[-half:]]
        answer = model.generate(tokens, self.sampling, seed, deadline)
        return split_thinking(answer)[0].strip(), answer.usage
