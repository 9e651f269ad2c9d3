"""Figures: nothing clipped, the same bytes each time, one colour a method, every awkward study drawn."""

from __future__ import annotations

import struct
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from matplotlib.colors import to_hex

from harness.colours import colour
from reports.figures import draw_all
from reports.figures.canvas import FORMATS, Drawing, label, render
from reports.figures.figure1 import COLOURS
from reports.figures.performance import error_bars
from reports.frames import Tracked
from reports.performance import measure
from reports.write import report_files, write_report
from tests.reports.studies import TWO_BY_TWO, cells, of, scored
from tests.reports.test_paper_tables import EDGES
from tests.synthetic import make_episode, planned_cells

METHODS = ("origin", *TWO_BY_TWO, "self-reflection", "asym-ac")
LONG = ("weak", "Qwen3.6-35B-A3B-with-a-very-long-label-of-its-own")


def wide() -> Tracked:
    return of(planned_cells(study="a_study $with$ signs", methods=METHODS, actors=LONG, seeds=(0,), tasks=4))


def ticks_out_of_view(axis: Any) -> list[Any]:
    """Labels of ticks beyond the limits of an axis: matplotlib keeps them and does not draw them."""
    found = []
    for side in (axis.xaxis, axis.yaxis):
        low, high = sorted(side.get_view_interval())
        found += [t for tick in side.get_major_ticks() if not low <= tick.get_loc() <= high for t in (tick.label1,)]
    return found


def outside(drawing: Drawing) -> list[str]:
    """Texts that leave the canvas."""
    figure = drawing.figure
    figure.draw_without_rendering()
    renderer = figure.canvas.get_renderer()
    width, height = figure.bbox.width, figure.bbox.height
    found = []
    undrawn = {id(text) for axis in figure.axes for text in ticks_out_of_view(axis)}
    for text in figure.findobj(match=lambda artist: hasattr(artist, "get_text") and artist.get_visible()):
        if not text.get_text().strip() or id(text) in undrawn:
            continue
        box = text.get_window_extent(renderer)
        if box.x0 < -1 or box.y0 < -1 or box.x1 > width + 1 or box.y1 > height + 1:
            found.append(f"{text.get_text()} at {box}")
    return found


@pytest.mark.parametrize("shape", ["wide", "one actor", "one environment"])
def test_no_text_leaves_the_canvas(shape: str) -> None:
    sources = {
        "wide": wide,
        "one actor": lambda: of(planned_cells(methods=("origin", "cota"), actors=("weak",), seeds=(0, 1), tasks=3)),
        "one environment": lambda: of(
            planned_cells(methods=("origin", "cota"), actors=LONG, environments=("webshop",), seeds=(0,), tasks=3)
        ),
    }
    drawn = list(draw_all(sources[shape]()))
    assert [drawing.name for drawing in drawn] == ["figure1", "performance", "paired", "profile"]
    for drawing in drawn:
        assert outside(drawing) == [], drawing.name
        assert drawing.caption


def test_the_check_finds_what_is_clipped() -> None:
    drawing = next(iter(draw_all(wide())))
    drawing.figure.text(0.9, 0.5, "this text is much longer than the room that is left for it")
    assert len(outside(drawing)) == 1


def test_the_same_numbers_give_the_same_bytes() -> None:
    first, second = ({d.name: [d.render(kind) for kind in FORMATS] for d in draw_all(wide())} for _ in range(2))
    assert first == second
    for png, pdf, svg in first.values():
        assert png.startswith(b"\x89PNG")
        assert struct.unpack(">I", png[16:20])[0] > 400
        assert pdf.startswith(b"%PDF")
        assert b"<svg" in svg
        assert b"CreationDate" not in pdf


def colours_of(drawing: Drawing) -> dict[str, set[str]]:
    """Colours by label of everything that has one."""
    found: dict[str, set[str]] = {}

    def note(name: str, tint: Any) -> None:
        if name and not name.startswith("_"):
            found.setdefault(name, set()).add(to_hex(tint))

    for axis in drawing.figure.axes:
        for line in axis.get_lines():
            note(str(line.get_label()), line.get_color())
        for bars in axis.containers:
            if str(bars.get_label()) in ("Adopt", "Keep", "Novel"):
                note(str(bars.get_label()), bars.patches[0].get_facecolor())
    return found


def test_a_method_has_one_colour_everywhere_and_no_class_has_it() -> None:
    drawn = {drawing.name: colours_of(drawing) for drawing in draw_all(wide())}
    assert drawn["profile"] == {name: {colour(name)} for name in METHODS}
    assert drawn["figure1"] == {name.title(): {tint} for name, tint in COLOURS.items()}
    assert not {colour(name) for name in METHODS} & set(COLOURS.values())
    assert len({colour(name) for name in METHODS}) == len(METHODS)


@pytest.mark.parametrize("name", EDGES)
def test_every_figure_survives(name: str) -> None:
    plan = planned_cells(methods=("origin", "cota"), actors=("weak",), environments=("webshop",), seeds=(0, 1), tasks=3)
    source = of(plan, EDGES[name])
    for drawing in draw_all(source):
        assert outside(drawing) == []
        assert render(drawing.figure).startswith(b"\x89PNG")
    assert error_bars(source, "weak", measure(source)).startswith(b"\x89PNG")


def test_methods_without_interventions_have_no_figure1() -> None:
    plan = cells(methods=("origin", "self-reflection"), actors=("weak",), environments=("webshop",), tasks=2)
    assert [d.name for d in draw_all(of(plan, lambda c, t: scored(c, t, 0.5)))] == ["performance", "paired", "profile"]


def test_variants_of_a_method_get_colours_of_their_own() -> None:
    sweep = ("origin", "cautious", "medium", "active", "cota-ab", "cota-abt")
    assert colour("cautious") == colour("active")  # alone they would look alike
    tints = {name: colour(name, sweep) for name in sweep}
    assert len(set(tints.values())) == len(sweep)
    assert tints == {name: colour(name, reversed(sweep)) for name in sweep}
    assert tints["origin"] == colour("origin")
    plan = planned_cells(methods=sweep, actors=("weak",), environments=("webshop",), seeds=(0,), tasks=3)
    (drawn,) = [d for d in draw_all(of(plan)) if d.name == "profile"]
    assert colours_of(drawn) == {name: {tint} for name, tint in tints.items()}


def test_labels() -> None:
    assert label("short") == "short"
    assert label("x" * 50, 10) == "x" * 9 + "…"
    assert label("a $b$") == r"a \$b\$"


def test_report_writes_figures_and_says_what_is_absent(tmp_path: Path) -> None:
    plan = planned_cells(methods=("origin", "cota"), actors=("weak",), environments=("webshop",), seeds=(0,), tasks=3)
    plan = [replace(cell, study="a study") for cell in plan]
    source = of(plan, lambda c, t: make_episode(c, t))
    names = {path.name for path in write_report(source, tmp_path / "report", against="paper")}
    assert {f"{name}.{kind}" for name in ("figure1", "performance", "paired", "profile") for kind in FORMATS} <= names
    assert {"tables.tex", "against.md", "against.tex", "against.csv", "paired.csv", "table8.tex"} <= names
    page = (tmp_path / "report" / "report.md").read_text()
    assert "](figure1.png)" in page
    assert "- table7: needs cota-bench evaluate-judge a study" in page
    assert "against.md" not in report_files(source)
    document = (tmp_path / "report" / "tables.tex").read_text()
    for name in names:
        if name.endswith(".tex") and name != "tables.tex":
            assert rf"\input{{{name}}}" in document
