"""Writing a report: every table in every format, and one `report.md` to read."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from harness.errors import UsageError
from harness.rows import FIELDS
from reports import caption, render
from reports.frames import Tracked, open_source
from reports.page import EPISODES, FIGURES, figures_of, render_page
from reports.table import Table
from reports.tables import build_all

GLOSSARY: Final = ("outcome", "reward", "success", "wall_s", "waited_s", "work_s", "fired", "adopt", "keep", "novel")


PAGE: Final = "report.html"


def write_report(
    where: str | Path | Tracked,
    out: Path,
    study: str | None = None,
    *,
    episodes: int = EPISODES,
    links: Mapping[str, str] | None = None,
) -> list[Path]:
    """Write `report.md`, each table as `.md`, `.tex` and `.csv`, and `report.html` to read.

    Args:
        where: `results/<study>`, a tracking URI, or what `open_source` gave.
        out: Folder for the files; made when it is not there.
        study: The study's name, when `where` is a store that holds several.
        episodes: At most so many episodes are embedded in `report.html`.
        links: Address of each cell's MLflow run, where the source does not know it.

    Returns:
        The files, `report.md` first and `report.html` last. The same episodes give the same bytes from either source,
        but for `report.html`, which says where it was read from.

    Raises:
        UsageError: nothing to report on, or `out` cannot be written.
    """
    source = where if isinstance(where, Tracked) else open_source(where, study)
    files = report_files(source)
    try:
        out.mkdir(parents=True, exist_ok=True)
        paths = [_write(out / name, text) for name, text in files.items()]
        return [*paths, _write(out / PAGE, page(source, paths, episodes=episodes, links=links))]
    except OSError as error:
        raise UsageError(f"The report cannot be written to {out}: {error}. Name another folder with --out.") from error


def page(
    source: Tracked, paths: Sequence[Path] = (), *, episodes: int = EPISODES, links: Mapping[str, str] | None = None
) -> str:
    """The page of a study, with the figures among the files at `paths`."""
    figures = figures_of({path.name: path.read_bytes() for path in paths if path.suffix in FIGURES})
    return render_page(source, _tables(source), figures, episodes=episodes, links=links)


def _tables(source: Tracked) -> Sequence[Table]:
    """Every table, built once."""
    if "page tables" not in source.memo:
        source.memo["page tables"] = list(build_all(source))
    kept: list[Table] = source.memo["page tables"]
    return kept


def report_files(source: Tracked) -> dict[str, str]:
    """The report as texts by file name."""
    files = {}
    for table in _tables(source):
        files[f"{table.name}.md"] = render.markdown(table)
        files[f"{table.name}.tex"] = render.latex(table)
        files[f"{table.name}.csv"] = render.to_csv(table)
    return {"report.md": _page(source, files), **files}


def _page(source: Tracked, files: Mapping[str, str]) -> str:
    parts = {part for row in source.rows for part in str(row["simulated"] or "").split(",") if part}
    planned = sum(len(cell.tasks) for cell in source.cells if not cell.skipped)
    lines = [f"# {render.md(source.study)}", ""]
    lines.append(f"{len(source.cells)} cells, {len(source.rows)} of {planned} planned episodes recorded.")
    warning = caption.simulated(parts)
    if warning:
        lines += ["", f"> **{render.md(warning)}**"]
    for name, text in files.items():
        if name.endswith(".md"):
            lines += ["", text.rstrip()]
    lines += ["", "## Words", ""]
    meanings = {name: meaning for name, _, meaning in FIELDS}
    lines += [f"- `{name}`: {meanings[name]}" for name in GLOSSARY]
    return "\n".join(lines) + "\n"


def _write(path: Path, text: str) -> Path:
    part = path.with_suffix(path.suffix + ".part")
    part.write_text(text, encoding="utf-8")
    os.replace(part, path)
    return path
