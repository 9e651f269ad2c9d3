"""Performance with 95% intervals: one panel an environment, one point a method, for one actor."""

from __future__ import annotations

import io
from collections.abc import Sequence
from textwrap import shorten
from typing import Any

from harness.errors import UsageError
from reports.figures.style import colour, marker
from reports.frames import Tracked
from reports.performance import Performance

DPI = 110
NAME = 30


def error_bars(source: Tracked, actor: str, found: Sequence[Performance]) -> bytes:
    """The chart as PNG. Raises `UsageError` when matplotlib is not installed."""
    items = [item for item in found if item.actor == actor and not item.skipped]
    environments = list(dict.fromkeys(item.environment for item in items))
    methods = list(dict.fromkeys(item.method for item in found))
    names = [shorten(method, NAME, placeholder="...") if " " in method else method[:NAME] for method in methods]
    room = 0.085 * max(map(len, names), default=0)
    figure = _figure(2.6 * max(len(environments), 1) + room, 0.34 * len(methods) + 1.6)
    axes = figure.subplots(1, max(len(environments), 1), squeeze=False)[0]
    for i, (axis, environment) in enumerate(zip(axes, environments, strict=False)):
        here = {item.method: item for item in items if item.environment == environment}
        _panel(axis, environment, methods, here)
        axis.set_yticks(range(len(methods)), names if i == 0 else [""] * len(methods), fontsize=9)
    simulated = any("actor" in item.simulated for item in items)
    figure.suptitle(f"{source.study}: {actor}{' (simulated actor)' if simulated else ''}", fontsize=11)
    figure.supxlabel("Points: mean over scored episodes. Bars: 95% interval over tasks. n in grey.", fontsize=8)
    out = io.BytesIO()
    figure.savefig(out, format="png", dpi=DPI, metadata={"Software": "cota-bench"})
    return out.getvalue()


def _figure(width: float, height: float) -> Any:
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise UsageError("Figures need matplotlib. Install it: pip install 'cota-bench[tracking]'") from error
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def _panel(axis: Any, environment: str, methods: Sequence[str], here: dict[str, Performance]) -> None:
    for y, method in enumerate(methods):
        item = here.get(method)
        if item is None or item.scored.value is None:
            axis.text(0.02, y, "no scored episode", va="center", fontsize=7, color="#6b6b6b")
            continue
        value, span = item.scored.value, item.scored.interval
        bars = [[value - span[0]], [span[1] - value]] if span else None
        shape = marker(method, methods)
        axis.errorbar(value, y, xerr=bars, fmt=shape, color=colour(method), ms=6, capsize=3, lw=1.6)
        axis.text(1.03, y, f"{item.scored.n}", va="center", fontsize=7, color="#6b6b6b")
    axis.set_xlim(-0.03, 1.12)
    axis.set_xticks([0, 0.25, 0.5, 0.75, 1])
    axis.set_xticklabels(["0", ".25", ".5", ".75", "1"], fontsize=8)
    axis.set_ylim(len(methods) - 0.5, -0.5)
    metric = next(iter(here.values())).metric.replace("_", " ") if here else ""
    axis.set_title(f"{environment[:NAME]} ({metric})", fontsize=9)
    axis.grid(axis="x", color="#dddddd", lw=0.7)
    axis.set_axisbelow(True)
    for side in ("top", "right"):
        axis.spines[side].set_visible(False)
