"""Packing: several suffixes behind one prefix in one row, each blind to the others.

A row is `prefix + suffix 1 + suffix 2 + ...`; a mask lets every suffix see the prefix and itself, and positions of each
suffix go on from the prefix's end.  So the outputs are those of the separate prompts (to rounding), while the prefix is
run once.  Scoring and training use the same rows, which makes both several times cheaper at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Row:
    """One prefix (or the part of it that is not cached) with its suffixes; token ids."""

    prefix: Sequence[int]
    suffixes: Sequence[Sequence[int]]

    def __len__(self) -> int:
        return len(self.prefix) + sum(len(suffix) for suffix in self.suffixes)


@dataclass(frozen=True, slots=True)
class Packed:
    """Tensors of a batch of rows.

    Attributes:
        input_ids, position_ids: (rows, length) int64; padding at the right.
        mask: (rows, 1, length, width + length) bool, True where a position may be looked at; width is the longest
            kept part.
        rows, columns: (suffixes,) int64, where each suffix's last token stands, in the rows' order.
    """

    input_ids: Any
    position_ids: Any
    mask: Any
    rows: Any
    columns: Any


def pack(rows: Sequence[Row], pad: int, kept: Sequence[int] = (), device: Any = "cpu") -> Packed:
    """Pack rows; `kept` says how many tokens of each row's prefix are in a key-value cache already (default none).

    A cache shorter than the longest one is padded at its right, and nobody sees that padding.
    """
    import torch

    begins = list(kept) or [0] * len(rows)
    length = max(len(row) for row in rows)
    ids = torch.full((len(rows), length), pad, dtype=torch.long)
    positions = torch.zeros((len(rows), length), dtype=torch.long)
    parts = torch.full((len(rows), length), -1, dtype=torch.long)
    at: list[tuple[int, int]] = []
    for i, (row, begin) in enumerate(zip(rows, begins, strict=True)):
        start, base = len(row.prefix), begin + len(row.prefix)
        ids[i, :start] = torch.tensor(row.prefix, dtype=torch.long)
        positions[i, :start] = torch.arange(begin, base)
        parts[i, :start] = 0
        for number, suffix in enumerate(row.suffixes, 1):
            end = start + len(suffix)
            ids[i, start:end] = torch.tensor(suffix, dtype=torch.long)
            positions[i, start:end] = torch.arange(base, base + len(suffix))
            parts[i, start:end] = number
            at.append((i, end - 1))
            start = end
    where = torch.tensor(at, dtype=torch.long).reshape(-1, 2)
    mask = _mask(parts, torch.tensor(begins))
    return Packed(ids.to(device), positions.to(device), mask.to(device), where[:, 0].to(device), where[:, 1].to(device))


def _mask(parts: Any, kept: Any) -> Any:
    """(rows, length) part numbers (0 prefix, -1 padding) and (rows,) kept tokens to a mask as `Packed` has it."""
    import torch

    rows, length = parts.shape
    key, query = parts[:, None, :], parts[:, :, None]
    seen = ((key == 0) | (key == query)) & (query >= 0)
    seen &= torch.ones(length, length, dtype=torch.bool).tril()
    seen |= torch.eye(length, dtype=torch.bool)  # padding sees itself: a row without any key gives NaN
    before = torch.arange(int(kept.max())) < kept[:, None]
    return torch.cat([before[:, None].expand(rows, length, -1), seen], dim=2)[:, None]
