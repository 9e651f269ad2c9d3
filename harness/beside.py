"""Beside: two episodes of one task next to each other, and the first point where they part.

Two methods with the same actor, environment, task and seed meet the same randomness, so what they do is the same up to
the step at which one of them changed something.  That step is what a reader looks for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness import show
from harness.records import Episode

if TYPE_CHECKING:
    from rich.console import Console

WHY = {
    "action": "they execute different actions",
    "observation": "they see different observations after the same actions",
    "length": "one of them has ended",
    "outcome": "same steps, another outcome",
}


@dataclass(frozen=True, slots=True)
class Parting:
    """The first step (by position) at which two episodes differ, and how: a key of `WHY`."""

    step: int
    why: str


Trace = Sequence[tuple[str, str]]
End = tuple[object, ...]


def trace(record: Mapping[str, Any]) -> tuple[Trace, End]:
    """What decides whether two episodes are the same: (observation, canonical action) a step, and how it ended.

    Takes an episode as `harness.codec` writes it.
    """
    steps = [(str(step["observation"]), str(step["executed"]["canonical"])) for step in record["steps"]]
    return steps, (record["status"], record["reward"])


def trace_of(episode: Episode) -> tuple[Trace, End]:
    """The same of an episode."""
    steps = [(step.observation, step.executed.canonical) for step in episode.steps]
    return steps, (episode.status, episode.reward)


def parting(ours: tuple[Trace, End], theirs: tuple[Trace, End]) -> Parting | None:
    """Where two traces part first; None when they never do."""
    for i, (a, b) in enumerate(zip(ours[0], theirs[0], strict=False)):
        if a[0] != b[0]:
            return Parting(i, "observation")
        if a[1] != b[1]:
            return Parting(i, "action")
    if len(ours[0]) != len(theirs[0]):
        return Parting(min(len(ours[0]), len(theirs[0])), "length")
    return None if ours[1] == theirs[1] else Parting(len(ours[0]), "outcome")


def partner(folder: Path, episode: Episode, method: str) -> Episode:
    """The episode of another method with the same actor, environment, task and seed, by the labels of now.

    Raises:
        UsageError: there is none; the message names the nearest.
    """
    now = show.present_labels(folder).get(episode.cell, {})
    labels = {name: now.get(name, getattr(episode, name)) for name in ("actor", "environment", "seed")}
    return show.one(folder, replace(show.Wanted(task=episode.task_id, method=method), **labels))


def show_beside(ours: Episode, theirs: Episode, console: Console, *, full: bool = False) -> None:
    """Print two episodes in two columns; what is the same before they part is named in a line."""
    from rich.rule import Rule
    from rich.text import Text

    console.print(show.head(ours, full=full))
    found = parting(trace_of(ours), trace_of(theirs))
    where = "They never part." if found is None else f"They part at step {found.step}: {WHY[found.why]}."
    console.print(Text(where, style="bold"))
    names = [[Text(show.visible(episode.method), style="bold")] for episode in (ours, theirs)]
    console.print(_columns(*names))
    until = found.step if found else len(ours.steps)
    # Steps at which neither was reviewed hold nothing to compare until the two part.
    for plain, some in groupby(range(until), key=lambda i: not (ours.steps[i].reviews or theirs.steps[i].reviews)):
        at = list(some)
        if plain:
            acts = "; ".join(show.action(ours.steps[i].executed) for i in at)
            console.print(Text(f"steps {at[0]} to {at[-1]}, the same: {acts}", style="dim"))
        else:
            for i in at:
                console.print(_step(ours, theirs, i, full))
    for i in range(until, max(len(ours.steps), len(theirs.steps))):
        if found and i == found.step:
            console.print(Rule(Text(f"here they part: {WHY[found.why]}", style="bold yellow"), style="yellow"))
        console.print(_step(ours, theirs, i, full))
    console.print(_columns([show.end(ours)], [show.end(theirs)]))


def _step(ours: Episode, theirs: Episode, i: int, full: bool) -> Any:
    return _columns(*(list(_lines(episode, i, full)) for episode in (ours, theirs)))


def _lines(episode: Episode, i: int, full: bool) -> Iterator[Any]:
    from rich.text import Text

    if i < len(episode.steps):
        yield from show.step_lines(episode.steps[i], full)
    elif i == len(episode.steps):
        yield Text(f"(ended: {episode.status})", style="dim")


def _columns(left: Sequence[Any], right: Sequence[Any]) -> Any:
    from rich.console import Group
    from rich.table import Table

    table = Table.grid(expand=True, padding=(0, 1))
    table.add_column(ratio=1)
    table.add_column(ratio=1)
    table.add_row(Group(*left), Group(*right))
    return table
