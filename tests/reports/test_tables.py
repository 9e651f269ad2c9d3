"""Tables from real ledgers: numbers by hand, edge cases, formats."""

from __future__ import annotations

import csv
import io
import math
import shutil
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from harness.errors import UsageError
from harness.records import Episode, Usage
from harness.tracking.plan import PlannedCell
from harness.tracking.tracked import Tracked, from_ledger, tracked
from reports import render
from reports.frames import episodes, open_source
from reports.table import Table
from reports.tables import build_all, coverage, interventions, table1
from reports.write import write_report
from tests.synthetic import episodes_of, make_episode, planned_cells, write_ledger, write_plan

Change = Callable[[PlannedCell, str], Episode | None]


def study(folder: Path, cells: Sequence[PlannedCell], change: Change | None = None) -> Tracked:
    make = change or (lambda cell, task: make_episode(cell, task))
    made = [make(cell, task) for cell in cells if not cell.skipped for task in cell.tasks]
    write_plan(folder, cells)
    write_ledger(folder, [episode for episode in made if episode is not None])
    return from_ledger(folder)


def rows_of(source: Tracked) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(render.to_csv(table1.build(source)))))


def one(source: Tracked, method: str, environment: str = "webshop") -> dict[str, str]:
    found = [row for row in rows_of(source) if (row["method"], row["environment"]) == (method, environment)]
    assert len(found) == 1
    return found[0]


SMALL = {"methods": ("origin", "cota"), "actors": ("weak",), "environments": ("webshop",)}


def test_numbers_by_hand(tmp_path: Path) -> None:
    """Performance and Avg. T computed here from the episodes, without any of the code under test."""
    cells = planned_cells(seeds=(0, 1), tasks=5, **SMALL)
    made = {(cell.method, cell.seed, task): make_episode(cell, task) for cell in cells for task in cell.tasks}
    source = study(tmp_path / "demo", cells)
    for method in ("origin", "cota"):
        mine = {key[1:]: episode for key, episode in made.items() if key[0] == method}
        base = {key[1:]: episode for key, episode in made.items() if key[0] == "origin"}
        row = one(source, method)
        mean = sum(episode.reward or 0.0 for episode in mine.values()) / 10
        assert float(row["performance_scored"]) == pytest.approx(mean, abs=1e-12)
        assert int(row["performance_scored_n"]) == 10
        assert int(row["performance_scored_tasks"]) == 5
        # 0.05 s of every episode was waited and does not count.
        ratio = sum(e.wall_s - 0.05 for e in mine.values()) / sum(e.wall_s - 0.05 for e in base.values())
        assert float(row["avg_t"]) == pytest.approx(ratio, abs=1e-12)


def test_avg_t_pairs_by_task_and_seed(tmp_path: Path) -> None:
    """An episode whose partner is missing or broken is in no sum."""
    cells = planned_cells(seeds=(0,), tasks=3, **SMALL)

    def change(cell: PlannedCell, task: str) -> Episode | None:
        if cell.method == "origin":
            walls = {"webshop-0": 1.0, "webshop-1": 2.0, "webshop-2": 500.0}
            status = "failed" if task == "webshop-2" else "done"
        else:
            walls = {"webshop-0": 3.0, "webshop-1": 1000.0, "webshop-2": 5.0}
            status = "timeout" if task == "webshop-1" else "done"
        return make_episode(cell, task, status, wall_s=walls[task], usage={})

    row = one(study(tmp_path / "demo", cells, change), "cota")
    assert float(row["avg_t"]) == 3.0
    assert int(row["avg_t_n"]) == 1
    assert row["avg_t_ci_lo"] == ""


def test_unknown_wait_roles_are_summed(tmp_path: Path) -> None:
    cells = planned_cells(seeds=(0,), tasks=2, **SMALL)

    def change(cell: PlannedCell, task: str) -> Episode:
        waits = {"actor": Usage(waited_s=4.0), "simulator": Usage(waited_s=3.0)} if cell.method == "cota" else {}
        return make_episode(cell, task, wall_s=9.0 if cell.method == "cota" else 1.0, usage=waits)

    assert float(one(study(tmp_path / "demo", cells, change), "cota")["avg_t"]) == 2.0


