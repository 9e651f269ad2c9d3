"""Chat adviser: Asym-AC's critic as a language model behind an endpoint (paper section 4.1, appendix B.7)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Unpack

from harness.actors.parsing import split_thinking
from harness.errors import UsageError, nearest
from harness.models.asking import ADVISER, THROUGHPUT, Asking, endpoint
from harness.models.thinking import STYLES, thinking_fields
from harness.records import Usage


class ChatAdviser:
    """Critic model over an OpenAI-compatible endpoint that writes concise feedback.

    Args:
        base_url: address up to and including `/v1`.
        model: name the server knows the model by.
        revision: which weights are served under that name; part of the identity.
        key_env: name of the environment variable that holds the key.
        temperature: sampling temperature.
        max_tokens: tokens of one answer, thinking included.
        thinking: switch thinking on or off where the model can.
        thinking_style: how a server is told so: `template` or `deepseek`.
        extra: more fields of the request.
        asking: as in `harness.models.asking`: timeout_s, patience_s, attempts, max_in_flight, cache.
    """

    needs_oracle = False
    version: ClassVar[str] = "1"
    estimate: ClassVar[Mapping[str, float]] = {"calls": 1, "prompt": 2000, "completion": 80, "seconds": 2.0}
    throughput: ClassVar[tuple[str, ...]] = THROUGHPUT
    passes_on: ClassVar[Asking] = ADVISER

    def __init__(
        self,
        base_url: str,
        model: str,
        revision: str | None = None,
        key_env: str | None = None,
        temperature: float = 0.0,
        max_tokens: int = 256,
        thinking: bool | None = None,
        thinking_style: str = "template",
        extra: Mapping[str, Any] | None = None,
        **asking: Unpack[Asking],
    ) -> None:
        if thinking_style not in STYLES:
            raise UsageError(f"chat-adviser: unknown thinking_style.{nearest(thinking_style, STYLES)}")
        self.endpoint = endpoint(base_url, model, revision, key_env, self.passes_on, asking)
        self.sampling: dict[str, Any] = {"temperature": temperature, "max_tokens": max_tokens}
        self.sampling |= thinking_fields(thinking, thinking_style) | dict(extra or {})

    def feedback(self, system: str, user: str, seed: int, deadline: float | None) -> tuple[str, Usage]:
        """The critic's words without its thinking. Raises `ModelError` or `UsageError`."""
        messages = [{"role": "system", "content": system}, {"role": "user", "content": user}]
        answer = self.endpoint.complete({"messages": messages, **self.sampling}, seed, deadline)
        return split_thinking(answer)[0].strip(), answer.usage
