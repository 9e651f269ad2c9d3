"""Comparisons: pairs, differences and flips by hand; what has no partner is counted; nonsense is refused."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import typer
from rich.console import Console
from typer.testing import CliRunner

from harness.errors import UsageError
from harness.records import Episode
from harness.results import kept_panels
from harness.tracking.plan import PlannedCell
from reports.command import compare as command
from reports.compare import compare
from reports.compare_tables import show, tables, write
from tests.synthetic import make_episode, planned_cells, write_ledger, write_plan

Make = Callable[[PlannedCell, str], Episode | None]
AXES: dict[str, Any] = {"actors": ("weak",), "environments": ("retail",), "seeds": (0, 1), "tasks": 4}


def study(root: Path, name: str, make: Make, **axes: Any) -> Path:
    cells = planned_cells(study=name, **{**AXES, "methods": ("origin", "cota"), **axes})
    write_plan(root / name, cells)
    made = [make(cell, task) for cell in cells for task in cell.tasks]
    return write_ledger(root / name, [episode for episode in made if episode is not None])


def won(cell: PlannedCell, task: str, success: bool, **changes: Any) -> Episode:
    return make_episode(cell, task, reward=float(success), success=success, **changes)


def by_hand(cell: PlannedCell, task: str) -> Episode | None:
    """Task 0: cota wins both seeds; 1: origin wins seed 0; 2: both win; 3: neither, and cota's seed 1 failed."""
    number = int(task[-1])
    if cell.method == "cota":
        if (number, cell.seed) == (3, 1):
            return make_episode(cell, task, "failed")
        return won(cell, task, number in (0, 2), wall_s=3.0, usage={})
    return won(cell, task, (number == 1 and cell.seed == 0) or number == 2, wall_s=2.0, usage={})


def test_by_hand(tmp_path: Path) -> None:
    study(tmp_path, "demo", by_hand)
    found = compare("demo:cota", "demo:origin", tmp_path)
    (contrast,) = found.contrasts
    assert len(contrast.pairs) == 7
    assert (contrast.a, contrast.b) == (4 / 7, 3 / 7)
    assert contrast.change.value == pytest.approx(1 / 7)
    assert (contrast.change.n, contrast.change.clusters) == (7, 4)
    assert (contrast.wins, contrast.ties, contrast.losses) == (2, 4, 1)
    assert contrast.time.value == pytest.approx(1.5)
    assert {task: dict(counts) for task, counts in contrast.flips().items()} == {
        "retail-0": {"A only": 2},
        "retail-1": {"B only": 1, "neither": 1},
        "retail-2": {"both": 2},
        "retail-3": {"neither": 1},
    }
    assert contrast.unmatched == {"not scored in A": 1}
    assert found.simulated == ["actor", "user"]


def test_the_other_way_round_is_the_mirror(tmp_path: Path) -> None:
    study(tmp_path, "demo", by_hand)
    (one,), (other,) = (
        compare(a, b, tmp_path).contrasts for a, b in (("demo:cota", "demo:origin"), ("demo:origin", "demo:cota"))
    )
    assert one.change.value == pytest.approx(-(other.change.value or 0.0))
    assert (one.wins, one.losses) == (other.losses, other.wins)


def test_two_commits_are_two_folders(tmp_path: Path) -> None:
    new = study(tmp_path / "new", "demo", lambda c, t: won(c, t, True))
    old = study(tmp_path / "old", "demo", lambda c, t: won(c, t, c.method == "cota"))
    found = compare(str(new), str(old), tmp_path)
    assert [(contrast.method, contrast.change.value) for contrast in found.contrasts] == [
        ("origin", 1.0),
        ("cota", 0.0),
    ]
    (one,) = compare(f"{new}:origin", str(old), tmp_path).contrasts
    assert one.wins == 8
    assert one.change.interval is None  # all pairs agree: resampling shows no spread


def test_a_task_of_another_content_is_no_pair(tmp_path: Path) -> None:
    a = study(tmp_path / "a", "demo", lambda c, t: won(c, t, True))
    b = study(tmp_path / "b", "demo", lambda c, t: won(c, t, False))
    panel = kept_panels(b)["retail"]
    other = replace(panel, tasks=tuple((task, "another" if task == "retail-2" else mark) for task, mark in panel.tasks))
    (b / "panels.json").write_text(json.dumps({"schema": 1, "panels": {"retail": other.to_json()}}))
    for contrast in compare(str(a), str(b), tmp_path).contrasts:
        assert len(contrast.pairs) == 6
        assert contrast.unmatched == {"the task's content differs": 2}


def test_renamed_labels_pair_by_the_names_of_now(tmp_path: Path) -> None:
    old = study(tmp_path / "old", "demo", by_hand)
    new = study(tmp_path / "new", "demo", by_hand, actors=("feeble",))
    cells = planned_cells(study="demo", **{**AXES, "methods": ("origin", "cota"), "actors": ("feeble",)})
    write_plan(new, [replace(cell, actor="weak") for cell in cells])
    assert [len(contrast.pairs) for contrast in compare(str(new), str(old), tmp_path).contrasts] == [8, 7]


