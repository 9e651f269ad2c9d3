"""Usage: the server's own token counts; what it does not report is unknown, and never computed here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness.records import Usage


def _count(source: Any, key: str) -> int | None:
    value = source.get(key) if isinstance(source, Mapping) else None
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _details(source: Any, key: str) -> Any:
    return source.get(key) if isinstance(source, Mapping) else None


def parse_usage(reported: Any) -> Usage:
    """One call's usage from the `usage` object of an OpenAI-compatible answer.

    Cached prompt tokens are `prompt_tokens_details.cached_tokens` (OpenAI, vLLM with `--enable-prompt-tokens-details`)
    or `prompt_cache_hit_tokens` (DeepSeek).  `cached` is part of `prompt`, `reasoning` part of `completion`.
    """
    cached = _count(_details(reported, "prompt_tokens_details"), "cached_tokens")
    reasoning = _count(_details(reported, "completion_tokens_details"), "reasoning_tokens")
    return Usage(
        calls=1,
        prompt=_count(reported, "prompt_tokens"),
        completion=_count(reported, "completion_tokens"),
        cached=_count(reported, "prompt_cache_hit_tokens") if cached is None else cached,
        reasoning=_count(reported, "reasoning_tokens") if reasoning is None else reasoning,
    )
