"""Figure 1: what actors make of advice: Adopt, Keep, Novel by actor and environment (paper section 4.5)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from reports import caption
from reports.figures.canvas import GREY, Drawing, blank, clean, label
from reports.frames import Group, Tracked
from reports.shares import share
from reports.tables.figure1 import CLASSES, advised

ORDER = 1
# One hue, told apart by lightness alone, and no method's colour.
COLOURS: Final = {"adopt": "#4b2e83", "keep": "#a78fd6", "novel": "#e6e1f2"}
INK: Final = {"adopt": "white", "keep": "black", "novel": "black"}
ROOM = 0.07  # a part narrower than this has no number in it


def draw(source: Tracked) -> Drawing | None:
    """One panel an environment, one stacked bar an actor (and method, when several gave advice); None without."""
    found = advised(source)
    if not found:
        return None
    environments = list(dict.fromkeys(group.environment for group in found))
    methods = list(dict.fromkeys(group.method for group in found))
    bars = list(dict.fromkeys((group.method, group.actor) for group in found))
    names = [label(actor if len(methods) == 1 else f"{method}, {actor}") for method, actor in bars]
    room = 0.075 * max(map(len, names))
    figure = blank(2.7 * len(environments) + room + 0.4, 0.42 * len(bars) + 1.75)
    axes = figure.subplots(1, len(environments), squeeze=False, sharey=True)[0]
    for axis, environment in zip(axes, environments, strict=True):
        here = {(g.method, g.actor): g for g in found if g.environment == environment}
        _panel(axis, source, bars, here)
        axis.set_title(label(environment), fontsize=9)
    axes[0].set_yticks(range(len(bars)), names, fontsize=9)
    figure.suptitle(f"{label(source.study)}: answers to advice{caption.simulated_short(source)}", fontsize=11)
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3, fontsize=9, frameon=False)
    return Drawing(
        name="figure1",
        title=f"{source.study}: what actors make of advice.",
        caption=[
            "Share of answers that equal a recommended action (Adopt), the original proposal (Keep) or neither "
            "(Novel); the number of answers stands at the right of each bar.",
            *caption.simulated_in(source),
        ],
        figure=figure,
    )


def _panel(axis: Any, source: Tracked, bars: Sequence[tuple[str, str]], here: dict[tuple[str, str], Group]) -> None:
    starts = [0.0] * len(bars)
    for name in CLASSES:
        values = [share(source, here[bar], name, "replans").value or 0.0 if bar in here else 0.0 for bar in bars]
        axis.barh(
            range(len(bars)), values, left=starts, height=0.66, color=COLOURS[name], edgecolor="white", lw=0.8,
            label=name.title(),
        )  # fmt: skip
        for y, (start, value) in enumerate(zip(starts, values, strict=True)):
            if value >= ROOM:
                text = f"{100 * value:.0f}"
                axis.text(start + value / 2, y, text, ha="center", va="center", fontsize=8, color=INK[name])
        starts = [start + value for start, value in zip(starts, values, strict=True)]
    for y, bar in enumerate(bars):
        count = sum(int(row["replans"] or 0) for row in here[bar].rows) if bar in here else 0
        axis.text(
            1.02 if count else 0.02, y, f"{count:,}" if count else "no answer", va="center", fontsize=8, color=GREY
        )
    axis.set_xlim(0, 1.22)
    axis.set_ylim(len(bars) - 0.5, -0.5)
    axis.set_xticks([0, 0.25, 0.5, 0.75, 1], ["0", "25", "50", "75", "100%"], fontsize=8)
    clean(axis)
    axis.spines["bottom"].set_bounds(0, 1)
