"""Response cache: answers that were paid for once, by everything that could make them differ.

The key is model, revision, the full request, seed and draw index: no address (the same model elsewhere is the same
model), no key, nothing that is random or counts calls.  One SQLite file, safe for many processes; a file that another
version wrote is put aside by its name.
"""

from __future__ import annotations

import json
import os
import sqlite3
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.cache import cache_dir
from harness.seeds import digest

if TYPE_CHECKING:
    from harness.models.client import Endpoint

VERSION = 1  # bump when the meaning of a stored answer changes
_local = threading.local()


class ResponseCache:
    """Answers by key, in one file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def default(cls) -> ResponseCache:
        """The cache of this user: `responses/answers-vN.sqlite` in the cache folder."""
        return cls(cache_dir("responses") / f"answers-v{VERSION}.sqlite")

    @staticmethod
    def parts(endpoint: Endpoint, body: Mapping[str, Any], draw: int) -> dict[str, Any]:
        """What the key is made of, for people who wonder why an answer was not found again."""
        request = {key: value for key, value in body.items() if key not in ("model", "seed")}
        return {
            "model": endpoint.model,
            "revision": endpoint.revision,
            "request": request,
            "seed": body.get("seed"),
            "draw": draw,
        }

    def key(self, endpoint: Endpoint, body: Mapping[str, Any], draw: int = 0) -> str:
        """Hex SHA-256 over `parts`."""
        return digest(self.parts(endpoint, body, draw))

    def get(self, key: str) -> dict[str, Any] | None:
        """The stored answer, or None."""
        row = self._db().execute("SELECT answer FROM answers WHERE key = ?", (key,)).fetchone()
        if row is None:
            return None
        answer: dict[str, Any] = json.loads(row[0])
        return answer

    def put(self, key: str, answer: Mapping[str, Any]) -> None:
        """Keep an answer; the first one stored under a key stays."""
        with self._db() as db:
            db.execute("INSERT OR IGNORE INTO answers VALUES (?, ?)", (key, json.dumps(answer, ensure_ascii=True)))

    def _db(self) -> sqlite3.Connection:
        """One connection a thread and process."""
        held: dict[tuple[int, str], sqlite3.Connection] = _local.__dict__.setdefault("open", {})
        place = (os.getpid(), str(self.path))
        if place not in held:
            db = sqlite3.connect(self.path, timeout=60.0)
            db.execute("PRAGMA journal_mode=WAL")
            db.execute("PRAGMA synchronous=NORMAL")
            db.execute("CREATE TABLE IF NOT EXISTS answers (key TEXT PRIMARY KEY, answer TEXT NOT NULL) WITHOUT ROWID")
            held[place] = db
        return held[place]
