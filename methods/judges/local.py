"""Local judges: what comparator and critic share: lazy loading, prompts, the engine, and counting of usage.

An instance holds parameters until its first question; then it loads the model, once a process.  Pickling drops the
model, so a judge may go to another process, which loads its own.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

from harness.models.weights import Kind, load
from harness.records import Usage
from methods.judges.engine import Engine
from methods.judges.prompt import FILE, Encoder, Prompt, load_prompt, shorten


@dataclass(frozen=True, slots=True)
class Parts:
    """A loaded judge."""

    engine: Engine
    encoder: Encoder
    head: Any


@dataclass(frozen=True, slots=True)
class Scored:
    """Head outputs (suffixes, outputs) in fp32 on the CPU, one usage a suffix, and how many tokens were cut."""

    outputs: Any
    usages: list[Usage]
    cut: int


class LocalJudge:
    """A model on this machine that judges actions. Shared by threads, never by processes."""

    needs_oracle = False
    version: ClassVar[str] = "1"
    # The model is among them because identity() says which one it is, wherever it lies.
    throughput: ClassVar[tuple[str, ...]] = ("model", "device", "memory_mb", "batch_tokens")
    kind: Kind = "lm"
    preset = "full"

    def __init__(
        self,
        model: str,
        revision: str | None = None,
        max_tokens: int = 3072,
        dtype: str = "auto",
        device: str = "auto",
        prompt_file: str | None = None,
        memory_mb: float | None = None,
        batch_tokens: int | None = None,
    ) -> None:
        self.model = model
        self.revision = revision
        self.max_tokens = max_tokens
        self.dtype = dtype
        self.device = device
        self.prompt_file = prompt_file
        self.memory_mb = memory_mb
        self.batch_tokens = batch_tokens
        self._lock = threading.Lock()
        self._parts: Parts | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {key: value for key, value in vars(self).items() if key not in ("_lock", "_parts")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._lock = threading.Lock()
        self._parts = None

    def identity(self) -> dict[str, str]:
        """Which model this is: a recipe's hash before anything is trained, an artefact's hash, or a model's name."""
        folder = Path(self.model).expanduser()
        for file, key in (("recipe.json", "recipe"), ("identity.json", "artefact")):
            if (folder / file).is_file():
                return {key: str(json.loads((folder / file).read_text(encoding="utf-8"))["hash"])}
        return {"model": self.model}

    def load(self) -> Parts:
        """The loaded judge. Raises `UsageError` when the model or its prompt cannot be had."""
        with self._lock:
            if self._parts is None:
                self._parts = self._load()
            return self._parts

    def _load(self) -> Parts:
        prompt = self.prompt()
        loaded = load(self.model, self.kind, revision=self.revision, dtype=self.dtype, device=self.device)
        head = loaded.model.get_output_embeddings() if self.kind == "lm" else loaded.model.score
        return Parts(Engine(loaded, self.memory_mb, self.batch_tokens), Encoder(loaded.tokenizer, prompt), head)

    def prompt(self) -> Prompt:
        """The prompt: the user's file, else the artefact's own (the one it was trained with), else the preset."""
        if self.prompt_file is not None:
            return load_prompt(self.prompt_file)
        folder = Path(self.model).expanduser()
        return load_prompt(folder if (folder / FILE).exists() else self.preset)

    def _score(
        self, view: str, suffixes: Callable[[Encoder], Sequence[Sequence[int]]], deadline: float | None = None
    ) -> Scored:
        import torch

        parts = self.load()
        ends = suffixes(parts.encoder)
        room = max(self.max_tokens - max(len(end) for end in ends), 16)
        prefix, cut = shorten(parts.encoder.prefix(view), room)
        answer = parts.engine.run(prefix, ends, deadline)
        if cut:
            parts.engine.counts.cut += 1
        with torch.inference_mode():
            outputs = parts.head(answer.hidden).float().cpu()
        usages = [Usage(1, len(prefix) + len(end), 0, len(prefix)) for end in ends]
        usages[0] = replace(usages[0], cached=answer.reused, waited_s=answer.waited_s)
        return Scored(outputs, usages, cut)
