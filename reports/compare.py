"""Compare: two sides paired by actor, environment, task and seed, wherever their episodes lie.

A side is a study, one method of it (`STUDY:METHOD`), or a results folder; two commits of the code are two results
folders.  Only what both sides ran on the same task (same id and same content) is compared, and what found no partner is
counted and named: a difference of means over different tasks is not shown.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from harness import ledger
from harness.errors import UsageError, nearest
from harness.grid import difference
from harness.results import kept_panels, stored_study
from harness.rows import Row
from reports.frames import Tracked, open_source, score
from reports.performance import generator
from reports.stats import EMPTY, Estimate, mean_by_task, paired_ratio

Key = tuple[str, str, str, int]  # actor, environment, task, seed
LABELS: Final = ("actor", "environment", "task_id", "seed")


@dataclass(frozen=True)
class Side:
    """One side: the rows of one method."""

    name: str
    folder: Path
    method: str
    source: Tracked
    rows: Mapping[Key, Row]


@dataclass(frozen=True)
class Contrast:
    """One actor and environment: B is the base, A what is held against it.

    Attributes:
        pairs: Rows of A and B of one key each, both scored.
        a: Mean of A over the pairs.
        b: Mean of B over the pairs.
        change: Mean of A less B with its interval over tasks.
        time: Working time of A over that of B, over pairs that ended.
        wins: Pairs in which A is higher; `ties`, `losses` accordingly.
        unmatched: Why episodes are in no pair, counted.
    """

    method: str
    actor: str
    environment: str
    metric: str
    pairs: Sequence[tuple[Row, Row]]
    a: float | None = None
    b: float | None = None
    change: Estimate = EMPTY
    time: Estimate = EMPTY
    wins: int = 0
    ties: int = 0
    losses: int = 0
    unmatched: Mapping[str, int] = field(default_factory=dict)

    def flips(self) -> dict[str, Counter[str]]:
        """For each task: pairs won by A only, by B only, by both, by neither (a win is a success)."""
        found: dict[str, Counter[str]] = {}
        for ours, theirs in self.pairs:
            kind = ("neither", "B only", "A only", "both")[2 * bool(ours["success"]) + bool(theirs["success"])]
            found.setdefault(str(ours["task_id"]), Counter())[kind] += 1
        return found


@dataclass(frozen=True)
class Comparison:
    """All contrasts of two sides, and in which settings they differ."""

    a: str
    b: str
    contrasts: Sequence[Contrast]
    settings: Sequence[str]
    simulated: Sequence[str]


def compare(a: str, b: str, results: Path) -> Comparison:
    """Two sides, held against each other.

    Args:
        a: A study, `STUDY:METHOD`, a results folder, or `FOLDER:METHOD`.
        b: The same; the base.
        results: Folder of all results.

    Raises:
        UsageError: no such side, the same side twice, or nothing that both have; the message names the nearest.
    """
    (folder_a, method_a), (folder_b, method_b) = _place(a, results), _place(b, results)
    source_a = open_source(folder_a)
    source_b = source_a if folder_b.resolve() == folder_a.resolve() else open_source(folder_b)
    contrasts: list[Contrast] = []
    settings: dict[str, None] = {}
    pairs = _methods(source_a, method_a, source_b, method_b)
    for one, other in pairs:
        if source_a is source_b and one == other:
            raise UsageError(f"A and B are both {one!r} of {folder_a}: name two methods, such as STUDY:METHOD.")
        sides = _side(a, folder_a, source_a, one), _side(b, folder_b, source_b, other)
        contrasts += _contrasts(*sides)
        settings |= dict.fromkeys(_settings(*sides))
    if not any(contrast.pairs for contrast in contrasts):
        raise UsageError(_nothing(a, source_a, b, source_b, contrasts))
    rows = [row for contrast in contrasts for pair in contrast.pairs for row in pair]
    simulated = sorted({part for row in rows for part in str(row["simulated"] or "").split(",") if part})
    names = [_named(text, method, len(pairs)) for text, method in zip((a, b), pairs[0], strict=True)]
    return Comparison(names[0], names[1], contrasts, list(settings), simulated)


def _named(text: str, method: str, methods: int) -> str:
    """A side as titles name it: with its method when it is the only one."""
    return text if methods > 1 or text.endswith(f":{method}") else f"{text}:{method}"


def _place(text: str, results: Path) -> tuple[Path, str | None]:
    """The results folder of a side, and the method when one is named."""
    whole = _folder(text, results)
    if whole is not None:
        return whole, None
    head, colon, method = text.rpartition(":")
    found = _folder(head, results) if colon and head else None
    if found is not None:
        return found, method
    there = sorted(path.parent.name for path in results.glob(f"*/{ledger.FILE}"))
    raise UsageError(
        f"{text!r} is neither a study with results in {results} nor a results folder.{nearest(head or text, there)} "
        "Write STUDY, STUDY:METHOD or the path of a folder that holds a ledger."
    )


def _folder(text: str, results: Path) -> Path | None:
    options = (results / text, Path(text)) if "/" not in text else (Path(text), results / text)
    return next((path for path in options if text and (path / ledger.FILE).is_file()), None)


def _methods(a: Tracked, method_a: str | None, b: Tracked, method_b: str | None) -> list[tuple[str, str]]:
    """Which method of A is held against which of B."""
    known_a, known_b = (list(dict.fromkeys(cell.method for cell in source.cells)) for source in (a, b))
    for method, known, source in ((method_a, known_a, a), (method_b, known_b, b)):
        if method is not None and method not in known:
            raise UsageError(f"{source.study} has no method {method!r}.{nearest(method, known)}")
    if method_a is None and method_b is None:
        shared = [(name, name) for name in known_a if name in known_b]
        if not shared and (len(known_a), len(known_b)) == (1, 1):
            shared = [(known_a[0], known_b[0])]
        if not shared:
            raise UsageError(
                f"No method is in both: {', '.join(known_a)} and {', '.join(known_b)}. Name them: STUDY:METHOD."
            )
        return shared
    one, other = method_a or _same(method_b, known_a), method_b or _same(method_a, known_b)
    if one is None or other is None:
        known = known_a if one is None else known_b
        raise UsageError(f"Which method on the other side? Name one of {', '.join(known)} as STUDY:METHOD.")
    return [(one, other)]


def _same(method: str | None, known: Sequence[str]) -> str | None:
    return method if method in known else known[0] if len(known) == 1 else None


def _side(name: str, folder: Path, source: Tracked, method: str) -> Side:
    # A row keeps the labels that it was run under; the plan has those of now.
    cells = {cell.key: cell for cell in source.cells if cell.method == method}
    rows = {
        (cell.actor, cell.environment, str(row["task_id"]), cell.seed): row
        for row in source.rows
        if (cell := cells.get(str(row["cell"]))) is not None
    }
    return Side(name, folder, method, source, rows)


def _contrasts(a: Side, b: Side) -> list[Contrast]:
    prints = [_prints(side.folder) for side in (a, b)]
    places = dict.fromkeys(key[:2] for side in (a, b) for key in side.rows)
    metrics = {(c.actor, c.environment): c.metric for side in (b, a) for c in side.source.cells}
    return [_contrast(a, b, place, metrics[place], prints) for place in places]


def _contrast(
    a: Side, b: Side, place: tuple[str, str], metric: str, prints: Sequence[Mapping[tuple[str, str], str]]
) -> Contrast:
    pairs: list[tuple[Row, Row]] = []
    ended: list[tuple[Row, Row]] = []
    unmatched: Counter[str] = Counter()
    keys = [key for key in dict.fromkeys([*a.rows, *b.rows]) if key[:2] == place]
    for key in keys:
        ours, theirs = a.rows.get(key), b.rows.get(key)
        why = _why_not(ours, theirs, *(known.get((key[1], key[2])) for known in prints))
        if why:
            unmatched[why] += 1
        elif ours is not None and theirs is not None:
            pairs.append((ours, theirs))
        if ours and theirs and all(row["outcome"] in ("scored", "unscored") for row in (ours, theirs)):
            ended.append((ours, theirs))
    method = a.method if a.method == b.method else f"{a.method} - {b.method}"
    if not pairs:
        return Contrast(method, *place, metric, [], unmatched=unmatched)
    scores = [(score(ours, metric), score(theirs, metric)) for ours, theirs in pairs]
    tasks = [str(ours["task_id"]) for ours, _ in pairs]
    labels = (a.method, b.method, *place)
    ended_tasks = [str(ours["task_id"]) for ours, _ in ended]
    works = [[float(row["work_s"] or 0.0) for row in side] for side in zip(*ended, strict=True)] if ended else [[], []]
    return Contrast(
        method,
        *place,
        metric,
        pairs,
        a=sum(x for x, _ in scores) / len(scores),
        b=sum(y for _, y in scores) / len(scores),
        change=mean_by_task([x - y for x, y in scores], tasks, generator("compare", *labels)),
        time=paired_ratio(works[0], works[1], ended_tasks, generator("compare time", *labels)),
        wins=sum(x > y for x, y in scores),
        ties=sum(x == y for x, y in scores),
        losses=sum(x < y for x, y in scores),
        unmatched=unmatched,
    )


def _why_not(ours: Row | None, theirs: Row | None, print_a: str | None, print_b: str | None) -> str:
    """Why two rows are no pair, or empty."""
    if ours is None or theirs is None:
        return "only in A" if theirs is None else "only in B"
    if print_a is not None and print_b is not None and print_a != print_b:
        return "the task's content differs"
    broken = [side for side, row in (("A", ours), ("B", theirs)) if row["outcome"] != "scored"]
    return f"not scored in {' and '.join(broken)}" if broken else ""


def _prints(folder: Path) -> dict[tuple[str, str], str]:
    """Content hash of each (environment, task)."""
    return {(label, task): mark for label, panel in kept_panels(folder).items() for task, mark in panel.tasks}


def _settings(a: Side, b: Side) -> Iterable[str]:
    """What differs in the settings of cells with the same labels and the same method plugin."""
    found = [_identities(side) for side in (b, a)]
    for place in sorted(found[0].keys() & found[1].keys()):
        if found[0][place]["method"].get("plugin") != found[1][place]["method"].get("plugin"):
            continue  # two methods differ in everything: that is what is compared
        for line in difference(found[0][place], found[1][place]):
            if not line.startswith(("environment.panel:", "seed:")):
                yield line


def _identities(side: Side) -> dict[tuple[Any, ...], Any]:
    stored = stored_study(side.folder) or {}
    cells = [cell for cell in stored.get("cells", []) if cell.get("current", True) and cell["method"] == side.method]
    return {(cell["actor"], cell["environment"], cell["seed"]): cell["identity"] for cell in cells}


def _values(source: Tracked, label: str) -> list[str]:
    """What a label is in the cells that have rows."""
    if label == "task_id":
        return list(dict.fromkeys(str(row["task_id"]) for row in source.rows))
    recorded = {row["cell"] for row in source.rows}
    return list(dict.fromkeys(str(getattr(cell, label)) for cell in source.cells if cell.key in recorded))


def _nothing(a: str, source_a: Tracked, b: str, source_b: Tracked, contrasts: Sequence[Contrast]) -> str:
    """Why nothing pairs: the first label that the sides do not share, or what became of the pairs."""
    for label in LABELS:
        ours, theirs = (_values(source, label) for source in (source_a, source_b))
        if ours and theirs and not set(ours) & set(theirs):
            few = [", ".join(values[:8]) for values in (ours, theirs)]
            hint = nearest(ours[0], theirs).split(" Valid:")[0]
            name = label.removesuffix("_id")
            return (
                f"Nothing pairs: no {name} is in both. {a} has {few[0]}; {b} has {few[1]}.{hint} Give them one label."
            )
    total = sum((Counter(contrast.unmatched) for contrast in contrasts), Counter())
    said = ", ".join(f"{count} {why}" for why, count in total.items()) or "one side has no episode"
    return f"Nothing pairs between {a} and {b}: {said}."
