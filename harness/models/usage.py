"""Usage: the server's own token counts; what it does not report is unknown, and never computed here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness.bounds import MAX_COUNT
from harness.records import Usage


def _count(source: Any, *path: str) -> int | None:
    for key in path:
        source = source.get(key) if isinstance(source, Mapping) else None
    return source if isinstance(source, int) and not isinstance(source, bool) and 0 <= source <= MAX_COUNT else None


def _first(*counts: int | None) -> int | None:
    return next((count for count in counts if count is not None), None)


def parse_usage(reported: Any) -> Usage:
    """One call's usage from the `usage` object of an OpenAI-compatible answer.

    Cached prompt tokens are `prompt_tokens_details.cached_tokens` (OpenAI, vLLM with `--enable-prompt-tokens-details`)
    or `prompt_cache_hit_tokens` (DeepSeek).  `cached` is part of `prompt`, `reasoning` part of `completion`.
    """
    return Usage(
        calls=1,
        prompt=_count(reported, "prompt_tokens"),
        completion=_count(reported, "completion_tokens"),
        cached=_first(
            _count(reported, "prompt_tokens_details", "cached_tokens"),
            _count(reported, "prompt_cache_hit_tokens"),
        ),
        reasoning=_first(
            _count(reported, "completion_tokens_details", "reasoning_tokens"),
            _count(reported, "reasoning_tokens"),
        ),
    )
