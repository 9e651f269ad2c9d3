"""Examples: groups to packed rows of token ids, and the collators that make batches of them.

The loss falls on the answer alone: for the comparator the one letter after each suffix, for the critic the value at
each suffix's last token.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

from methods.judges.pack import Row, pack
from methods.judges.prompt import Encoder, shorten
from methods.training.data import Group

IGNORED = -100


def pair_examples(groups: Iterable[Group], encoder: Encoder, per_row: int, max_tokens: int) -> list[dict[str, Any]]:
    """Rows of at most `per_row` pairs behind one view; each suffix ends with its letter."""
    letters = dict(zip("ABT", encoder.letters(), strict=True))
    found = []
    for group in groups:
        prefix, _ = shorten(encoder.prefix(group.view), max_tokens)
        ends = [[*encoder.pair(group.view, p.first, p.second), letters[p.label]] for p in group.items]
        found += [{"prefix": prefix, "suffixes": part} for part in _parts(ends, per_row)]
    return found


def target_examples(groups: Iterable[Group], encoder: Encoder, per_row: int, max_tokens: int) -> list[dict[str, Any]]:
    """Rows of at most `per_row` actions behind one view, with their targets."""
    found = []
    for group in groups:
        prefix, _ = shorten(encoder.prefix(group.view), max_tokens)
        ends = [encoder.single(group.view, target.action) for target in group.items]
        values = [target.value for target in group.items]
        for part, targets in zip(_parts(ends, per_row), _parts(values, per_row), strict=True):
            found.append({"prefix": prefix, "suffixes": part, "targets": targets})
    return found


def _parts(items: Sequence[Any], size: int) -> list[list[Any]]:
    """Cut into parts of nearly equal size, none above `size`."""
    count = -(-len(items) // size)
    bounds = [round(i * len(items) / count) for i in range(count + 1)]
    return [list(items[low:high]) for low, high in pairwise(bounds)]


class PairCollator:
    """Batches for a language model: labels are the letters, everything else is ignored."""

    def __init__(self, pad: int) -> None:
        self.pad = pad

    def __call__(self, examples: Sequence[dict[str, Any]]) -> dict[str, Any]:
        """Tensors by the model's argument names."""
        import torch

        batch = pack([Row(e["prefix"], e["suffixes"]) for e in examples], self.pad)
        labels = torch.full_like(batch.input_ids, IGNORED)
        labels[batch.rows, batch.columns] = batch.input_ids[batch.rows, batch.columns]
        return {
            "input_ids": batch.input_ids,
            "position_ids": batch.position_ids,
            "attention_mask": batch.mask,
            "labels": labels,
        }


class TargetCollator:
    """Batches for a classifier: where the values are read, and what they should be."""

    def __init__(self, pad: int) -> None:
        self.pad = pad

    def __call__(self, examples: Sequence[dict[str, Any]]) -> dict[str, Any]:
        """Tensors by name; `rows`, `columns` and `labels` are (suffixes,)."""
        import torch

        batch = pack([Row(e["prefix"], e["suffixes"]) for e in examples], self.pad)
        return {
            "input_ids": batch.input_ids,
            "position_ids": batch.position_ids,
            "attention_mask": batch.mask,
            "rows": batch.rows,
            "columns": batch.columns,
            "labels": torch.tensor([value for e in examples for value in e["targets"]], dtype=torch.float32),
        }
