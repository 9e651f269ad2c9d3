"""Merge: results folders of one study, from several people or machines, made into one.

Each cell key is a hash of everything that decides outcomes, so rows of equal keys mean the same thing wherever they
were run, and may stand in one ledger.  For each (cell, task):

* a row that ended beats one that failed or timed out (failed attempts are kept before it, as in any ledger);
* rows that ended and are equal but for times are one row, the first folder's;
* rows that ended and differ are a conflict: nothing is merged, and every such key is named.  Choosing between two
  outcomes by hand is choosing results.

Records are copied as bytes.  The new ledger is written beside the old one and put in its place whole, under the lock.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness import ledger, measures, results
from harness.codec import parse
from harness.errors import UsageError
from harness.frames import Frame
from harness.grid import difference
from harness.ledger import FILE, RETRYABLE, Found, Key, Ledger
from harness.panels import Panel

SHOWN = 12
CLOCKS = frozenset({"seconds", "started_at", "wall_s", "waited_s"})


class MergeConflict(UsageError):
    """The folders disagree; nothing was written."""


@dataclass(frozen=True)
class Merged:
    """What a merge did: rows by key afterwards, how many came from each folder, how many were there twice."""

    folder: Path
    rows: int
    taken: Mapping[Path, int]
    equal: int

    def text(self) -> str:
        """For people."""
        lines = [f"{self.folder}: {self.rows} episode(s)"]
        lines += [f"  {count} from {folder}" for folder, count in self.taken.items()]
        lines += [f"  {self.equal} were there more than once, equal but for times"] * bool(self.equal)
        return "\n".join(lines)


@dataclass(frozen=True)
class _Source:
    folder: Path
    study: Mapping[str, Any]
    panels: Mapping[str, Panel]
    found: Found
    attempts: Mapping[Key, list[Frame]]  # in the order written; the last counts


def merge(folders: Sequence[Path], into: Path) -> Merged:
    """Merge results folders (`results/<study>`) into one, which may be one of them.

    Raises:
        MergeConflict: other studies, labels of other meaning, or rows that ended differently.
        UsageError: a folder without a study, a ledger that cannot be believed, another run at work on `into`.
    """
    if into.exists() and not into.is_dir():
        raise UsageError(f"--into {into}: a file is there already; name a folder, such as results/main.")
    own = any(folder.exists() and into.exists() and into.samefile(folder) for folder in folders)
    if not own and into.exists() and any(into.iterdir()):
        raise UsageError(f"{into} is there already and is not among the folders: name it among them, or another.")
    with ExitStack() as lock:
        if own:
            lock.enter_context(Ledger(into))  # no run may add to it from here on
        sources = [_read(folder) for folder in folders]
        study = _one_study(sources)
        panels = _panels(sources)
        chosen, equal = _choose(sources)
        if not own:
            lock.enter_context(Ledger(into))
        taken = _write_ledger(into, sources, chosen)
        results.store(into, study, panels)
        _measures(into, sources)
    return Merged(into, len(chosen), taken, equal)


def timeless(data: Any) -> Any:
    """A record (JSON) without what the clock decides."""
    if isinstance(data, Mapping):
        return {key: timeless(value) for key, value in data.items() if key not in CLOCKS}
    return [timeless(item) for item in data] if isinstance(data, list) else data


def _read(folder: Path) -> _Source:
    study = results.stored_study(folder) if folder.is_dir() else None
    if study is None:
        raise UsageError(f"{folder} holds no study (no study.json). Give folders like results/quickstart.")
    found = ledger.read(folder)
    found.last_attempts()  # warns of damage, refuses duplicates
    attempts: dict[Key, list[Frame]] = {}
    for frame in found.frames:
        attempts.setdefault((frame.head["cell"], frame.head["task_id"]), []).append(frame)
    return _Source(folder, study, results.kept_panels(folder), found, attempts)


def _one_study(sources: Sequence[_Source]) -> dict[str, Any]:
    """`study.json` of all: the first folder's, with the cells of the others."""
    names = sorted({str(source.study["study"]) for source in sources})
    if len(names) > 1:
        raise MergeConflict(f"These are folders of several studies: {', '.join(names)}. Merge each by itself.")
    cells: dict[str, dict[str, Any]] = {}
    skipped: dict[str, dict[str, Any]] = {}
    labels: dict[tuple[Any, ...], tuple[_Source, Mapping[str, Any]]] = {}
    wrong = []
    for source in sources:
        for cell in source.study["cells"]:
            known = cells.setdefault(cell["key"], dict(cell))
            known["current"] = bool(known.get("current", True) or cell.get("current", True))
            if not cell.get("current", True):
                continue
            place = tuple(cell[name] for name in ("method", "actor", "environment", "seed"))
            first, other = labels.setdefault(place, (source, cell))
            if other["key"] != cell["key"]:
                said = "; ".join(difference(other["identity"], cell["identity"])[:3])
                wrong.append(f"  {' x '.join(map(str, place))}: {first.folder} and {source.folder} differ: {said}")
        for cell in source.study.get("skipped", []):
            skipped.setdefault(cell["key"], cell)
    if wrong:
        raise MergeConflict(
            "The folders mean different things by the same labels; their episodes cannot stand in one table:\n"
            + _some(wrong)
        )
    seeds = sorted({seed for source in sources for seed in source.study["resolved"].get("seeds", [])})
    resolved = _union([source.study["resolved"] for source in sources]) | {"seeds": seeds}
    left_out = [cell for key, cell in skipped.items() if not cells.get(key, {}).get("current")]
    return dict(sources[0].study) | {"resolved": resolved, "cells": list(cells.values()), "skipped": left_out}


