"""One OpenAI-compatible endpoint, as the LLM user and the LLM judge use it.

The `openai` client is imported on the first call; the key is read from the environment at that moment and kept nowhere
else.  Token usage is what the server says; what it does not say is unknown (None).
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from harness.errors import EpisodeError, UsageError, nearest
from harness.records import Role, Usage


@dataclass(frozen=True)
class Endpoint:
    """Where and how to ask: `extra` goes into each request (such as `{"top_p": 0.9}`)."""

    model: str
    base_url: str = "https://api.openai.com/v1"
    api_key_env: str = "OPENAI_API_KEY"
    temperature: float = 0.0
    max_tokens: int = 512
    timeout_s: float = 60.0
    retries: int = 2
    extra: Mapping[str, Any] = field(default_factory=dict)

    def complete(self, messages: Sequence[Mapping[str, str]], seed: int, role: Role) -> tuple[str, Usage, float]:
        """(text, usage, seconds) of one completion.

        Raises:
            UsageError: when the `openai` package is missing.
            EpisodeError: when the server fails or answers with nothing; its boundary is `role`.
        """
        start = time.perf_counter()
        try:
            answer = self._client().chat.completions.create(
                model=self.model,
                messages=list(messages),
                temperature=self.temperature,
                max_tokens=self.max_tokens,
                seed=seed % 2**31,
                **self.extra,
            )
            text = answer.choices[0].message.content if answer.choices else None
        except UsageError:
            raise
        except Exception as error:
            raise EpisodeError(
                role, f"{self.model} at {self.base_url}: {type(error).__name__}: {error}"[:500]
            ) from error
        if not text or not text.strip():
            raise EpisodeError(role, f"{self.model} at {self.base_url} answered with nothing")
        return text.strip(), usage_of(answer.usage), time.perf_counter() - start

    def _client(self) -> Any:
        try:
            import openai
        except ImportError as error:
            raise UsageError("An LLM user or judge needs the openai package: pip install openai") from error
        key = os.environ.get(self.api_key_env) or "none"  # local servers take any key
        return openai.OpenAI(base_url=self.base_url, api_key=key, timeout=self.timeout_s, max_retries=self.retries)


def endpoint(settings: Mapping[str, Any], what: str) -> Endpoint:
    """An endpoint from a study's mapping. Raises `UsageError` for an unknown or missing key."""
    valid = tuple(Endpoint.__dataclass_fields__)
    for key in settings:
        if key not in valid:
            raise UsageError(f"The retail {what} has no setting {key!r}.{nearest(str(key), valid)}")
    if "model" not in settings:
        raise UsageError(f"The retail {what} needs a model, such as {{'model': 'NAME', 'base_url': 'http://host/v1'}}.")
    return Endpoint(**settings)


def usage_of(reported: Any) -> Usage:
    """`Usage` of one call from what a server reported, None where it said nothing."""
    prompt = getattr(reported, "prompt_tokens", None)
    completion = getattr(reported, "completion_tokens", None)
    cached = getattr(getattr(reported, "prompt_tokens_details", None), "cached_tokens", None)
    reasoning = getattr(getattr(reported, "completion_tokens_details", None), "reasoning_tokens", None)
    return Usage(1, prompt, completion, cached, reasoning)
