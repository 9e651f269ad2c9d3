"""Ranked search as the original shop's engine gives it: Lucene's BM25 over arrays that can be memory-mapped.

Scores follow Lucene to the last bit where it matters: document lengths rounded to one byte, every factor in float32,
`w - w / (1 + tf * inverse)` with k1 = 0.9 and b = 0.4, a repeated query word multiplies its weight, ties by product id.

The index is a folder of plain arrays (`numpy.save`): postings grouped by term, terms sorted as bytes in one blob and
found by bisection, so that a catalogue of a million products is searched without loading it.
"""

from __future__ import annotations

import math
import mmap
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harness.environments.webshop import analysis

K1, B = np.float32(0.9), np.float32(0.4)
TOP = 50
_FREE = 24  # lengths below this are exact in Lucene's one-byte form
_CHUNK = 20_000  # documents inverted at a time
_CACHED_TOKENS = 500_000


def length_byte(length: int) -> int:
    """Lucene's `SmallFloat.intToByte4`: a length as one byte, exact below 40, then with three bits of mantissa."""
    if length < _FREE:
        return length
    value = length - _FREE
    bits = value.bit_length()
    if bits < 4:
        return _FREE + value
    shift = bits - 4
    return _FREE + (((value >> shift) & 0x07) | ((shift + 1) << 3))


def byte_length(byte: int) -> int:
    """The length that a byte of `length_byte` stands for."""
    if byte < _FREE:
        return byte
    mantissa, shift = (byte - _FREE) & 0x07, ((byte - _FREE) >> 3) - 1
    return _FREE + (mantissa if shift < 0 else (mantissa | 8) << shift)


class _Terms(Sequence[bytes]):
    """The sorted terms: a blob and where each begins; a sequence so that `bisect` works on it."""

    def __init__(self, blob: NDArray[np.uint8], starts: NDArray[np.int64]) -> None:
        self.blob = blob
        self.starts = starts

    def __len__(self) -> int:
        return len(self.starts) - 1

    def __getitem__(self, i: Any) -> Any:
        return self.blob[self.starts[i] : self.starts[i + 1]].tobytes()

    def find(self, term: str) -> int:
        """Number of a term, -1 when no document has it."""
        key = term.encode()
        i = bisect_left(self, key)
        return i if i < len(self) and self[i] == key else -1


def _let_go(*arrays: NDArray[Any]) -> None:
    """Write mapped arrays out and free their pages, so that memory does not grow with what was written."""
    for array in arrays:
        pages = getattr(array, "_mmap", None)
        if pages is not None:
            pages.flush()
            if hasattr(mmap, "MADV_DONTNEED"):
                pages.madvise(mmap.MADV_DONTNEED)


class Index:
    """Search over a folder written by `IndexWriter`; safe to share among threads."""

    def __init__(self, folder: Path, mapped: bool) -> None:
        mode: Any = "r" if mapped else None

        def read(name: str) -> NDArray[Any]:
            return np.load(folder / f"{name}.npy", mmap_mode=mode, allow_pickle=False)  # type: ignore[no-any-return]

        self._terms = _Terms(read("terms"), read("term_starts"))
        self._offsets, self._documents, self._counts = read("offsets"), read("documents"), read("counts")
        self._lengths, self._ranks = read("lengths"), read("ranks")
        self._size = len(self._lengths)
        mean = np.float32(float(read("total")[0]) / max(1, self._size))
        table = np.array([byte_length(i) for i in range(256)], dtype=np.float32)
        self._inverse = np.float32(1) / (K1 * ((np.float32(1) - B) + B * table / mean))
        self._cached = lru_cache(maxsize=4096)(self._search)

    def search(self, keywords: str) -> tuple[int, ...]:
        """Numbers of the at most 50 best documents, best first."""
        return self._cached(keywords)

    def _search(self, keywords: str) -> tuple[int, ...]:
        scores: NDArray[np.float64] = np.zeros(self._size)
        for term, times in sorted(Counter(analysis.terms(keywords)).items()):
            number = self._terms.find(term)
            if number >= 0:
                self._add(scores, number, times)
        return self._best(scores.astype(np.float32))

    def _add(self, scores: NDArray[np.float64], number: int, times: int) -> None:
        start, end = int(self._offsets[number]), int(self._offsets[number + 1])
        documents, counts = self._documents[start:end], self._counts[start:end].astype(np.float32)
        found = end - start
        idf = np.float32(math.log(1 + (self._size - found + 0.5) / (found + 0.5)))
        weight = np.float32(times) * idf
        parts = weight - weight / (np.float32(1) + counts * self._inverse[self._lengths[documents]])
        scores[documents] += parts

    def _best(self, scores: NDArray[np.float32]) -> tuple[int, ...]:
        hits = np.flatnonzero(scores)
        if len(hits) > TOP:
            values = scores[hits]
            least = np.partition(values, len(values) - TOP)[len(values) - TOP]
            hits = hits[values >= least]
        order = np.lexsort((self._ranks[hits], -scores[hits]))[:TOP]
        return tuple(int(i) for i in hits[order])


