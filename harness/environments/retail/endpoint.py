"""One endpoint, as the LLM user and the LLM judge use it: the harness's client, with trouble put down to who was asked.

Retries, the adaptive limit, keys and usage are `harness.models.client`'s; what the server does not say is unknown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from harness.actors.parsing import split_thinking
from harness.errors import EpisodeError, UsageError, nearest
from harness.guard import ends_at
from harness.models import client
from harness.models.errors import ModelError, ModelTimeout
from harness.records import Role, Usage


@dataclass(frozen=True)
class Endpoint:
    """Where and how to ask: `key_env` names the variable with the key, `extra` goes into each request."""

    model: str
    base_url: str = "https://api.openai.com/v1"
    revision: str | None = None
    key_env: str | None = None
    temperature: float = 0.0
    max_tokens: int = 512
    timeout_s: float = 120.0
    patience_s: float = 1800.0
    attempts: int = 8
    max_in_flight: int = 256
    extra: Mapping[str, Any] = field(default_factory=dict)

    def complete(self, messages: Sequence[Mapping[str, str]], seed: int, role: Role) -> tuple[str, Usage, float]:
        """(text without thinking, usage, seconds of work and waiting) of one completion.

        Raises:
            UsageError: no key, a key that is not accepted, a wrong address or model.
            EpisodeError: when the server fails or answers with nothing; its boundary is `role`.
        """
        asked = client.Endpoint(
            self.base_url,
            self.model,
            self.revision,
            self.key_env,
            self.timeout_s,
            self.patience_s,
            self.attempts,
            self.max_in_flight,
        )
        request = {"messages": list(messages), "temperature": self.temperature, "max_tokens": self.max_tokens}
        try:
            answer = asked.complete({**request, **self.extra}, seed, ends_at())
        except ModelError as error:
            raise EpisodeError(role, str(error), "timeout" if isinstance(error, ModelTimeout) else "failed") from error
        text = split_thinking(answer)[0].strip()
        if not text:
            raise EpisodeError(role, f"{self.model} at {self.base_url} answered with nothing")
        return text, answer.usage, answer.seconds + answer.usage.waited_s


def endpoint(settings: Mapping[str, Any], what: str) -> Endpoint:
    """An endpoint from a study's mapping. Raises `UsageError` for an unknown or missing key."""
    valid = tuple(Endpoint.__dataclass_fields__)
    for key in settings:
        if key not in valid:
            raise UsageError(f"The retail {what} has no setting {key!r}.{nearest(str(key), valid)}")
    if "model" not in settings:
        raise UsageError(f"The retail {what} needs a model, such as {{'model': 'NAME', 'base_url': 'http://host/v1'}}.")
    return Endpoint(**settings)