def test_all_failed_cell_is_a_dash_not_a_zero(tmp_path: Path) -> None:
    cells = planned_cells(seeds=(0,), tasks=4, **SMALL)
    source = study(
        tmp_path / "demo", cells, lambda c, t: make_episode(c, t, "failed" if c.method == "cota" else "done")
    )
    row = one(source, "cota")
    assert row["performance_scored"] == ""
    assert row["performance_scored_n"] == "0"
    assert float(row["performance_errors_zero"]) == 0.0
    assert row["errors"] == "4"
    text = render.markdown(table1.build(source))
    assert "| – (n=0/4) | – |" in text
    assert "With errors counted as 0 instead of left out: cota x weak x webshop 0.000 (n = 4; 4 errors)" in text
    assert "4 actor failed" in render.markdown(coverage.build(source))


def test_single_episode_has_no_interval(tmp_path: Path) -> None:
    source = study(tmp_path / "demo", planned_cells(seeds=(0,), tasks=1, **SMALL))
    row = one(source, "cota")
    assert row["performance_scored"] != ""
    assert (row["performance_scored_ci_lo"], row["performance_scored_ci_hi"]) == ("", "")
    body = render.markdown(table1.build(source)).split("| ---")[1]
    assert "[" not in body


def test_missing_seed_and_unequal_n_are_marked(tmp_path: Path) -> None:
    cells = planned_cells(seeds=(0, 1), tasks=4, **SMALL)

    def change(cell: PlannedCell, task: str) -> Episode | None:
        gone = cell.method == "cota" and (cell.seed == 1 or task == "webshop-3")
        return None if gone else make_episode(cell, task)

    source = study(tmp_path / "demo", cells, change)
    table = table1.build(source)
    text = render.markdown(table)
    assert "(n=3/8)" in text
    assert "† Incomplete" in text
    assert "cota x weak x webshop x seed 1 (4 of 4 episodes)" in text
    assert "cota x weak x webshop x seed 0 (1 of 4 episodes)" in text
    assert "n = 3 to 8 scored episodes" in text
    assert one(source, "cota")["missing"] == "5"
    assert one(source, "origin")["incomplete"] == "False"


def test_unscored_tasks_are_reported_apart(tmp_path: Path) -> None:
    cells = planned_cells(methods=("origin",), actors=("weak",), environments=("retail",), seeds=(0,), tasks=4)

    def change(cell: PlannedCell, task: str) -> Episode:
        if task != "retail-0":
            return make_episode(cell, task, reward=1.0, success=True)
        return make_episode(cell, task, reward=None, success=None, info={"unscored": "needs a judge"})

    source = study(tmp_path / "demo", cells, change)
    row = one(source, "origin", "retail")
    assert (row["performance_scored"], row["performance_scored_n"], row["unscored"]) == ("1.0", "3", "1")
    text = render.markdown(table1.build(source))
    assert "Ended but not scored here" in text
    assert "origin x weak x retail 1" in text


def test_every_table_says_what_is_simulated(tmp_path: Path) -> None:
    """Each may be shown alone."""
    made = list(build_all(study(tmp_path, planned_cells())))
    assert len(made) > 5
    for table in made:
        assert sum(text.startswith("SIMULATED: ") for text in (*table.caption, *table.notes)) == 1, table.name
    real = study(tmp_path / "real", planned_cells(), lambda cell, task: make_episode(cell, task, simulated=()))
    assert not any("SIMULATED" in " ".join(table.caption) for table in build_all(real))


def test_what_an_earlier_report_wrote_does_not_stay_beside_new_numbers(tmp_path: Path) -> None:
    out = tmp_path / "report"
    write_report(study(tmp_path / "a", planned_cells()), out, against="paper")
    assert {"against.csv", "table8.md", "figure1.png"} <= {path.name for path in out.iterdir()}
    (out / "notes.md").write_text("mine")
    made = write_report(study(tmp_path / "b", planned_cells(methods=("origin",))), out)
    assert {path.name for path in out.iterdir()} == {path.name for path in made} | {"notes.md"}