class IndexWriter:
    """Builds an index from documents given in order, in bounded memory.

    Documents are inverted a chunk at a time into a scratch file; `finish` then knows how often each term occurs and
    moves every chunk's postings to their final place in the mapped arrays.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._numbers: dict[str, int] = {}
        self._tokens: dict[str, int] = {}
        self._lengths = bytearray()
        self._total = 0
        self._rows: list[NDArray[np.uint32]] = []
        self._chunks: list[int] = []
        self._scratch = (folder / "scratch.bin").open("w+b")

    def add(self, text: str) -> None:
        """Index one more document."""
        numbers = [n for n in map(self._number, analysis.tokens(text)) if n >= 0]
        found = Counter(numbers)
        row = np.empty((len(found), 3), dtype=np.uint32)
        row[:, 0] = list(found)
        row[:, 1] = len(self._lengths)
        row[:, 2] = list(found.values())
        self._rows.append(row)
        self._lengths.append(length_byte(len(numbers)))
        self._total += len(numbers)
        if len(self._rows) >= _CHUNK:
            self._flush()

    def _number(self, token: str) -> int:
        number = self._tokens.get(token)
        if number is None:
            term = analysis.term(token)
            number = -1 if term is None else self._numbers.setdefault(term, len(self._numbers))
            if len(self._tokens) >= _CACHED_TOKENS:
                self._tokens.clear()
            self._tokens[token] = number
        return number

    def _flush(self) -> None:
        rows = np.concatenate(self._rows) if self._rows else np.empty((0, 3), dtype=np.uint32)
        rows = rows[np.argsort(rows[:, 0], kind="stable")]
        self._scratch.write(rows.tobytes())
        self._chunks.append(len(rows))
        self._rows = []

    def finish(self, ids: Iterable[str]) -> None:
        """Write the arrays; `ids` are the product ids in document order (they break ties)."""
        self._flush()
        self._tokens.clear()
        ordered = sorted(self._numbers, key=str.encode)
        place = np.empty(len(ordered), dtype=np.int64)
        place[[self._numbers[term] for term in ordered]] = np.arange(len(ordered))
        self._save_terms(ordered)
        self._save("lengths", np.frombuffer(bytes(self._lengths), dtype=np.uint8))
        self._save("total", np.array([self._total], dtype=np.int64))
        names = np.array(list(ids), dtype=np.str_)
        ranks = np.empty(len(names), dtype=np.int32)
        ranks[np.argsort(names, kind="stable")] = np.arange(len(names), dtype=np.int32)
        self._save("ranks", ranks)
        self._place(place)
        self._scratch.close()
        (self.folder / "scratch.bin").unlink()

    def _save(self, name: str, array: NDArray[Any]) -> None:
        np.save(self.folder / f"{name}.npy", array, allow_pickle=False)

    def _save_terms(self, ordered: list[str]) -> None:
        blobs = [term.encode() for term in ordered]
        self._save("term_starts", np.cumsum([0, *map(len, blobs)], dtype=np.int64))
        self._save("terms", np.frombuffer(b"".join(blobs), dtype=np.uint8))

    def _chunk_rows(self) -> Iterable[NDArray[np.uint32]]:
        self._scratch.seek(0)
        for size in self._chunks:
            yield np.frombuffer(self._scratch.read(size * 12), dtype=np.uint32).reshape(size, 3)

    def _place(self, place: NDArray[np.int64]) -> None:
        found = np.zeros(len(place), dtype=np.int64)
        for rows in self._chunk_rows():
            found += np.bincount(place[rows[:, 0]], minlength=len(place)).astype(np.int64)
        offsets = np.concatenate(([0], np.cumsum(found)))
        self._save("offsets", offsets)
        total, following = int(offsets[-1]), offsets[:-1].copy()
        documents = self._open("documents", np.int32, total)
        counts = self._open("counts", np.uint16, total)
        for rows in self._chunk_rows():
            numbers = place[rows[:, 0]]
            starts = np.flatnonzero(np.diff(numbers, prepend=-1))
            sizes = np.diff(np.append(starts, len(numbers)))
            at = np.repeat(following[numbers[starts]] - starts, sizes) + np.arange(len(numbers))
            documents[at] = rows[:, 1]
            counts[at] = np.minimum(rows[:, 2], 65_535)
            following[numbers[starts]] += sizes
            _let_go(documents, counts)

    def _open(self, name: str, kind: Any, size: int) -> NDArray[Any]:
        path = self.folder / f"{name}.npy"
        if size == 0:
            np.save(path, np.empty(0, dtype=kind), allow_pickle=False)
            return np.empty(0, dtype=kind)
        return np.lib.format.open_memmap(path, mode="w+", dtype=kind, shape=(size,))  # type: ignore[no-untyped-call, no-any-return]
