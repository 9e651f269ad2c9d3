"""Page: one self-contained `report.html` of a study: tables, figures, anatomy, cost, origins, and a viewer of episodes.

It takes whatever tables and figures the report was made of, so a new table or figure is in the page without a change
here.  Nothing is loaded from anywhere: style, script, figures and a sample of episodes are inside.  All text is escaped
by the template or set as text by the script; the page forbids itself any connection (Content-Security-Policy).
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from harness.errors import UsageError
from reports import caption
from reports.frames import Tracked
from reports.page.anatomy import Chart, anatomy
from reports.page.cells import Line, cell_lines
from reports.page.charts import Dot, dots
from reports.page.cost import cost_table, time_charts
from reports.page.headline import headline
from reports.page.origins import origins
from reports.page.palette import palette
from reports.page.sample import EPISODES, sample
from reports.performance import Performance, measure
from reports.table import Table

if TYPE_CHECKING:
    from markupsafe import Markup

__all__ = ["EPISODES", "Figure", "figure_of", "render_page"]

HERE: Final = Path(__file__).parent


@dataclass(frozen=True)
class Figure:
    """One figure as an address that holds it (`data:`), with its name and caption."""

    name: str
    source: str
    caption: str = ""


def figure_of(name: str, svg: bytes, caption: str = "") -> Figure:
    """One figure from its SVG.

    It is shown as an image, so that nothing in an SVG can act on the page, and two of them cannot clash.
    """
    return Figure(name, f"data:image/svg+xml;base64,{base64.b64encode(svg).decode()}", caption)


def render_page(
    source: Tracked,
    tables: Sequence[Table],
    figures: Sequence[Figure] = (),
    *,
    episodes: int = EPISODES,
    links: Mapping[str, str] | None = None,
) -> str:
    """The page.

    Args:
        source: What was tracked.
        tables: The tables of the report, in order.
        figures: Its figures.
        episodes: At most so many episodes are embedded for the viewer.
        links: Address of each cell's MLflow run; those of the source by default.

    Raises:
        UsageError: Jinja2 is not installed.
    """
    from markupsafe import Markup

    found = measure(source)
    shown = sample(source, episodes)
    parts = sorted({part for row in source.rows for part in str(row["simulated"] or "").split(",") if part})
    colours = palette(source)
    data = {"study": source.study, "colours": colours}
    html: str = _template().render(
        study=source.study,
        headline=headline(source, found),
        warning=caption.simulated(parts),
        legend=list(colours.items()),
        performance=list(_performance(found, colours)),
        tables=tables,
        figures=figures,
        anatomy=anatomy(source),
        cost=cost_table(source),
        time_charts=time_charts(source),
        origins=origins(source),
        cells=_with_links(cell_lines(source, found, shown.keys), links or source.links),
        sample=shown,
        limit=episodes,
        # Constants of this package and JSON without any sign that could end a script.
        style=Markup((HERE / "page.css").read_text(encoding="utf-8")),  # noqa: S704
        script=Markup((HERE / "page.js").read_text(encoding="utf-8")),  # noqa: S704
        data=_json(data | {"blocks": shown.blocks}),
    )
    return html


def _template() -> Any:
    try:
        import jinja2
    except ImportError as error:
        raise UsageError("The page needs Jinja2. Install it: pip install 'cota-bench[tracking]'") from error
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(HERE),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"plain": _plain, "runs": _runs}
    return environment.get_template("page.html")


def _plain(text: object) -> str:
    """Text without control characters, for labels that come from users."""
    from harness.show import visible

    return visible(str(text))


def _runs(names: Sequence[str]) -> list[tuple[str, int]]:
    """Neighbours that are equal, with how many they are."""
    return [(name, len(list(some))) for name, some in groupby(names)]


def _json(data: Any) -> Markup:
    """JSON that may stand inside a script element."""
    from jinja2.utils import htmlsafe_json_dumps

    return htmlsafe_json_dumps(data, ensure_ascii=True, separators=(",", ":"))


def _performance(found: Sequence[Performance], colours: Mapping[str, str]) -> Iterator[Chart]:
    for environment in dict.fromkeys(item.environment for item in found):
        items = [item for item in found if item.environment == environment]
        lines: list[Dot] = []
        for actor in dict.fromkeys(item.actor for item in items):
            mine = [item for item in items if item.actor == actor]
            label = f"{actor} (simulated)" if any("actor" in item.simulated for item in mine) else actor
            lines.append(Dot(label, heading=True))
            if all(item.skipped for item in mine):
                lines.append(Dot("", note="skipped by the study"))
            else:
                lines += [_dot(item, colours[item.method]) for item in mine]
        metric = items[0].metric.replace("_", " ")
        yield Chart(f"{environment}: {metric}", dots(f"{environment}: {metric} with 95% intervals", lines))


def _dot(item: Performance, colour: str) -> Dot:
    if item.skipped:
        return Dot(item.method, note="skipped by the study")
    estimate = item.scored
    count = f"n={estimate.n}" + (f"/{item.planned}" if item.incomplete else "")
    return Dot(item.method, estimate.value, estimate.low, estimate.high, count, colour)


def _with_links(lines: Sequence[Line], links: Mapping[str, str]) -> list[tuple[Line, str]]:
    """Only web addresses become links: a label or a store must not smuggle in a script."""
    return [(line, link if re.match(r"https?://", link := links.get(line.key, "")) else "") for line in lines]
