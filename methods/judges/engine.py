"""Engine: hidden states behind many suffixes of one prefix, with the prefix's keys and values kept for the next call.

Views of an episode grow at their end, so the next step's prefix shares most of its tokens with the last one's: only
what is new is run, together with all suffixes, in one forward pass.  The longest common prefix is found by comparing
tokens, so a view that was not append-only costs time and never correctness.  Kept entries are bounded in bytes and the
least recently used go first.  Nothing is generated.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from methods.judges.pack import Row, pack
from methods.judges.weights import Loaded

MOST = 64  # suffixes in one forward pass


@dataclass
class Kept:
    """Keys and values of one prefix: (1, heads, tokens, size) for each layer."""

    ids: list[int]
    layers: list[tuple[Any, Any]]

    @property
    def size(self) -> int:
        """Bytes held."""
        return sum(t.numel() * t.element_size() for pair in self.layers for t in pair)


@dataclass
class Counts:
    """What an engine has done, in tokens."""

    calls: int = 0
    run: int = 0
    reused: int = 0
    cut: int = 0


@dataclass
class Answer:
    """`hidden` is (suffixes, width); `reused` tokens of the prefix came from the cache, `run` of it did not."""

    hidden: Any
    run: int
    reused: int


class Engine:
    """Runs a decoder over shared prefixes. Safe to share between threads: one forward pass at a time.

    Args:
        loaded: the model.
        memory_mb: bound on kept keys and values; 0 keeps nothing.
    """

    def __init__(self, loaded: Loaded, memory_mb: float = 512.0) -> None:
        self.loaded = loaded
        self.body = loaded.model.base_model
        self.limit = int(memory_mb * 2**20)
        self.counts = Counts()
        self._kept: OrderedDict[int, Kept] = OrderedDict()
        self._bytes = 0
        self._next = 0
        self._lock = threading.Lock()
        _check_layers(loaded.model.config)

    def run(self, prefix: Sequence[int], suffixes: Sequence[Sequence[int]]) -> Answer:
        """Last hidden states of `prefix + suffix` for each suffix (none may be empty)."""
        import torch

        ids = list(prefix)
        with self._lock, torch.inference_mode():
            parts, reused = [], -1
            for start in range(0, len(suffixes), MOST):
                key, found = self._longest(ids)
                reused = found if reused < 0 else reused
                parts.append(self._forward(ids, key, found, suffixes[start : start + MOST]))
            total = sum(len(suffix) for suffix in suffixes)
            self.counts.calls += 1
            self.counts.run += len(ids) - reused + total
            self.counts.reused += reused
            return Answer(torch.cat(parts), len(ids) - reused, reused)

    @property
    def kept_bytes(self) -> int:
        """Bytes of keys and values held."""
        return self._bytes

    def forget(self) -> None:
        """Drop all that is kept."""
        with self._lock:
            self._kept.clear()
            self._bytes = 0

    def _longest(self, ids: list[int]) -> tuple[int | None, int]:
        best, length = None, 0
        for key, kept in self._kept.items():
            common = _common(ids, kept.ids)
            if common > length:
                best, length = key, common
        return best, length

    def _forward(self, ids: list[int], key: int | None, reused: int, suffixes: Sequence[Sequence[int]]) -> Any:
        from transformers import DynamicCache

        cache = DynamicCache(config=self.loaded.model.config)
        if key is not None:
            self._kept.move_to_end(key)
            for number, (keys, values) in enumerate(self._kept[key].layers):
                cache.update(keys[:, :, :reused], values[:, :, :reused], number)
        batch = pack([Row(ids[reused:], suffixes)], self.loaded.pad, reused, self.loaded.device)
        output = self.body(
            input_ids=batch.input_ids,
            position_ids=batch.position_ids,
            attention_mask=batch.mask,
            cache=cache,
            use_cache=True,
        )
        if reused < len(ids):
            self._keep(ids, cache, key)
        return output.last_hidden_state[batch.rows, batch.columns]

    def _keep(self, ids: list[int], cache: Any, key: int | None) -> None:
        """Keep the prefix's part of a cache; it takes the place of an entry that it only lengthens."""
        length = len(ids)
        layers = [(la.keys[:, :, :length].clone(), la.values[:, :, :length].clone()) for la in cache.layers]
        kept = Kept(ids, layers)
        if kept.size > self.limit:
            return
        if key is not None and self._kept[key].ids == ids[: len(self._kept[key].ids)]:
            self._bytes -= self._kept.pop(key).size
        while self._kept and self._bytes + kept.size > self.limit:
            self._bytes -= self._kept.popitem(last=False)[1].size
        self._kept[self._next] = kept
        self._next += 1
        self._bytes += kept.size


def _common(one: list[int], other: list[int]) -> int:
    """Length of the longest common prefix; by halves, as slices compare at C speed."""
    low, high = 0, min(len(one), len(other))
    if one[:high] == other[:high]:
        return high
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _check_layers(config: Any) -> None:
    kinds = set(getattr(config, "layer_types", None) or ["full_attention"])
    if kinds != {"full_attention"}:
        from harness.errors import UsageError

        raise UsageError(
            f"A judge needs a model with full attention in every layer, this one has {', '.join(sorted(kinds))}. "
            "Qwen2.5, Qwen3, Llama and SmolLM2 models fit."
        )
