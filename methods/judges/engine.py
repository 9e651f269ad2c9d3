"""Engine: hidden states behind many suffixes of one prefix, with the prefix's keys and values kept for the next call.

Views of an episode grow at their end, so the next step's prefix shares most of its tokens with the last one's: only
what is new is run, together with all suffixes, in one forward pass.  The longest common prefix is found by comparing
tokens, so a view that was not append-only costs time and never correctness.  Kept entries are bounded in bytes and the
least recently used go first.  Nothing is generated.

Questions of several episodes that wait at the same time share a pass, one row each, where that pays.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from harness.models.batcher import Batcher
from harness.models.weights import Loaded
from methods.judges.pack import Row, pack

MOST = 64  # suffixes of one question in one forward pass
GPU_BATCH = 32_768  # tokens in one forward pass of several questions
CPU_MB, GPU_MB = 512.0, 4096.0  # of kept keys and values


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
    """`hidden` is (suffixes, width); `reused` tokens of the prefix came from the cache, `run` of it did not.

    `waited_s`: seconds in the queue behind other questions.
    """

    hidden: Any
    run: int
    reused: int
    waited_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Ask:
    """One question: what all its suffixes share, and the suffixes."""

    ids: list[int]
    suffixes: Sequence[Sequence[int]]

    def __len__(self) -> int:
        return len(self.ids) + sum(map(len, self.suffixes))


class Engine:
    """Runs a decoder over shared prefixes. Safe to share between threads: one forward pass at a time.

    Args:
        loaded: the model.
        memory_mb: bound on kept keys and values; 0 keeps nothing; None: by device (at Qwen2.5-0.5B's 12 kB a token, the
            GPU's 4 GB hold the whole states of a hundred running episodes).
        batch_tokens: bound on the tokens of a pass that several questions share, padding included; 0: none ever do;
            None: by device.  A GPU is idle behind one short question, so there they do.  A CPU is busy with it and a
            batch only adds padding, so there they do not (`benchmarks/judge_prefill.py` measures both).
    """

    def __init__(self, loaded: Loaded, memory_mb: float | None = None, batch_tokens: int | None = None) -> None:
        self.loaded = loaded
        self.body = loaded.model.base_model
        gpu = loaded.device.startswith("cuda")
        self.limit = int(2**20 * ((GPU_MB if gpu else CPU_MB) if memory_mb is None else memory_mb))
        self.room = (GPU_BATCH if gpu else 0) if batch_tokens is None else batch_tokens
        self.counts = Counts()
        self.batcher: Batcher[Ask, Answer] = Batcher(self._pass, self._fits)
        self._kept: OrderedDict[int, Kept] = OrderedDict()  # touched by whoever leads a batch, one at a time
        self._bytes = 0
        self._next = 0
        _check_layers(loaded.model.config)

    def run(self, prefix: Sequence[int], suffixes: Sequence[Sequence[int]], deadline: float | None = None) -> Answer:
        """Last hidden states of `prefix + suffix` for each suffix (none may be empty).

        Raises:
            TimeoutError: `deadline` (`time.monotonic()`) passed before the answer came.
        """
        import torch

        ids = list(prefix)
        parts = [
            self.batcher(Ask(ids, suffixes[start : start + MOST]), deadline) for start in range(0, len(suffixes), MOST)
        ]
        hidden, first = torch.cat([part.hidden for part, _ in parts]), parts[0][0]
        return Answer(hidden, first.run, first.reused, sum(waited for _, waited in parts))

    @property
    def kept_bytes(self) -> int:
        """Bytes of keys and values held."""
        return self._bytes

    def forget(self) -> None:
        """Drop all that is kept; not while a question runs."""
        self._kept.clear()
        self._bytes = 0

    def _fits(self, asks: list[Ask]) -> bool:
        return len(asks) * max(map(len, asks)) <= self.room

    def _longest(self, ids: list[int]) -> tuple[int | None, int]:
        best, length = None, 0
        for key, kept in self._kept.items():
            common = _common(ids, kept.ids)
            if common > length:
                best, length = key, common
        if best is not None:
            self._kept.move_to_end(best)
        return best, length

    def _pass(self, asks: list[Ask]) -> list[Answer]:
        """Answer questions in one forward pass, a row each."""
        import torch

        found = [self._longest(ask.ids) for ask in asks]
        reused = [length for _, length in found]
        rows = [Row(ask.ids[length:], ask.suffixes) for ask, length in zip(asks, reused, strict=True)]
        with torch.inference_mode():
            batch = pack(rows, self.loaded.pad, reused, self.loaded.device)
            cache = self._cache(found)
            output = self.body(
                input_ids=batch.input_ids,
                position_ids=batch.position_ids,
                attention_mask=batch.mask,
                cache=cache,
                use_cache=True,
            )
            hidden = output.last_hidden_state[batch.rows, batch.columns].split([len(ask.suffixes) for ask in asks])
            for number, (ask, (key, length)) in enumerate(zip(asks, found, strict=True)):
                if length < len(ask.ids):
                    self._keep(ask.ids, key, _row(cache, number, length, max(reused), len(ask.ids) - length))
        answers = []
        for ask, states, length in zip(asks, hidden, reused, strict=True):
            self.counts.calls += 1
            self.counts.run += len(ask) - length
            self.counts.reused += length
            answers.append(Answer(states, len(ask.ids) - length, length))
        return answers

    def _cache(self, found: Sequence[tuple[int | None, int]]) -> Any:
        """A cache of (rows, heads, width, size) in each layer, from what is kept; shorter rows padded at the right."""
        from torch.nn.functional import pad
        from transformers import DynamicCache

        cache = DynamicCache(config=self.loaded.model.config)
        width = max(length for _, length in found)
        held = [self._kept[key].layers if key is not None else None for key, _ in found]
        for number in range(self.loaded.model.config.num_hidden_layers if width else 0):
            sides = []
            for side in (0, 1):
                empty = next(layers for layers in held if layers)[number][side][:, :, :0]
                parts = [
                    pad((layers[number][side] if layers else empty)[:, :, :length], (0, 0, 0, width - length))
                    for layers, (_, length) in zip(held, found, strict=True)
                ]
                sides.append(parts[0] if len(parts) == 1 else _cat(parts, 0))
            cache.update(*sides, number)
        return cache

    def _keep(self, ids: list[int], key: int | None, layers: list[tuple[Any, Any]]) -> None:
        """Keep a prefix's keys and values; they take the place of an entry that they only lengthen."""
        kept = Kept(ids, layers)
        if kept.size > self.limit:
            return
        old = self._kept.get(key) if key is not None else None  # an earlier row of the batch may have pushed it out
        if key is not None and old is not None and old.ids == ids[: len(old.ids)]:
            self._bytes -= self._kept.pop(key).size
        while self._kept and self._bytes + kept.size > self.limit:
            self._bytes -= self._kept.popitem(last=False)[1].size
        self._kept[self._next] = kept
        self._next += 1
        self._bytes += kept.size


def _cat(parts: Sequence[Any], dim: int) -> Any:
    import torch

    return torch.cat(list(parts), dim)


def _row(cache: Any, row: int, reused: int, width: int, new: int) -> list[tuple[Any, Any]]:
    """A copy of one row's prefix: what it had of its padded cache, and what this pass added to it."""

    def of(whole: Any) -> Any:
        return _cat([whole[row : row + 1, :, :reused], whole[row : row + 1, :, width : width + new]], 2)

    return [(of(layer.keys), of(layer.values)) for layer in cache.layers]


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
