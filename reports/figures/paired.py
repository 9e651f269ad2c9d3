"""Paired differences as a forest plot: each method against Origin, with 95% intervals over tasks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from reports import caption
from reports.contrasts import Contrast, contrasts
from reports.figures.canvas import GREY, Drawing, blank, clean, label
from reports.figures.style import marker, tint
from reports.frames import Tracked
from reports.table import plus, shape
from reports.tables.paired import probability

ORDER = 3
UNITS = {"mean_reward": "difference in mean reward", "success_rate": "difference in success, percentage points"}


def draw(source: Tracked) -> Drawing | None:
    """One panel an environment, one line a method and actor; None when no method stands beside Origin."""
    found = [item for item in contrasts(source) if item.kind == "origin"]
    if not found:
        return None
    environments = list(dict.fromkeys(item.environment for item in found))
    methods = list(dict.fromkeys(item.ours for item in found))
    heights = [max(sum(item.environment == name for item in found), 1) for name in environments]
    figure = blank(8.4, sum(0.27 * height + 0.95 for height in heights) + 0.5)
    axes = figure.subplots(len(environments), 1, squeeze=False, height_ratios=[h + 1.5 for h in heights])[:, 0]
    for axis, environment in zip(axes, environments, strict=True):
        _panel(axis, source, [item for item in found if item.environment == environment], methods)
    title = f"{label(source.study)}: paired differences to {label(found[0].base)}"
    figure.suptitle(f"{title}{caption.simulated_short(source)}", fontsize=11)
    return Drawing(
        name="paired",
        title=f"{source.study}: paired differences.",
        caption=[
            "Mean difference to the baseline over the same tasks and seeds; bars are 95% intervals (bootstrap over "
            "tasks); p is corrected for all tests of the study (Holm). Right of the line the method is better.",
            *caption.simulated_in(source),
        ],
        figure=figure,
    )


def _panel(axis: Any, source: Tracked, items: Sequence[Contrast], methods: Sequence[str]) -> None:
    digits, scale = shape(items[0].metric)
    axis.axvline(0, color="#444444", lw=1)
    ends = [0.0]
    for y, item in enumerate(items):
        estimate = item.result.difference
        if estimate.value is None:
            axis.text(0, y, " no pair scored", va="center", fontsize=7.5, color=GREY)
            continue
        value = estimate.value * scale
        low, high = (end * scale for end in estimate.interval or (estimate.value, estimate.value))
        ends += [low, high]
        bars = [[value - low], [high - value]] if estimate.interval else None
        shape_ = marker(item.ours, methods)
        axis.errorbar(value, y, xerr=bars, fmt=shape_, color=tint(source, item.ours), ms=5.5, capsize=2.5, lw=1.5)
        text = f"{plus(estimate.value, digits, scale)}   p {_p(item.adjusted)}   n {estimate.n}"
        axis.text(1.015, y, text, va="center", fontsize=7.5, color="#333333", transform=axis.get_yaxis_transform())
    axis.set_yticks(
        range(len(items)), [f"{label(item.ours, 22)}, {label(item.actor, 22)}" for item in items], fontsize=8
    )
    axis.set_ylim(len(items) - 0.4, -0.6)
    reach = max(map(abs, ends)) * 1.08 or 1.0
    axis.set_xlim(-reach, reach)
    axis.set_title(label(items[0].environment), fontsize=9, loc="left")
    axis.set_xlabel(UNITS.get(items[0].metric, "difference"), fontsize=8)
    clean(axis)


def _p(value: float | None) -> str:
    text = probability(value)
    return text if text.startswith("<") else f"= {text}"
