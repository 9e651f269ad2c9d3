"""Frames: the ledger's bytes.  One gzip member a record: `zcat` reads the file, and a torn tail costs one record.

    member = gzip header with an extra field (size of the member, CRC-32 of all that follows) + deflate + gzip trailer
    text   = header line (JSON: key, status, attempt, times, usage) + body line (JSON: the episode)

The extra field lets a reader hop from record to record and check every byte without inflating any of them; only
the header line is inflated to learn what is done.  After damage a reader finds its feet again at the next member
whose signature, size and CRC agree.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from harness.codec import CodecError, dump, parse

# magic, deflate, FEXTRA, no time, no flags, unknown system, 12 bytes extra, field "CB" of 8 bytes
SIGNATURE = b"\x1f\x8b\x08\x04\x00\x00\x00\x00\x00\xff\x0c\x00CB\x08\x00"
_NUMBERS = struct.Struct("<II")
HEAD = len(SIGNATURE) + _NUMBERS.size
TRAILER = 8
LEVEL = 6
MAX_HEAD = 1 << 20  # bytes of a header line
MAX_TEXT = 256 << 20  # bytes of a record once inflated; a longest episode has a tenth, a bomb has no end


@dataclass(frozen=True, slots=True)
class Frame:
    """One good record: where it lies and its header line; the body is inflated only when asked for."""

    offset: int
    size: int
    head: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Damage:
    """Bytes that are no record; `tail`: nothing good follows (a write that was cut short)."""

    offset: int
    size: int
    tail: bool


def pack(head: Mapping[str, Any], body: Mapping[str, Any]) -> bytes:
    """One record. Raises `CodecError` for what JSON cannot hold."""
    text = dump(head) + b"\n" + dump(body) + b"\n"
    squeeze = zlib.compressobj(LEVEL, zlib.DEFLATED, -zlib.MAX_WBITS)
    rest = squeeze.compress(text) + squeeze.flush()
    rest += struct.pack("<II", zlib.crc32(text), len(text) & 0xFFFFFFFF)
    return SIGNATURE + _NUMBERS.pack(HEAD + len(rest), zlib.crc32(rest)) + rest


def scan(data: memoryview) -> Iterator[Frame | Damage]:
    """All records of a file in order, with the damaged stretches between them."""
    at, end = 0, len(data)
    while at < end:
        frame = _frame(data, at)
        if frame is None:
            found = _resync(data, at + 1)
            yield Damage(at, (found or end) - at, tail=found is None)
            if found is None:
                return
            at = found
        else:
            yield frame
            at += frame.size


def body(data: memoryview, frame: Frame) -> Any:
    """The body line of a record. Raises `CodecError` when it is no JSON or too long."""
    return parse(body_text(data, frame))


def body_text(data: memoryview, frame: Frame) -> bytes:
    """The body line of a record as it was written, for who copies or counts it without building the record.

    Raises `CodecError` for a record that inflates to nothing like one: a checksum says who wrote, not what.
    """
    inflate = zlib.decompressobj(-zlib.MAX_WBITS)
    try:
        text = inflate.decompress(data[frame.offset + HEAD : frame.offset + frame.size - TRAILER], MAX_TEXT)
    except zlib.error as error:
        raise CodecError(f"a record does not inflate: {error}") from error
    if inflate.unconsumed_tail or b"\n" not in text:
        raise CodecError(f"a record inflates to more than {MAX_TEXT} bytes, or to no two lines")
    return text[text.index(b"\n") + 1 :].rstrip(b"\n")


def plausible(start: bytes) -> bool:
    """Whether a file that begins like this can be a ledger (or the torn beginning of one)."""
    return start[: len(SIGNATURE)] == SIGNATURE[: len(start)]


def _frame(data: memoryview, at: int) -> Frame | None:
    if data[at : at + len(SIGNATURE)] != SIGNATURE or at + HEAD + TRAILER > len(data):
        return None
    size, check = _NUMBERS.unpack_from(data, at + len(SIGNATURE))
    if size < HEAD + TRAILER or at + size > len(data) or zlib.crc32(data[at + HEAD : at + size]) != check:
        return None
    try:
        head = parse(_first_line(data[at + HEAD : at + size - TRAILER]))
    except (CodecError, zlib.error):
        return None
    return Frame(at, size, head) if isinstance(head, dict) else None


def _first_line(deflated: memoryview) -> bytes:
    inflate = zlib.decompressobj(-zlib.MAX_WBITS)
    text = inflate.decompress(deflated, 768)
    while b"\n" not in text and not inflate.eof and inflate.unconsumed_tail and len(text) < MAX_HEAD:
        text += inflate.decompress(inflate.unconsumed_tail, 4096)
    return text.partition(b"\n")[0]


def _resync(data: memoryview, start: int) -> int | None:
    """Offset of the next good record, or None. Works in windows so that a large mapped file is not copied whole."""
    window, overlap = 1 << 20, len(SIGNATURE) - 1
    while start < len(data):
        part = bytes(data[start : start + window + overlap])
        hit = part.find(SIGNATURE)
        while hit >= 0:
            if _frame(data, start + hit) is not None:
                return start + hit
            hit = part.find(SIGNATURE, hit + 1)
        start += window
    return None
