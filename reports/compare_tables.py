"""Tables of a comparison: differences, flips by task, and what found no partner; for the terminal and for files."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Final

from harness.errors import UsageError
from harness.rows import Scalar
from reports import caption, render
from reports.compare import Comparison, Contrast
from reports.stats import Estimate
from reports.table import Column, Entry, Table, entry, flat, number

if TYPE_CHECKING:
    from rich.console import Console

KINDS: Final = ("A only", "B only", "both", "neither")
SETTINGS: Final = 12
TASKS: Final = 40


def tables(found: Comparison) -> list[Table]:
    """Differences, then flips by task."""
    return [_differences(found), _flips(found)]


def _differences(found: Comparison) -> Table:
    columns = [Column(head, numeric=False) for head in ("Method", "Actor", "Environment")]
    columns += [Column(head) for head in ("Pairs", "A", "B", "A - B", "A wins", "Ties", "B wins", "Time A / B")]
    columns += [Column(kind, "Success in") for kind in KINDS]
    notes = []
    for contrast in found.contrasts:
        if contrast.unmatched:
            said = ", ".join(f"{count} {why}" for why, count in sorted(contrast.unmatched.items()))
            notes.append(f"Unmatched, {_name(contrast)}: {said}.")
    if found.settings:
        more = f"; and {len(found.settings) - SETTINGS} more" if len(found.settings) > SETTINGS else ""
        notes.append(f"Settings that differ (B -> A): {'; '.join(found.settings[:SETTINGS])}{more}.")
    sentences = [
        "Paired by actor, environment, task and seed; scored in both. Rewards in [0, 1], success rates in percent.",
        "Brackets: 95% interval, bootstrap over tasks.",
        caption.simulated(found.simulated),
    ]
    return Table(
        name="comparison",
        title=f"{found.a} (A) against {found.b} (B).",
        columns=columns,
        body=[_row(contrast) for contrast in found.contrasts],
        caption=[sentence for sentence in sentences if sentence],
        notes=notes,
        data=[_data(contrast) for contrast in found.contrasts],
    )


def _row(contrast: Contrast) -> list[Entry]:
    digits, scale = (3, 1.0) if contrast.metric == "mean_reward" else (1, 100.0)
    flips = _total(contrast)
    texts = [contrast.method, contrast.actor, contrast.environment, str(len(contrast.pairs))]
    texts += [number(value, digits, scale) for value in (contrast.a, contrast.b)]
    change = entry(contrast.change, digits, scale)
    if contrast.change.value is not None and contrast.change.value > 0:
        change = Entry(f"+{change.text}", change.interval)
    counts = [Entry(str(count)) for count in (contrast.wins, contrast.ties, contrast.losses)]
    marks = [Entry(str(flips[kind])) for kind in KINDS]
    return [*map(Entry, texts), change, *counts, entry(contrast.time, 2), *marks]


def _data(contrast: Contrast) -> dict[str, Scalar]:
    flips = _total(contrast)
    return {
        "method": contrast.method,
        "actor": contrast.actor,
        "environment": contrast.environment,
        "metric": contrast.metric,
        "pairs": len(contrast.pairs),
        "a": contrast.a,
        "b": contrast.b,
        **flat("difference", contrast.change),
        "a_wins": contrast.wins,
        "ties": contrast.ties,
        "b_wins": contrast.losses,
        **flat("time_ratio", contrast.time),
        **{f"success_{kind.replace(' ', '_').lower()}": flips[kind] for kind in KINDS},
        "unmatched": sum(contrast.unmatched.values()),
    }


def _flips(found: Comparison) -> Table:
    columns = [Column(head, numeric=False) for head in ("Method", "Environment", "Task")]
    by_task: dict[tuple[str, str, str], Counter[str]] = {}
    for contrast in found.contrasts:
        for task, counts in contrast.flips().items():
            by_task.setdefault((contrast.method, contrast.environment, task), Counter()).update(counts)
    flipped = {place: counts for place, counts in by_task.items() if counts["A only"] or counts["B only"]}
    order = sorted(flipped, key=lambda place: (-(flipped[place]["A only"] + flipped[place]["B only"]), place))
    return Table(
        name="flips",
        title="Flips by task.",
        columns=[*columns, *(Column(kind, "Success in") for kind in KINDS)],
        body=[[*map(Entry, place), *(Entry(str(flipped[place][kind])) for kind in KINDS)] for place in order],
        caption=[
            f"Pairs of all actors and seeds; {len(by_task) - len(flipped)} of {len(by_task)} tasks end alike and are left "
            "out. A win is a success."
        ],
        data=[
            {
                "method": method,
                "environment": environment,
                "task": task,
                **{kind.replace(" ", "_").lower(): counts[kind] for kind in KINDS},
            }
            for (method, environment, task), counts in by_task.items()
        ],
    )


def _total(contrast: Contrast) -> Counter[str]:
    return sum(contrast.flips().values(), Counter())


def _name(contrast: Contrast) -> str:
    return f"{contrast.method} x {contrast.actor} x {contrast.environment}"


def show(found: Comparison, console: Console) -> None:
    """Print the tables; rows of which the interval leaves out zero are bold."""
    from rich.table import Table as RichTable
    from rich.text import Text

    differences, flips = tables(found)
    clear = [_clear(contrast.change) for contrast in found.contrasts]
    for table, bold in ((differences, clear), (flips, [])):
        heads = [column.head for column in table.columns]
        shown = RichTable(title=Text(table.title, style="bold"), title_justify="left", caption_justify="left")
        for head, column in zip(heads, table.columns, strict=True):
            shown.add_column(Text(head), justify="right" if column.numeric else "left")
        for i, row in enumerate(table.body[:TASKS]):
            texts = [Text("\n".join(filter(None, (item.text, item.interval)))) for item in row]
            shown.add_row(*texts, style="bold" if i < len(bold) and bold[i] else None)
        console.print(shown)
        for line in (*table.caption, *table.notes):
            console.print(Text(line, style="yellow" if line.startswith("SIMULATED") else "dim"))
        if len(table.body) > TASKS:
            console.print(Text(f"and {len(table.body) - TASKS} more tasks: see --out", style="dim"))
        console.print()


def _clear(estimate: Estimate) -> bool:
    span = estimate.interval
    return span is not None and (span[0] > 0 or span[1] < 0)


def write(found: Comparison, out: Path) -> list[Path]:
    """Write to `.md` (everything) or `.csv` (differences; flips beside it), by the ending of `out`.

    Raises:
        UsageError: another ending, or a place that cannot be written.
    """
    differences, flips = tables(found)
    if out.suffix == ".md":
        texts = {out: "\n".join(render.markdown(table) for table in (differences, flips))}
    elif out.suffix == ".csv":
        texts = {out: render.to_csv(differences), out.with_name(f"{out.stem}-flips.csv"): render.to_csv(flips)}
    else:
        raise UsageError(f"--out {out}: write a name that ends in .md or .csv.")
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        for path, text in texts.items():
            path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"Cannot write {out}: {error.strerror or error}. Name another place with --out.") from error
    return list(texts)