def test_a_broken_adviser_is_said_under_table_1(tmp_path: Path) -> None:
    """A method that fails open at each review has the actor's numbers; nobody should take them for its own."""

    def failing(cause: str) -> Change:
        def change(cell: PlannedCell, task: str) -> Episode:
            made = make_episode(cell, task)
            steps = [
                replace(step, reviews=tuple(replace(r, fired=False, fail_open=(cause,)) for r in step.reviews))
                for step in made.steps
            ]
            return replace(made, steps=tuple(steps)) if cell.method == "cota" else made

        return change

    cells = planned_cells(actors=("weak",), environments=("retail",))
    notes = " ".join(table1.build(study(tmp_path / "a", cells, failing("judge:SafetensorError"))).notes)
    assert "adviser broke in most reviews" in notes
    assert "cota x weak x retail 100% (judge:SafetensorError)" in notes
    for n, calm in enumerate((None, failing("tie"))):
        assert "adviser broke" not in " ".join(table1.build(study(tmp_path / f"b{n}", cells, calm)).notes)


def test_simulated_is_said_and_skipped_cells_have_a_reason(tmp_path: Path) -> None:
    cells = planned_cells(seeds=(0,), tasks=2, **SMALL)
    cells = [replace(c, skipped="no judge for this one") if c.method == "cota" else c for c in cells]
    source = study(tmp_path / "demo", cells)
    text = render.markdown(table1.build(source))
    assert "SIMULATED: actor" in text
    assert "weak (simulated)" in text
    assert "| skipped | – |" in text
    assert "no judge for this one" in text
    assert "Missing" not in text


def test_both_conventions_agree_without_errors(tmp_path: Path) -> None:
    source = study(tmp_path / "demo", planned_cells(seeds=(0,), tasks=3, **SMALL))
    text = render.markdown(table1.build(source))
    assert "No episode broke." in text
    assert "counted as 0" not in text


def test_out_of_range_and_duplicates_are_refused(tmp_path: Path) -> None:
    cells = planned_cells(seeds=(0,), tasks=2, **SMALL)
    source = study(tmp_path / "demo", cells, lambda c, t: make_episode(c, t, reward=1.5))
    with pytest.raises(UsageError, match=r"outside\s+\[0, 1\]"):
        table1.build(source)
    rows = [*source.rows, source.rows[0]]
    with pytest.raises(UsageError, match="two rows of task"):
        tracked("here", cells, rows, lambda: iter(()))


def test_rows_outside_the_plan_are_left_out_and_said(tmp_path: Path) -> None:
    cells = planned_cells(seeds=(0, 1), tasks=2, **SMALL)
    folder = tmp_path / "demo"
    write_plan(folder, [cell for cell in cells if cell.seed == 0])
    write_ledger(folder, episodes_of(cells))
    source = from_ledger(folder)
    assert len(source.rows) == 4
    assert "4 recorded episodes belong to cells outside the present plan" in render.markdown(table1.build(source))


def test_without_a_plan_it_says_so(tmp_path: Path) -> None:
    source = from_ledger(write_ledger(tmp_path / "demo", episodes_of(planned_cells(seeds=(0,), tasks=2, **SMALL))))
    assert "what is missing from it cannot be known" in render.markdown(table1.build(source))


def test_interventions_count_and_leave_out_origin(tmp_path: Path) -> None:
    source = study(tmp_path / "demo", planned_cells(seeds=(0,), tasks=6, **SMALL))
    table = interventions.build(source)
    assert table is not None
    assert [row["method"] for row in table.data] == ["cota"]
    row = table.data[0]
    assert row["reviews"] == 24
    assert row["replans"] == row["fired"] == sum(float(row[name] or 0) for name in ("adopt", "keep", "novel"))
    cells = planned_cells(methods=("origin",), actors=("weak",), environments=("webshop",), seeds=(0,), tasks=2)
    assert interventions.build(study(tmp_path / "plain", cells)) is None


def test_frame_has_nullable_types(tmp_path: Path) -> None:
    cells = planned_cells(seeds=(0,), tasks=2, **SMALL)
    source = study(tmp_path / "demo", cells, lambda c, t: make_episode(c, t, "failed" if t == "webshop-0" else "done"))
    frame = episodes(source)
    assert list(frame["reward"].isna()) == [True, False, True, False]
    assert str(frame["steps"].dtype) == "Int64"
    assert frame.loc[0, "steps"] == 4


def test_coverage_adds_up(tmp_path: Path) -> None:
    cells = planned_cells(seeds=(0, 1), tasks=5, **SMALL)
    kinds = ("done", "truncated", "failed", "unparsed", "skipped")

    def change(cell: PlannedCell, task: str) -> Episode | None:
        place = int(task[-1])
        return None if (cell.seed, place) == (1, 0) else make_episode(cell, task, kinds[place])

    for row in coverage.build(study(tmp_path / "demo", cells, change)).data:
        parts = [int(row[name] or 0) for name in ("scored", "unscored", "errors", "skipped", "missing")]
        assert sum(parts) == row["planned"] == 10
        assert parts == [3, 0, 4, 2, 1]


