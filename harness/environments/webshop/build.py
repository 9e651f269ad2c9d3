"""Making a catalogue's cache folder: products in SQLite, search arrays, goal lists, and a content hash.

Records are read as a stream and nothing is kept but the running arrays, so 1.18 million products fit in well under
2 GB.  The folder is made under a temporary name and renamed when it is complete; a lock keeps several processes from
doing the same work.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sqlite3
import tempfile
import zlib
from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from harness.environments.webshop import catalogue, goals, reader, synthetic
from harness.environments.webshop.index import IndexWriter
from harness.environments.webshop.locking import locked
from harness.errors import UsageError
from harness.seeds import digest

FORMAT = 1  # raise it when what is written here changes


@dataclass(frozen=True)
class Source:
    """Where a catalogue comes from: the embedded generator, or official files in a folder."""

    products: Path | None = None
    facts: Path | None = None
    requests: Path | None = None
    head: int | None = None  # only so many records from the start
    seed: int = 0
    size: int = synthetic.SIZE

    def key(self) -> str:
        """Name of the cache folder: changes when a file does."""
        files = []
        for path in (self.products, self.facts, self.requests):
            status = path.stat() if path else None
            files.append([str(path.resolve()), status.st_size, status.st_mtime_ns] if path and status else None)
        return digest([FORMAT, synthetic.VERSION, files, self.head, self.seed, self.size])[:24]


def find(folder: str, head: int | None) -> Source:
    """The official files in a folder.

    Args:
        folder: holds `items_shuffle.json` (full) or `items_shuffle_1000.json`, the matching `items_ins_v2*.json`, and
            for human goals `items_human_ins.json`.
        head: only the first so many records (1000 takes the official file of that size when it is there).

    Raises:
        UsageError: naming what is expected where.
    """
    root = Path(folder).expanduser()
    if not root.is_dir():
        raise UsageError(
            f"WebShop catalogue folder {folder!r} does not exist. Give the folder that holds items_shuffle.json or "
            "items_shuffle_1000.json with its items_ins_v2*.json, or catalogue='synthetic' for the embedded one."
        )
    small = head is not None and head <= 1000
    products = _first(root, "items_shuffle", small)
    facts = _first(root, "items_ins_v2", "_1000" in products.name)
    requests = root / "items_human_ins.json"
    return Source(products, facts, requests if requests.is_file() else None, head)


def _first(root: Path, stem: str, small: bool) -> Path:
    names = [f"{stem}.json", f"{stem}_1000.json"]
    for name in reversed(names) if small else names:
        if (root / name).is_file():
            return root / name
    there = ", ".join(sorted(path.name for path in root.iterdir())[:8]) or "nothing"
    raise UsageError(f"{root} has neither {names[0]} nor {names[1]} (it holds: {there}). Get the official file there.")


def ensure(root: Path, source: Source) -> Path:
    """The cache folder of a source below `root`, made when it is not there. Raises `UsageError` for broken files."""
    folder = root / source.key()
    if (folder / "meta.json").is_file():
        return folder
    with locked(root / f"{source.key()}.lock"):
        if (folder / "meta.json").is_file():
            return folder
        scratch = Path(tempfile.mkdtemp(dir=root, prefix="making-"))
        try:
            _write(scratch, source)
            try:
                os.replace(scratch, folder)
            except OSError:
                if not (folder / "meta.json").is_file():  # not merely lost to another process
                    raise
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
    return folder


def _write(folder: Path, source: Source) -> None:
    base = sqlite3.connect(folder / "products.sqlite")
    base.executescript(
        "PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; PRAGMA cache_size=-65536;"
        "CREATE TABLE products(number INTEGER PRIMARY KEY, asin TEXT NOT NULL UNIQUE, data BLOB NOT NULL);"
        "CREATE TEMP TABLE facts(asin TEXT PRIMARY KEY, data TEXT) WITHOUT ROWID;"
    )
    writer, seal = IndexWriter(folder), hashlib.sha256()
    made, asked = array("i"), array("i")  # (product, which) pairs of synthetic and human goals
    for number, product in enumerate(_products(base, source)):
        text = catalogue.to_json(product)
        seal.update(text.encode("utf-8", "surrogatepass") + b"\n")
        base.execute("INSERT INTO products VALUES (?, ?, ?)", (number, product.asin, pack(text)))
        writer.add(product.document())
        for which in range(goals.combinations(product)):
            made.extend((number, which))
        for which, request in enumerate(product.requests):
            if request.attributes:
                asked.extend((number, which))
    base.commit()
    writer.finish(asin for (asin,) in base.execute("SELECT asin FROM products ORDER BY number"))
    size = base.execute("SELECT count(*) FROM products").fetchone()[0]
    base.close()
    for name, pairs in (("synthetic", made), ("human", asked)):
        rows = np.array(pairs, dtype=np.int32).reshape(-1, 2)
        np.save(folder / f"goals_{name}.npy", rows[goals.shuffled(len(rows))], allow_pickle=False)
    meta = {"size": size, "digest": seal.hexdigest(), "human": source.requests is not None}
    (folder / "meta.json").write_text(json.dumps(meta), encoding="utf-8")


def _products(base: sqlite3.Connection, source: Source) -> Iterator[catalogue.Product]:
    if source.products is None:
        for record, facts in synthetic.records(source.seed, source.size):
            yield catalogue.product(record, facts)
        return
    people = _people(source.requests)
    assert source.facts is not None  # noqa: S101  `find` gives both
    rows = ((asin, json.dumps(facts)) for asin, facts in reader.members(source.facts))
    base.executemany("INSERT OR REPLACE INTO facts VALUES (?, ?)", rows)
    seen: set[str] = set()
    for number, raw in reader.array(source.products):
        if source.head is not None and number >= source.head:
            return
        product = _read(base, source.products, number, raw, people)
        if product is not None and product.asin not in seen:
            seen.add(product.asin)
            yield product


def _people(path: Path | None) -> dict[str, Any]:
    return dict(reader.members(path)) if path else {}


def _read(
    base: sqlite3.Connection, path: Path, number: int, raw: object, people: dict[str, Any]
) -> catalogue.Product | None:
    try:
        record = catalogue.check(raw)
        if not catalogue.usable(record):
            return None
        found = base.execute("SELECT data FROM facts WHERE asin = ?", (record["asin"],)).fetchone()
        facts = json.loads(found[0]) if found else None
        return catalogue.product(record, facts, people.get(record["asin"], ()))
    except ValueError as error:
        name = f" ({raw['asin']})" if isinstance(raw, dict) and raw.get("asin") else ""
        raise UsageError(f"{path}: record {number}{name} is broken: {error}. Repair or remove that record.") from error


def read_products(base: sqlite3.Connection, numbers: Iterable[int]) -> dict[int, catalogue.Product]:
    """Products by number from an open products.sqlite."""
    wanted = list(numbers)
    marks = ",".join("?" * len(wanted))
    rows = base.execute(f"SELECT number, data FROM products WHERE number IN ({marks})", wanted)  # noqa: S608
    return {number: unpack(data) for number, data in rows}


def pack(text: str) -> bytes:
    """One line of JSON as it is stored."""
    return zlib.compress(text.encode("utf-8", "surrogatepass"), 3)


def unpack(data: bytes) -> catalogue.Product:
    """The product stored by `pack`."""
    return catalogue.from_json(zlib.decompress(data).decode("utf-8", "surrogatepass"))