def _union(resolved: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Parts by label from all, the first folder's settings."""
    made = dict(resolved[0])
    for other in resolved[1:]:
        for name in ("environments", "actors", "judges", "candidates", "methods"):
            made[name] = {**other.get(name, {}), **made.get(name, {})}
    return made


def _panels(sources: Sequence[_Source]) -> dict[str, Panel]:
    made: dict[str, Panel] = {}
    for source in sources:
        for label, panel in source.panels.items():
            if made.setdefault(label, panel).digest != panel.digest:
                raise MergeConflict(
                    f"The tasks of environment {label!r} differ: {made[label].digest} in an earlier folder, "
                    f"{panel.digest} in {source.folder}."
                )
    return made


def _choose(sources: Sequence[_Source]) -> tuple[dict[Key, int], int]:
    """For each key the number of the source whose last row counts, and how many keys had equal rows."""
    chosen: dict[Key, int] = {}
    equal, wrong = 0, []
    for key in dict.fromkeys(key for source in sources for key in source.attempts):
        having = [number for number, source in enumerate(sources) if key in source.attempts]
        ended = [number for number in having if _last(sources[number], key).head["status"] not in RETRYABLE]
        chosen[key] = (ended or having)[0]
        records = [_record(sources[number], key) for number in ended] if len(ended) > 1 else []
        if any(record != records[0] for record in records[1:]):
            where = ", ".join(f"{_said(sources[n], key)} in {sources[n].folder}" for n in ended)
            wrong.append(f"  cell {key[0]}, task {key[1]!r}: {where}")
        equal += bool(records)
    if wrong:
        raise MergeConflict(
            f"{len(wrong)} episode(s) were run more than once and ended differently; nothing was merged:\n"
            f"{_some(wrong)}\nLeave out a folder that has them, or run them under other seeds."
        )
    return chosen, equal


def _last(source: _Source, key: Key) -> Frame:
    return source.attempts[key][-1]


def _record(source: _Source, key: Key) -> Any:
    data = timeless(parse(source.found.text(_last(source, key))))
    data.pop("attempt", None)  # an account of the past, not of the outcome
    return data


def _said(source: _Source, key: Key) -> str:
    head = _last(source, key).head
    return f"{head['status']}, reward {head['reward']}, {head['steps']} steps"


def _write_ledger(into: Path, sources: Sequence[_Source], chosen: Mapping[Key, int]) -> dict[Path, int]:
    taken = {source.folder: 0 for source in sources}
    part = into / f".{FILE}.{os.getpid()}"
    try:
        with part.open("wb") as file:
            for key, number in chosen.items():
                file.writelines(_attempts(sources, key, number))
                taken[sources[number].folder] += 1
            file.flush()
            os.fsync(file.fileno())
        part.replace(into / FILE)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise UsageError(f"Cannot write {into / FILE}: {error.strerror or error}. Nothing was merged.") from error
    return taken


def _attempts(sources: Sequence[_Source], key: Key, chosen: int) -> Iterable[bytes]:
    """The bytes of all failed attempts that are not the same, then of the row that counts."""
    last = _bytes(sources[chosen], _last(sources[chosen], key))
    earlier = dict.fromkeys(
        _bytes(source, frame)
        for source in sources
        for frame in source.attempts.get(key, [])
        if frame.head["status"] in RETRYABLE
    )
    return [*(record for record in earlier if record != last), last]


def _bytes(source: _Source, frame: Frame) -> bytes:
    return bytes(source.found.data[frame.offset : frame.offset + frame.size])


def _measures(into: Path, sources: Sequence[_Source]) -> None:
    """Measures that the folder lacks; where several have one, the first counts."""
    for source in sources:
        for name in measures.names(source.folder):
            target = into / measures.FOLDER / f"{name}.json"
            if not target.exists():
                target.parent.mkdir(exist_ok=True)
                shutil.copyfile(source.folder / measures.FOLDER / target.name, target)


def _some(lines: Sequence[str]) -> str:
    rest = [f"  and {len(lines) - SHOWN} more"] if len(lines) > SHOWN else []
    return "\n".join([*lines[:SHOWN], *rest])
