"""Seeds: SHA-256 over named parts, so that every consumer has a stream of its own.

Adding a method, a task or a draw never shifts the randomness of another: nothing is counted, everything is named.
"""

from __future__ import annotations

import hashlib
import json
import random


def seed_of(**parts: str | int | float | bool | None) -> int:
    """A seed in [0, 2**63) from named parts; the order of the names does not matter."""
    text = json.dumps(parts, sort_keys=True, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1


def stream(**parts: str | int | float | bool | None) -> random.Random:
    """A generator seeded by `seed_of(**parts)`."""
    return random.Random(seed_of(**parts))


def digest(value: object) -> str:
    """Hex SHA-256 of a JSON value in canonical form. Raises ValueError on NaN, TypeError on what JSON cannot hold."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()
