"""Weights of candidate generators: a causal model by name or folder, in fp32 (see `harness.models.weights`)."""

from __future__ import annotations

from typing import Any

from harness.models.weights import SMOLLM2, load, smollm2_folder

__all__ = ["SMOLLM2", "load_causal", "smollm2_folder"]


def load_causal(name: str) -> tuple[Any, Any]:
    """(model in evaluation mode and fp32, tokenizer). Raises `UsageError` saying what to install or name."""
    loaded = load(name, dtype="float32")
    return loaded.model, loaded.tokenizer
