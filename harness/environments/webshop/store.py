"""A loaded catalogue: products, search, goals, prices and nouns; read-only and shared by all episodes of a process.

Small catalogues are kept in memory; large ones stay in SQLite (a connection for each thread and process) behind a
cache of products, with the search arrays memory-mapped.
"""

from __future__ import annotations

import json
import os
import sqlite3
import threading
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from harness.cache import cache_dir
from harness.environments.webshop import build, goals
from harness.environments.webshop.catalogue import Product
from harness.environments.webshop.index import Index
from harness.environments.webshop.nouns import Nouns
from harness.errors import UsageError

IN_MEMORY = 20_000  # products


class Store:
    """Everything about one catalogue; make it with `load`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        meta: dict[str, Any] = json.loads((folder / "meta.json").read_text(encoding="utf-8"))
        self.size: int = meta["size"]
        self.digest: str = meta["digest"]
        self.has_people: bool = meta["human"]
        small = self.size <= IN_MEMORY
        self.index = Index(folder, mapped=not small)
        self._local = threading.local()
        self._all = list(self._iterate()) if small else None
        self._recent = lru_cache(maxsize=4096)(self._fetch)
        self._goals = {kind: self._load_goals(kind, small) for kind in ("synthetic", "human")}
        self.nouns = Nouns(folder / "nouns.sqlite", self.titles if small else None)

    def _load_goals(self, kind: str, small: bool) -> Any:
        path = self._folder / f"goals_{kind}.npy"
        empty = path.stat().st_size <= 128  # an array of no rows cannot be mapped
        return np.load(path, mmap_mode=None if small or empty else "r", allow_pickle=False)

    def _base(self) -> sqlite3.Connection:
        """This thread's connection; one inherited through a fork is left alone."""
        if getattr(self._local, "process", None) != os.getpid():
            path = (self._folder / "products.sqlite").resolve().as_uri()
            self._local.base = sqlite3.connect(f"{path}?mode=ro&immutable=1", uri=True)
            self._local.process = os.getpid()
        base: sqlite3.Connection = self._local.base
        return base

    def _iterate(self) -> Iterator[Product]:
        for (data,) in self._base().execute("SELECT data FROM products ORDER BY number"):
            yield build.unpack(data)

    def _fetch(self, number: int) -> Product:
        return build.read_products(self._base(), [number])[number]

    def product(self, number: int) -> Product:
        """A product by its number in catalogue order."""
        return self._all[number] if self._all is not None else self._recent(number)

    def products(self) -> Iterator[Product]:
        """All products in catalogue order."""
        return iter(self._all) if self._all is not None else self._iterate()

    def titles(self) -> list[str]:
        """All titles in catalogue order."""
        return [product.title for product in self.products()]

    def count(self, kind: str) -> int:
        """How many goals of a kind ("synthetic" or "human") the catalogue gives."""
        return len(self._goals[kind])

    def goal_asins(self, kind: str) -> list[str]:
        """Target of each goal in the official order."""
        return [self.product(int(number)).asin for number, _ in self._goals[kind]]

    def goal(self, kind: str, index: int, draws: goals.Draws) -> goals.Goal:
        """The goal at a position of the official order."""
        number, which = (int(value) for value in self._goals[kind][index])
        return goals.expand(index, number, self.product(number), which, kind == "human", draws)


_lock = threading.Lock()
_stores: dict[Path, Store] = {}


def load(source: str, head: int | None, seed: int) -> Store:
    """The store of a catalogue, made on demand and kept for the process.

    Args:
        source: "synthetic", or a folder with the official files.
        head: only the first so many products; None for all.
        seed: of the synthetic catalogue.

    Raises:
        UsageError: a missing folder or file, or a broken record.
    """
    if head is not None and head < 1:
        raise UsageError(f"products={head} leaves no catalogue: give a positive number, or None for all.")
    if source == "synthetic":
        found = build.Source(seed=seed) if head is None else build.Source(seed=seed, size=head)
    else:
        found = build.find(source, head)
    with _lock:
        folder = build.ensure(cache_dir("webshop"), found)
        if folder not in _stores:
            _stores[folder] = Store(folder)
        return _stores[folder]
