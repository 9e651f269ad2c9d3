"""Sample: which episodes travel inside the page, and how they are packed.

Whole blocks are taken (one actor, environment, task and seed under every method), because the viewer is for setting
methods beside each other.  Blocks in which methods end differently come first, environments and actors in turns, so a
small sample shows where a method mattered; nothing is drawn at random.  Each block is compressed by itself and opened
by the page when it is looked at, so neither the page's maker nor its reader ever holds all episodes.
"""

from __future__ import annotations

import base64
import gzip
import itertools
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from harness.beside import WHY, parting, trace
from harness.rows import Row
from reports.frames import Key, Tracked, records
from reports.page.view import View, view_of

EPISODES: Final = 400
Place = tuple[str, str, str, int]  # environment, actor, task, seed


@dataclass(frozen=True)
class Sample:
    """Blocks as the page embeds them, and how many episodes of how many they hold."""

    blocks: Sequence[dict[str, Any]]
    shown: int
    recorded: int
    keys: frozenset[Key]


def sample(source: Tracked, limit: int = EPISODES) -> Sample:
    """Blocks of at most `limit` episodes in all (at least one block unless the limit is 0)."""
    chosen = choose(source, limit)
    keys = {(str(row["cell"]), str(row["task_id"])): place for place, rows in chosen.items() for row in rows}
    labels = {cell.key: cell.method for cell in source.cells}
    found: dict[Place, dict[str, View]] = {place: {} for place in chosen}
    traces: dict[Place, dict[str, Any]] = {place: {} for place in chosen}
    for record in records(source, keys.keys()):
        key = (str(record["cell"]), str(record["task_id"]))
        method = labels[key[0]]
        found[keys[key]][method] = view_of(record) | {"cell": key[0]}
        traces[keys[key]][method] = trace(record)
    order = list(dict.fromkeys(labels.values()))
    places = sorted((place for place in found if found[place]), key=_plan_order(source))
    blocks = [_block(place, found[place], traces[place], order) for place in places]
    return Sample(blocks, len(keys), len(source.rows), frozenset(keys))


def choose(source: Tracked, limit: int) -> dict[Place, list[Row]]:
    """The rows to embed by block: differing outcomes first, environments and actors in turns."""
    blocks: dict[Place, list[Row]] = {}
    cells = {cell.key: cell for cell in source.cells}  # a row keeps the labels that it was run under
    for row in source.rows:
        if row["outcome"] != "skipped":
            cell = cells[str(row["cell"])]
            place = (cell.environment, cell.actor, str(row["task_id"]), cell.seed)
            blocks.setdefault(place, []).append(row)
    queues: dict[tuple[str, str], list[Place]] = {}
    for place in sorted(blocks, key=lambda place: -_interest(blocks[place])):
        queues.setdefault(place[:2], []).append(place)
    chosen: dict[Place, list[Row]] = {}
    count = 0
    for turn in itertools.zip_longest(*queues.values()):
        for place in turn:
            if place is None:
                continue
            size = len(blocks[place])
            if limit <= 0 or (chosen and count + size > limit):
                return chosen
            chosen[place] = blocks[place]
            count += size
    return chosen


def _plan_order(source: Tracked) -> Callable[[Place], tuple[int, ...]]:
    """Environments, actors, tasks and seeds as the plan has them."""
    environments = {cell.environment: i for i, cell in reversed(list(enumerate(source.cells)))}
    actors = {cell.actor: i for i, cell in reversed(list(enumerate(source.cells)))}
    tasks = {(cell.environment, task): i for cell in source.cells for i, task in enumerate(cell.tasks)}

    def order(place: Place) -> tuple[int, ...]:
        environment, actor, task, seed = place
        return environments[environment], actors[actor], tasks.get((environment, task), len(tasks)), seed

    return order


def _interest(rows: Sequence[Row]) -> int:
    """2: methods end differently; 1: something fired or broke; 0: nothing of the kind."""
    ends = {(row["status"], row["reward"], row["success"]) for row in rows}
    return 2 * (len(ends) > 1) + any(row["fired"] or row["outcome"] == "error" for row in rows)


def _block(place: Place, views: Mapping[str, View], traces: Mapping[str, Any], order: Sequence[str]) -> dict[str, Any]:
    methods = [method for method in order if method in views]
    parts: dict[str, dict[str, Any]] = {}
    for a, b in itertools.combinations(methods, 2):
        at = parting(traces[a], traces[b])
        parts.setdefault(a, {})[b] = None if at is None else [at.step, WHY[at.why]]
    environment, actor, task, seed = place
    ends = {method: [views[method]["status"], views[method]["reward"]] for method in methods}
    cells = {method: views[method]["cell"] for method in methods}
    body = {"views": {method: views[method] for method in methods}, "parts": parts}
    head = {"environment": environment, "actor": actor, "task": task, "seed": seed, "ends": ends, "cells": cells}
    return head | {"body": packed(body)}


def packed(data: object) -> str:
    """JSON, compressed (without a time stamp, so that the same page comes out twice), as base64."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return base64.b64encode(gzip.compress(text.encode("utf-8", "backslashreplace"), 6, mtime=0)).decode()


def unpacked(text: str) -> Any:
    """The inverse of `packed`."""
    return json.loads(gzip.decompress(base64.b64decode(text)))
