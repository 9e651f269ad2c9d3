"""Two episodes side by side: where they part, and what the terminal shows."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner

from harness.beside import WHY, Parting, parting, partner, show_beside, trace, trace_of
from harness.cli.app import app
from harness.codec import to_json
from harness.errors import UsageError
from harness.records import Action, Episode
from tests.synthetic import make_episode, planned_cells, write_ledger


def pair() -> tuple[Episode, Episode]:
    """Origin and cota on one task; cota does something else at step 2."""
    origin, cota = planned_cells(
        methods=("origin", "cota"), actors=("weak",), environments=("retail",), seeds=(0,), tasks=1
    )
    ours = make_episode(origin, "retail-0")
    other = replace(ours.steps[2], executed=Action("another action", "another"))
    return ours, replace(ours, cell=cota.key, method="cota", steps=(*ours.steps[:2], other, *ours.steps[3:]))


def changed(episode: Episode, at: int, **changes: object) -> Episode:
    steps = list(episode.steps)
    steps[at] = replace(steps[at], **changes)  # type: ignore[arg-type]
    return replace(episode, steps=tuple(steps))


def test_where_they_part() -> None:
    ours, theirs = pair()
    assert parting(trace_of(ours), trace_of(theirs)) == Parting(2, "action")
    assert parting(trace_of(ours), trace_of(ours)) is None
    seen = changed(theirs, 1, observation="Something else.")
    assert parting(trace_of(ours), trace_of(seen)) == Parting(1, "observation")
    # What the action is called does not matter, what it does decides.
    same = changed(ours, 1, executed=Action("LOOK", ours.steps[1].executed.canonical))
    assert parting(trace_of(ours), trace_of(same)) is None
    short = replace(ours, steps=ours.steps[:3])
    assert parting(trace_of(ours), trace_of(short)) == parting(trace_of(short), trace_of(ours)) == Parting(3, "length")
    assert parting(trace_of(ours), trace_of(replace(ours, reward=0.125))) == Parting(4, "outcome")
    nothing = replace(ours, steps=())
    assert parting(trace_of(nothing), trace_of(ours)) == Parting(0, "length")


def test_the_record_gives_the_same_trace() -> None:
    for episode in pair():
        assert trace(to_json(episode)) == trace_of(episode)


def printed(ours: Episode, theirs: Episode) -> str:
    out = io.StringIO()
    show_beside(ours, theirs, Console(file=out, width=160))
    return out.getvalue()


def test_the_terminal_says_where_they_part() -> None:
    ours, theirs = pair()
    text = printed(ours, theirs)
    assert f"They part at step 2: {WHY['action']}." in text
    assert "steps 0 to 1, the same: look at thing 0; look at thing 1" in text
    here = text.index("here they part")
    line = next(line for line in text[here:].splitlines() if "another action" in line)
    assert "look at thing 2" in line.split("another action")[0]
    assert "They never part." in printed(ours, replace(ours, method="twin"))
    assert "(ended: done)" in printed(ours, replace(theirs, steps=theirs.steps[:3]))
    empty = printed(replace(ours, steps=()), replace(ours, steps=()))
    assert "They never part." in empty


def test_hostile_text_cannot_steer_the_terminal() -> None:
    ours, theirs = pair()
    text = printed(changed(ours, 2, observation="\x1b[2J[red]gone[/red]"), theirs)
    assert "\x1b" not in text
    assert "\\x1b[2J[red]gone[/red]" in text


def test_the_partner_and_the_command(tmp_path: Path) -> None:
    ours, theirs = pair()
    folder = write_ledger(tmp_path / "demo", [ours, theirs])
    assert partner(folder, ours, "cota") == theirs
    with pytest.raises(UsageError, match=r"no method 'coat'\. Nearest: cota"):
        partner(folder, ours, "coat")
    arguments = ["show", "demo", "origin/weak/retail/0/retail-0", "--beside", "cota", "--results", str(tmp_path)]
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0, done.output
    assert "They part at step 2" in done.output
