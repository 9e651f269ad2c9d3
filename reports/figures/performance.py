"""Performance with 95% intervals: one panel an environment, one point a method, one row of panels an actor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from reports import caption
from reports.figures.canvas import GREY, Drawing, blank, clean, label, render
from reports.figures.style import marker, tint
from reports.frames import Tracked
from reports.performance import Performance, measure

ORDER = 2
NOTE = "Points: mean over scored episodes. Bars: 95% interval over tasks. n in grey."
NARROW = 5.4


def draw(source: Tracked) -> Drawing | None:
    """All actors below each other; None when nothing is scored."""
    found = [item for item in measure(source) if not item.skipped]
    actors = list(dict.fromkeys(item.actor for item in found))
    if not any(item.scored.n for item in found):
        return None
    return Drawing(
        name="performance",
        title=f"{source.study}: performance.",
        caption=["Mean over scored episodes with its 95% interval over tasks.", *caption.simulated_in(source)],
        figure=chart(source, actors, found),
    )


def error_bars(source: Tracked, actor: str, found: Sequence[Performance]) -> bytes:
    """The chart of one actor as PNG. Raises `UsageError` when matplotlib is not installed."""
    return render(chart(source, [actor], found))


def chart(source: Tracked, actors: Sequence[str], found: Sequence[Performance]) -> Any:
    """The figure: a row of panels an actor; `found` also names methods that these actors were not run with."""
    items = [item for item in found if item.actor in actors and not item.skipped]
    environments = list(dict.fromkeys(item.environment for item in items))
    methods = list(dict.fromkeys(item.method for item in found))
    names = [label(method) for method in methods]
    room = 0.085 * max(map(len, names), default=0)
    tall = max(0.28 * len(methods) + 0.8, 1.75 if len(actors) > 1 else 0.0)
    width, height = 2.6 * max(len(environments), 1) + room, tall * len(actors) + 0.8
    figure = blank(width, height)
    axes = figure.subplots(len(actors), max(len(environments), 1), squeeze=False)
    for row, actor in zip(axes, actors, strict=True):
        of_actor = [item for item in items if item.actor == actor]
        simulated = any("actor" in item.simulated for item in of_actor)
        for i, (axis, environment) in enumerate(zip(row, environments, strict=False)):
            here = {item.method: item for item in of_actor if item.environment == environment}
            _panel(axis, source, environment, methods, here)
            axis.set_yticks(range(len(methods)), names if i == 0 else [""] * len(methods), fontsize=9)
        if len(actors) > 1:
            name = label(actor, int((tall - 0.5) / 0.085)) + ("\n(simulated)" if simulated else "")
            row[0].set_ylabel(name, fontsize=9, fontweight="bold")
        else:
            title = f"{label(source.study)}: {label(actor)}{' (simulated actor)' if simulated else ''}"
            figure.suptitle(title, fontsize=11)
    if len(actors) > 1:
        figure.suptitle(f"{label(source.study)}: performance{caption.simulated_short(source)}", fontsize=11)
    figure.supxlabel(NOTE if width > NARROW else NOTE.replace(". Bars", ".\nBars"), fontsize=8)
    return figure


def _panel(axis: Any, source: Tracked, environment: str, methods: Sequence[str], here: dict[str, Performance]) -> None:
    for y, method in enumerate(methods):
        item = here.get(method)
        if item is None or item.scored.value is None:
            axis.text(0.02, y, "no scored episode" if item else "not run", va="center", fontsize=7, color=GREY)
            continue
        value, span = item.scored.value, item.scored.interval
        bars = [[value - span[0]], [span[1] - value]] if span else None
        shape = marker(method, methods)
        axis.errorbar(value, y, xerr=bars, fmt=shape, color=tint(source, method), ms=6, capsize=3, lw=1.6)
        axis.text(1.07, y, f"{item.scored.n}", va="center", fontsize=7, color=GREY)
    axis.set_xlim(-0.03, 1.22)
    axis.set_xticks([0, 0.25, 0.5, 0.75, 1])
    axis.set_xticklabels(["0", ".25", ".5", ".75", "1"], fontsize=8)
    axis.set_ylim(len(methods) - 0.5, -0.5)
    metric = next(iter(here.values())).metric.replace("_", " ") if here else ""
    axis.set_title(f"{label(environment, 20)} ({metric})" if metric else label(environment), fontsize=9)
    clean(axis)
    axis.spines["bottom"].set_bounds(-0.03, 1)
