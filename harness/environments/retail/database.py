"""The retail database, copied on access: a base shared by the process and a small overlay for one episode.

The official engine copies its whole database for an episode (84 ms) and hashes all of it (31 ms).  A retail tool
touches a few orders and one user, so here a table hands out the shared entity to readers and a private copy to
writers.  Freezing merges the private copies into an immutable overlay: nothing in it is ever written again, which makes
a snapshot a reference and a restore an assignment.  Products are never written by any retail tool and never copied.
Databases are equal iff their `changes()` are; `digest()` is the engine's own hash, built from cached fragments.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Any

Overlay = dict[str, Any]
Frozen = tuple[Overlay, Overlay]
TABLES = ("orders", "products", "users")


class Base:
    """The shared database: read-only entities by table and key, with their JSON text made on demand."""

    def __init__(self, tables: Mapping[str, dict[str, Any]], sha256: str) -> None:
        self.tables = tables
        self.sha256 = sha256
        self._texts: dict[tuple[str, str], str] = {}
        self._rows: dict[str, dict[str, str]] = {}

    def text(self, table: str, key: str) -> str:
        """JSON text of one entity as the engine hashes it."""
        found = self._texts.get((table, key))
        if found is None:
            found = self._texts[(table, key)] = entity_text(self.tables[table][key])
        return found

    def rows(self, table: str) -> dict[str, str]:
        """`"key": {...}` of each entity of a table in the hash's order; the caller must not change it."""
        found = self._rows.get(table)
        if found is None:
            found = {key: f"{json.dumps(key)}: {self.text(table, key)}" for key in sorted(self.tables[table])}
            self._rows[table] = found
        return found


def entity_text(entity: Any) -> str:
    """JSON text of an entity, as in the engine's hash."""
    return json.dumps(entity.model_dump(), sort_keys=True, default=str)


class Table:
    """One table as the engine's tools see it: a mapping that copies what a writer asks for."""

    def __init__(self, base: Mapping[str, Any], database: Database) -> None:
        self._base = base
        self._database = database
        self.frozen: Overlay = {}
        self.live: Overlay = {}

    def _peek(self, key: str) -> Any:
        found = self.live.get(key)
        if found is None:
            found = self.frozen.get(key)
        return self._base[key] if found is None else found

    def __getitem__(self, key: str) -> Any:
        found = self.live.get(key)
        if found is not None:
            return found
        entity = self._peek(key)
        if self._database.writing:
            entity = self.live[key] = entity.model_copy(deep=True)
        return entity

    def __contains__(self, key: object) -> bool:
        return key in self._base

    def __iter__(self) -> Iterator[str]:
        return iter(self._base)

    def __len__(self) -> int:
        return len(self._base)

    def values(self) -> Iterator[Any]:
        """Entities for reading; never copies."""
        return (self._peek(key) for key in self._base)

    def items(self) -> Iterator[tuple[str, Any]]:
        """Pairs for reading; never copies."""
        return ((key, self._peek(key)) for key in self._base)

    def overlay(self) -> Overlay:
        """All private copies, newest first."""
        return {**self.frozen, **self.live}


class Database:
    """One episode's database: looks like the engine's `RetailDB` to the engine's tools."""

    def __init__(self, base: Base) -> None:
        self.base = base
        self.writing = False
        self.products = base.tables["products"]
        self.orders = Table(base.tables["orders"], self)
        self.users = Table(base.tables["users"], self)

    def freeze(self) -> Frozen:
        """The present contents as an immutable value; later writes copy again. O(touched entities)."""
        for table in (self.orders, self.users):
            if table.live:
                table.frozen, table.live = table.overlay(), {}
        return self.orders.frozen, self.users.frozen

    def thaw(self, frozen: Frozen) -> None:
        """Back to a frozen value. O(1)."""
        self.orders.frozen, self.users.frozen = frozen
        self.orders.live, self.users.live = {}, {}

    def changes(self) -> dict[tuple[str, str], str]:
        """JSON text of each entity that differs from the base; equal iff the engine's hashes are equal."""
        found = {}
        for name, table in (("orders", self.orders), ("users", self.users)):
            for key, entity in table.overlay().items():
                text = entity_text(entity)
                if text != self.base.text(name, key):
                    found[(name, key)] = text
        return found

    def digest(self) -> str:
        """The engine's hash of the whole database (hex SHA-256), from cached fragments."""
        changed = self.changes()
        parts = []
        for name in TABLES:
            here = {key: f"{json.dumps(key)}: {text}" for (table, key), text in changed.items() if table == name}
            rows = {**self.base.rows(name), **here}  # keys that exist keep their place
            parts.append(f'"{name}": {{{", ".join(rows.values())}}}')
        return hashlib.sha256(f"{{{', '.join(parts)}}}".encode()).hexdigest()

    def model_dump(self) -> dict[str, Any]:
        """Everything as plain values: what the engine's own hash function reads."""
        return {
            "products": {key: item.model_dump() for key, item in self.products.items()},
            "users": {key: item.model_dump() for key, item in self.users.items()},
            "orders": {key: item.model_dump() for key, item in self.orders.items()},
        }
