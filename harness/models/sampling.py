"""Sampling: seeded noise for each row of a batch, so that a row's draws do not depend on its neighbours.

The largest of logits / temperature plus Gumbel noise is a draw from the softmax (the Gumbel-max trick), so greedy
decoding over noised logits samples, with a generator of its own for each row.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any


def row_noise(seeds: Sequence[int], temperature: float, top_p: float) -> Callable[[Any, Any], Any]:
    """A logits processor (input ids, logits [rows, vocabulary]) -> logits, one stream of noise a row."""
    import torch

    generators = [torch.Generator().manual_seed(seed) for seed in seeds]

    def process(_: Any, logits: Any) -> Any:
        scaled = logits.float() / temperature
        if top_p < 1.0:
            scaled = nucleus(scaled, top_p)
        shape = scaled.shape[1]
        noise = torch.stack([torch.empty(shape).exponential_(generator=generator) for generator in generators])
        return scaled - noise.clamp_min(1e-30).log().to(scaled.device)

    return process


def nucleus(logits: Any, top_p: float) -> Any:
    """Logits with everything outside the smallest set of probability `top_p` at minus infinity."""
    ordered, order = logits.sort(dim=-1, descending=True)
    before = ordered.softmax(-1).cumsum(-1) - ordered.softmax(-1)
    outside = (before >= top_p).scatter(-1, order, before >= top_p)
    return logits.masked_fill(outside, float("-inf"))