def test_unequal_sides(tmp_path: Path) -> None:
    study(tmp_path, "one", lambda c, t: won(c, t, True), tasks=3)
    study(tmp_path, "two", lambda c, t: won(c, t, False) if c.seed == 0 else None, actors=("weak", "strong"))
    found = compare("one:cota", "two:cota", tmp_path)
    by_actor = {contrast.actor: contrast for contrast in found.contrasts}
    assert len(by_actor["weak"].pairs) == 3
    assert by_actor["weak"].unmatched == {"only in A": 3, "only in B": 1}
    assert by_actor["strong"].pairs == []
    assert by_actor["strong"].unmatched == {"only in B": 4}
    assert by_actor["strong"].a is None


def test_one_task_has_no_interval(tmp_path: Path) -> None:
    study(tmp_path, "demo", lambda c, t: won(c, t, c.method == "cota"), tasks=1)
    (contrast,) = compare("demo:cota", "demo:origin", tmp_path).contrasts
    assert contrast.change.value == 1.0
    assert contrast.change.interval is None


@pytest.mark.parametrize(
    ("a", "b", "said"),
    [
        ("dmeo", "demo", "Did you mean 'demo'"),
        ("demo:coat", "demo", "no method 'coat'. Did you mean 'cota'"),
        ("demo", "demo", "both 'origin'"),
        ("demo:cota", "demo:cota", "both 'cota'"),
        ("demo", "other", "No method is in both: origin, cota and alone, alone2"),
        ("demo:cota", "other", "Which method on the other side? Name one of alone, alone2"),
        ("demo:cota", "far:cota", "no actor is in both. demo:cota has weak; far:cota has week. Did you mean 'week'?"),
        ("demo:cota", "tasks:cota", "no environment is in both"),
        ("demo:cota", "broken:cota", "7 not scored in B, 1 not scored in A and B"),
        ("", "demo", "neither a study"),
    ],
)
def test_refused(tmp_path: Path, a: str, b: str, said: str) -> None:
    study(tmp_path, "demo", by_hand)
    study(tmp_path, "other", by_hand, methods=("alone", "alone2"))
    study(tmp_path, "far", by_hand, actors=("week",))
    study(tmp_path, "tasks", by_hand, environments=("alfworld",))
    study(tmp_path, "broken", lambda c, t: make_episode(c, t, "failed"))
    with pytest.raises(UsageError) as error:
        compare(a, b, tmp_path)
    assert said in str(error.value)


def test_settings_that_differ_are_named(tmp_path: Path) -> None:
    a = study(tmp_path / "a", "demo", lambda c, t: won(c, t, True))
    b = study(tmp_path / "b", "demo", lambda c, t: won(c, t, False))
    (b / "study.json").write_text((b / "study.json").read_text().replace('{"k": 4}', '{"k": 8}'))
    assert compare(str(a), str(b), tmp_path).settings == ["method.params.k: 8 -> 4"]


def test_formats(tmp_path: Path) -> None:
    study(tmp_path, "demo", by_hand)
    found = compare("demo:cota", "demo:origin", tmp_path)
    differences, flips = tables(found)
    assert differences.body[0][6].text == "+14.3"
    assert [entry.text for entry in flips.body[0]] == ["cota - origin", "retail", "retail-0", "2", "0", "0", "0"]
    assert len(flips.body) == 2
    (markdown,) = write(found, tmp_path / "out" / "c.md")
    assert "Unmatched: cota - origin x weak x retail 1 not scored in A." in markdown.read_text()
    assert "SIMULATED" in markdown.read_text()
    one, two = write(found, tmp_path / "c.csv")
    (row,) = csv.DictReader(io.StringIO(one.read_text()))
    assert float(row["difference"]) == pytest.approx(1 / 7)
    assert (row["success_a_only"], row["unmatched"]) == ("2", "1")
    assert len(list(csv.DictReader(io.StringIO(two.read_text())))) == 4
    with pytest.raises(UsageError, match=r"ends in \.md or \.csv"):
        write(found, tmp_path / "c.xlsx")
    out = io.StringIO()
    show(found, Console(file=out, width=80))
    assert "2/4/1" in out.getvalue()
    assert max(map(len, out.getvalue().splitlines())) <= 80
    assert "…" not in out.getvalue()


def test_the_command(tmp_path: Path) -> None:
    study(tmp_path, "demo", by_hand)
    app = typer.Typer()
    app.command()(command)
    done = CliRunner().invoke(
        app, ["demo:cota", "demo:origin", "--results", str(tmp_path), "--out", str(tmp_path / "x.md")]
    )
    assert done.exit_code == 0, done.output
    assert "Wrote" in done.output
