"""Writing a report: every table and figure in every format, a `report.md` to read, a `tables.tex` to compile."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from harness.errors import UsageError
from harness.rows import FIELDS
from reports import caption, render
from reports.figures.canvas import FORMATS, Drawing
from reports.frames import Tracked, open_source
from reports.page import EPISODES, figure_of, render_page
from reports.table import Table
from reports.tables import absent, build_all, table_names

GLOSSARY: Final = ("outcome", "reward", "success", "wall_s", "waited_s", "work_s", "fired", "adopt", "keep", "novel")


PAGE: Final = "report.html"


def write_report(
    where: str | Path | Tracked,
    out: Path,
    study: str | None = None,
    *,
    against: str | None = None,
    figures: bool = True,
    episodes: int = EPISODES,
    links: Mapping[str, str] | None = None,
) -> list[Path]:
    """Write `report.md`, `tables.tex`, each table as `.md`, `.tex` and `.csv`, each figure, and `report.html` to read.

    Args:
        where: `results/<study>`, a tracking URI, or what `open_source` gave.
        out: Folder for the files; made when it is not there.
        study: The study's name, when `where` is a store that holds several.
        against: `paper` adds a table of published values beside ours.
        figures: Whether to write them; without matplotlib nothing is drawn and `report.md` says so.
        episodes: At most so many episodes are embedded in `report.html`.
        links: Address of each cell's MLflow run, where the source does not know it.

    Returns:
        The files, `report.md` first and `report.html` last. The same episodes give the same bytes from either source,
        but for `report.html`, which says where it was read from.

    Raises:
        UsageError: nothing to report on, nothing of that name to compare with, or `out` cannot be written.
    """
    source = where if isinstance(where, Tracked) else open_source(where, study)
    files: dict[str, str | bytes] = dict(report_files(source, against=against, figures=figures))
    try:
        out.mkdir(parents=True, exist_ok=True)
        paths = [_write(out / name, content) for name, content in files.items()]
        if figures:
            for drawing in drawings(source):
                paths += [_write(out / f"{drawing.name}.{kind}", drawing.render(kind)) for kind in FORMATS]
        _clear(out, {path.name for path in paths}, figures)
        html = page(source, against=against, episodes=episodes, links=links)
        paths.append(_write(out / PAGE, html))
    except OSError as error:
        raise UsageError(f"The report cannot be written to {out}: {error}. Name another folder with --out.") from error
    return paths


def page(
    source: Tracked,
    *,
    against: str | None = None,
    episodes: int = EPISODES,
    links: Mapping[str, str] | None = None,
) -> str:
    """The page of a study, with all its tables and figures."""
    figures = [figure_of(one.name, one.render("svg"), " ".join([one.title, *one.caption])) for one in drawings(source)]
    return render_page(source, _tables(source, against), figures, episodes=episodes, links=links)


def _tables(source: Tracked, against: str | None) -> Sequence[Table]:
    tables = list(build_all(source))
    if against is not None:
        from reports.against import against_tables

        tables += against_tables(source, against)
    return tables


def report_files(source: Tracked, *, against: str | None = None, figures: bool = True) -> dict[str, str]:
    """The texts of the report by file name; `figures` puts those that `drawings` draws into `report.md`."""
    tables = _tables(source, against)
    files = {}
    for table in tables:
        files[f"{table.name}.md"] = render.markdown(table)
        files[f"{table.name}.tex"] = render.latex(table)
        files[f"{table.name}.csv"] = render.to_csv(table)
    page = _page(source, tables, drawings(source) if figures else None, files)
    return {"report.md": page, "tables.tex": render.document(source.study, tables), **files}


def drawings(source: Tracked) -> Sequence[Drawing]:
    """Every figure of a study, drawn once; empty when matplotlib is not installed."""
    from reports.figures import available, draw_all

    if "drawings" not in source.memo:
        source.memo["drawings"] = list(draw_all(source)) if available() else []
    found: list[Drawing] = source.memo["drawings"]
    return found


def _page(source: Tracked, tables: Iterable[Table], figures: Sequence[Drawing] | None, files: Mapping[str, str]) -> str:
    planned = sum(len(cell.tasks) for cell in source.cells if not cell.skipped)
    lines = [f"# {render.md(source.study)}", ""]
    lines.append(f"{len(source.cells)} cells, {len(source.rows)} of {planned} planned episodes recorded.")
    for warning in caption.simulated_in(source):
        lines += ["", f"> **{render.md(warning)}**"]
    for table in tables:
        lines += ["", files[f"{table.name}.md"].rstrip()]
    for drawing in figures or ():
        lines += ["", f"![{render.md(drawing.title)}]({drawing.name}.png)", ""]
        lines += [f"**{render.md(drawing.title)}** " + " ".join(render.md(text) for text in drawing.caption)]
    if figures is not None and not figures:
        lines += ["", "No figure is drawn: nothing to draw, or matplotlib is not installed."]
    lines += [*_absent(source), "", "## Words", ""]
    meanings = {name: meaning for name, _, meaning in FIELDS}
    lines += [f"- `{name}`: {meanings[name]}" for name in GLOSSARY]
    return "\n".join(lines) + "\n"


def _absent(source: Tracked) -> list[str]:
    found = absent(source)
    if not found:
        return []
    return ["", "## Not in this report", "", *(f"- {name}: needs {render.md(need)}" for name, need in found.items())]


def _clear(out: Path, written: Collection[str], figures: bool) -> None:
    """Take away what an earlier report wrote and this one has nothing for: old numbers beside new ones mislead."""
    tables = [f"{name}.{kind}" for name in (*table_names(), "against") for kind in ("md", "tex", "csv")]
    from reports.figures import figure_names

    drawn = [f"{name}.{kind}" for name in figure_names() for kind in FORMATS] if figures else []
    for name in {*tables, *drawn} - set(written):
        (out / name).unlink(missing_ok=True)


def _write(path: Path, content: str | bytes) -> Path:
    part = path.with_suffix(path.suffix + ".part")
    part.write_bytes(content.encode() if isinstance(content, str) else content)
    os.replace(part, path)
    return path
