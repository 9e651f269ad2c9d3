"""Weights of judges: those of all local models, under the name the judges and their training use."""

from __future__ import annotations

from harness.models.weights import (
    SMOLLM2,
    Kind,
    Loaded,
    load,
    load_parts,
    need_torch,
    pad_id,
    pick_device,
    pick_dtype,
    resolve,
    smollm2_folder,
)

__all__ = [
    "Kind",
    "Loaded",
    "SMOLLM2",
    "load",
    "load_parts",
    "need_torch",
    "pad_id",
    "pick_device",
    "pick_dtype",
    "resolve",
    "smollm2_folder",
]
