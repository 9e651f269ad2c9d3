"""Thinking: how each kind of server is told to let a model think, or not."""

from __future__ import annotations

from typing import Any

STYLES = ("template", "deepseek")


def thinking_fields(thinking: bool | None, style: str) -> dict[str, Any]:
    """Request fields; none when the server shall decide.

    `template`: the chat template's `enable_thinking` (vLLM and SGLang with Qwen3 and its kin).
    `deepseek`: the field of DeepSeek's own endpoint.
    """
    if thinking is None:
        return {}
    if style == "deepseek":
        return {"thinking": {"type": "enabled" if thinking else "disabled"}}
    return {"chat_template_kwargs": {"enable_thinking": thinking}}
