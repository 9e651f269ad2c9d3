"""Pairs: branch tables to the comparator's training data, and to the critic's (paper appendices A.3, B.3 and B.7).

Two passes over the branches, one group in memory: the first labels all pairs and decides which ties stay, the second
writes.  The leak check reads what was written.  Everything is a function of the branches and the arguments: the same
input gives the same files byte for byte.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from typing import Any

from harness.errors import UsageError
from methods.branching.folders import Content, Folder, Group, contents, join_panels, open_folder
from methods.branching.pair_counts import PairCounts, write_pair_card
from methods.branching.pairing import TIE_SHARE, Pair, keep_pairs, swapped_first
from methods.branching.splits import SPLITS, LeakError, Panel, Split, check_leaks, split_of
from methods.branching.tables import Writer, read_card, read_rows

TEXT, INT, REAL = "string", "int32", "float64"
COMMON = {"environment": TEXT, "task_id": TEXT, "split": TEXT}
PAIR_COLUMNS = COMMON | {
    "group": TEXT,
    "view": TEXT,
    "first": TEXT,
    "second": TEXT,
    "label": TEXT,
    "q_first": REAL,
    "q_second": REAL,
    "order": INT,
    "pair_id": TEXT,
    "kind": TEXT,
}
CRITIC_COLUMNS = COMMON | {"view": TEXT, "action": TEXT, "step": INT, "outcome": REAL, "remaining": INT, "depth": INT}
Cell = tuple[str, Split]


def make_pairs(
    branches: Sequence[Path],
    out: Path,
    *,
    margins: Mapping[str, float] | None = None,
    tie_share: float = TIE_SHARE,
    seed: int = 0,
    ab_only: bool = False,
    panels: Mapping[str, Panel] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> PairCounts:
    """Pairs and critic records of branch folders, split by task, into `out`.

    Args:
        branches: folders made by `collect`; several environments may be mixed.
        out: gets `{split}.parquet` (pairs), `critic-{split}.parquet`, `card.json` and `README.md`.
        margins: gamma by environment; the default follows the environment's metric (`MARGINS`).
        tie_share: share of ties kept in each environment and split.
        seed: chooses ties and which order comes first.
        ab_only: the A/B target of Table 9: no T at all. The margin is 0 and exact ties are dropped, so every
            difference is a preference.
        panels: evaluation tasks by environment, added to those that the branch folders know.
        progress: called with (groups done, groups) over both passes.

    Raises:
        LeakError: an evaluation task is among the branches, or a task would be in two splits.
        UsageError: a folder holds no branches, or no two branches differ in value.
    """
    folders = [open_folder(path, margins or {}, ab_only) for path in branches]
    if not folders:
        raise UsageError("No branch folder given: name one made by `cota-bench collect`.")
    known = join_panels(folders, panels or {})
    content, left_out = contents(folders)
    check_leaks(((e, t, f, split_of(e, t)) for (e, t), f in content.items()), known)
    tick = _ticking(folders, progress)
    labels, kept = _choose(folders, content, 0.0 if ab_only else tie_share, seed, tick)
    if not any(kept.values()):
        raise UsageError(
            "No two branches of one prefix differ in value by more than the margin, so there is nothing to learn. "
            "Collect more tasks, or from an actor that sometimes fails and sometimes succeeds."
        )
    counts = PairCounts(labels=labels, left_out=left_out)
    _write(out, "", PAIR_COLUMNS, lambda add: _pair_rows(folders, content, kept, seed, add, counts, tick))
    _write(out, "critic-", CRITIC_COLUMNS, lambda add: _critic_rows(folders, content, add, counts))
    _check_written(out, content, known)
    settings = {"tie_share": tie_share, "seed": seed, "ab_only": ab_only}
    write_pair_card(out, folders, counts, settings)
    return counts


def _ticking(folders: Sequence[Folder], progress: Callable[[int, int], None] | None) -> Callable[[], None]:
    """What to call after each group of either pass."""
    if progress is None:
        return lambda: None
    total = 2 * sum(int(read_card(folder.path)["counts"].get("points", 0)) for folder in folders)
    done = count(1)
    return lambda: progress(min(next(done), total), total)


def _choose(
    folders: Sequence[Folder], content: Content, share: float, seed: int, tick: Callable[[], None]
) -> tuple[dict[Cell, dict[str, int]], dict[Cell, set[str]]]:
    """Labels of all pairs before any is dropped, and the ids of those to keep, by environment and split."""
    named: dict[Cell, list[tuple[str, Any]]] = {}
    for folder in folders:
        for group, pairs in folder.pairs(content):
            cell = named.setdefault((group.environment, group.split), [])
            cell.extend((pair.pair_id, pair.label) for pair in pairs)
            tick()
    labels = {cell: dict(Counter(label for _, label in pairs)) for cell, pairs in named.items()}
    return labels, {cell: keep_pairs(pairs, share, seed) for cell, pairs in named.items()}


Add = Callable[[Split, Mapping[str, Any]], None]


def _write(out: Path, prefix: str, columns: Mapping[str, str], fill: Callable[[Add], None]) -> None:
    with ExitStack() as stack:
        writers = {split: Writer(out / f"{prefix}{split}.parquet", columns) for split in SPLITS}
        for writer in writers.values():
            stack.callback(writer.discard)  # does nothing to one that was closed
        fill(lambda split, row: writers[split].add(row))
        for writer in writers.values():
            writer.close()


def _pair_rows(
    folders: Sequence[Folder],
    content: Content,
    kept: Mapping[Cell, set[str]],
    seed: int,
    add: Add,
    counts: PairCounts,
    tick: Callable[[], None],
) -> None:
    for folder in folders:
        for group, pairs in folder.pairs(content, views=True):
            tick()
            cell = (group.environment, group.split)
            for pair in pairs:
                if pair.pair_id not in kept[cell]:
                    continue
                counts.physical[cell] += 1
                counts.kinds[(group.environment, pair.kind)] += 1
                one, other = pair, pair.swapped()
                both = (other, one) if swapped_first(pair.pair_id, seed) else (one, other)
                for order, ordered in enumerate(both):
                    add(group.split, _pair_row(group, ordered, order))
                    counts.rows[(*cell, ordered.label)] += 1


def _pair_row(group: Group, pair: Pair, order: int) -> dict[str, Any]:
    return {
        "environment": group.environment,
        "task_id": group.task_id,
        "split": group.split,
        "group": group.name,
        "view": group.view,
        "first": pair.first.action,
        "second": pair.second.action,
        "label": pair.label,
        "q_first": pair.first.q,
        "q_second": pair.second.q,
        "order": order,
        "pair_id": pair.pair_id,
        "kind": pair.kind,
    }


def _critic_rows(folders: Sequence[Folder], content: Content, add: Add, counts: PairCounts) -> None:
    for folder in folders:
        for row in folder.critic_rows():
            key = (row["environment"], row["task_id"])
            if key in content:
                split = split_of(*key)
                add(split, row | {"split": split})
                counts.critic[(key[0], split)] += 1


def _check_written(out: Path, content: Content, panels: Mapping[str, Panel]) -> None:
    """Read back what was written; on a leak nothing of it stays."""
    files = [out / f"{prefix}{split}.parquet" for prefix in ("", "critic-") for split in SPLITS]
    try:
        check_leaks(_tasks_in(files, content), panels)
    except LeakError:
        for path in files:
            path.unlink(missing_ok=True)
        raise


def _tasks_in(files: Iterable[Path], content: Content) -> Iterable[tuple[str, str, str, str]]:
    for path in files:
        rows = read_rows(path, ("environment", "task_id", "split"))
        for environment, task_id, split in sorted({(r["environment"], r["task_id"], r["split"]) for r in rows}):
            if split != path.stem.removeprefix("critic-"):
                raise LeakError(f"{path.name} holds task {task_id!r} of {environment}, whose split is {split!r}.")
            yield environment, task_id, content[environment, task_id], split