def test_report_files(tmp_path: Path) -> None:
    study(tmp_path / "demo", planned_cells(seeds=(0,), tasks=2))
    paths = write_report(tmp_path / "demo", tmp_path / "report")
    assert paths[0].name == "report.md"
    assert {path.name for path in paths} >= {"table1.md", "table1.tex", "table1.csv", "coverage.csv"}
    page = paths[0].read_text()
    assert page.startswith("# demo")
    assert "SIMULATED" in page
    assert "nan" not in page.lower().replace("finance", "")
    again = {path.name: path.read_bytes() for path in write_report(tmp_path / "demo", tmp_path / "again")}
    assert again == {path.name: path.read_bytes() for path in paths}


def test_what_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no results folder"):
        open_source(tmp_path / "nothing")
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError, match="neither a plan nor an episode"):
        open_source(tmp_path / "empty")
    study(tmp_path / "demo", planned_cells(seeds=(0,), tasks=1, **SMALL))
    (tmp_path / "file").write_text("x")
    with pytest.raises(UsageError, match="cannot be written"):
        write_report(tmp_path / "demo", tmp_path / "file")


@pytest.mark.parametrize("nasty", ['a_b & c% $x$ #1 {y} ~^\\ <z> |p| [q] "w"', "naïve – † × 中文"])
def test_escapes(nasty: str) -> None:
    shown = render.tex(nasty)
    for sign in "&%$#_{}~^":
        bare = shown.replace("\\" + sign, "").replace("{}", "").replace("$\\times$", "")
        bare = bare.replace("{[}", "").replace("{]}", "").replace(r"\textsuperscript{\textdagger}", "")
        assert sign not in bare
    assert all(ord(c) < 0x180 for c in shown)
    assert "\\|" in render.md("a|b")


def test_latex_compiles(tmp_path: Path) -> None:
    """Every table of a study with errors, gaps and awkward labels; without a TeX system its structure is checked."""
    methods = ("origin", "self_reflection", "cota+", "a", "b")
    cells = planned_cells(methods=methods, actors=("we_ak",), environments=("webshop", "retail"), seeds=(0,), tasks=3)

    def change(cell: PlannedCell, task: str) -> Episode | None:
        if cell.method == "a":
            return make_episode(cell, task, "failed")
        return None if (cell.method, task) == ("b", "retail-0") else make_episode(cell, task)

    source = study(tmp_path / "de_mo", [replace(cell, study="de_mo & co") for cell in cells], change)
    bodies = [render.latex(table) for table in build_all(source)]
    for body in bodies:
        assert body.count(r"\begin{") == body.count(r"\end{")
        columns = body.split(r"\begin{tabular}{")[1].split("}")[0]
        rows = body.split(r"\midrule")[1].split(r"\bottomrule")[0].strip().splitlines()
        assert all(line.replace(r"\&", "").count("&") == len(columns) - 1 for line in rows)
    if shutil.which("pdflatex") is None:
        pytest.skip("no pdflatex: structure checked only")
    write_report(source, tmp_path / "report", against="paper", figures=False)
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "tables.tex"]
    done = subprocess.run(command, cwd=tmp_path / "report", capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout[-2000:]
    assert "Overfull" not in done.stdout
    assert "too large" not in done.stdout
    assert (tmp_path / "report" / "tables.pdf").stat().st_size > 5000


def test_seed_of_an_interval_does_not_depend_on_other_methods(tmp_path: Path) -> None:
    few = study(tmp_path / "few", planned_cells(seeds=(0,), tasks=6, **SMALL))
    more = planned_cells(
        methods=("origin", "extra", "cota"), actors=("weak",), environments=("webshop",), seeds=(0,), tasks=6
    )
    many = study(tmp_path / "many", more)
    assert one(few, "cota") == one(many, "cota")
    assert not math.isnan(float(one(few, "cota")["performance_scored"]))


def test_a_name_that_steers_a_terminal_is_text_in_csv() -> None:
    table = Table("t", "t", [], [], data=[{"task": "a\x1b[2J", "value": 0.1}])
    assert render.to_csv(table) == "task,value\na\\x1b[2J,0.1\n"
