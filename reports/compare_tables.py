"""Tables of a comparison: differences, flips by task, and what found no partner; for the terminal and for files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
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
    from rich.table import Table as RichTable

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
    gaps: list[str] = []
    for contrast in found.contrasts:
        if contrast.unmatched:
            said = ", ".join(f"{count} {why}" for why, count in sorted(contrast.unmatched.items()))
            gaps.append(f"{_name(contrast)} {said}")
    notes = [f"Unmatched: {'; '.join(gaps)}."] if gaps else []
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
            f"Pairs of all actors and seeds; {len(by_task) - len(flipped)} of {len(by_task)} tasks end alike and are "
            "left out.",
            *filter(None, [caption.simulated(found.simulated)]),
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
    """Print the tables, narrow enough for 80 columns; a row whose interval leaves out zero is bold."""
    from rich.text import Text

    differences, flips = tables(found)
    skip = 0 if len({contrast.method for contrast in found.contrasts}) > 1 else 1
    shown = _plain(differences.title)
    shown.add_column("", overflow="fold")
    for head in ("pairs", "A", "B", "A - B", "95% interval", "wins\nA/=/B", "success\nA/B only", "time\nA/B"):
        shown.add_column(Text(head), justify="right", no_wrap=True)
    for contrast, row in zip(found.contrasts, differences.body, strict=True):
        if contrast.pairs:
            style = "bold" if _clear(contrast.change) else None
            shown.add_row(*map(Text, _narrow(contrast, row, skip == 0)), style=style)
    console.print(shown)
    for line in (*differences.caption, *differences.notes):
        console.print(Text(line, style="yellow" if line.startswith("SIMULATED") else "dim"))
    if flips.body:
        listed = _plain(flips.title)
        for column in flips.columns[skip:]:
            listed.add_column(Text(column.head), justify="right" if column.numeric else "left")
        for row in flips.body[:TASKS]:
            listed.add_row(*(Text(item.text) for item in row[skip:]))
        console.print()
        console.print(listed)
    more = f" {len(flips.body) - TASKS} more flips: see --out." if len(flips.body) > TASKS else ""
    console.print(Text(flips.caption[0] + more, style="dim"))


def _plain(title: str) -> RichTable:
    """A table without walls."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table as Made
    from rich.text import Text

    text = Text(title, style="bold")
    return Made(title=text, title_justify="left", box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)


def _narrow(contrast: Contrast, row: Sequence[Entry], methods: bool) -> list[str]:
    where = f"{contrast.environment} {contrast.actor}" + (f"\n{contrast.method}" if methods else "")
    flips = _total(contrast)
    wins = f"{contrast.wins}/{contrast.ties}/{contrast.losses}"
    only = f"{flips['A only']}/{flips['B only']}"
    return [where, *(item.text for item in row[3:7]), row[6].interval, wins, only, row[10].text]


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
