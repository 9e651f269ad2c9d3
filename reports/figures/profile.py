"""Performance profiles: the share of episodes above each score, one curve a method (Agarwal et al. 2021).

For environments with graded rewards; of successes alone a profile is one step, which table 1 says better.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from reports import caption
from reports.figures.canvas import Drawing, blank, clean, label
from reports.figures.style import dashes, tint
from reports.frames import Group, Tracked, groups
from reports.performance import generator
from reports.robust import Profile, performance_profile

ORDER = 4
TAUS = np.linspace(0.0, 0.995, 200)


def draw(source: Tracked) -> Drawing | None:
    """One panel an environment and actor; None when no environment has graded rewards."""
    found = [g for g in groups(source) if g.metric == "mean_reward" and not g.skipped and g.scores()]
    if not found:
        return None
    places = list(dict.fromkeys((group.environment, group.actor) for group in found))
    methods = list(dict.fromkeys(group.method for group in found))
    columns = min(3, len(places))
    rows = -(-len(places) // columns)
    width = max(3.3 * columns, 4.6)
    beside = max(1, int((width - 0.2) / (0.75 + 0.075 * max(len(label(name)) for name in methods))))
    figure = blank(width, 2.7 * rows + 0.9 + 0.2 * (-(-len(methods) // beside)))
    axes = figure.subplots(rows, columns, squeeze=False, sharex=True, sharey=True).ravel()
    for axis, place in zip(axes, places, strict=False):
        _panel(axis, source, [g for g in found if (g.environment, g.actor) == place], methods)
        axis.set_title(label(f"{place[0]}, {place[1]}", 40), fontsize=9)
    for axis in axes[len(places) :]:
        axis.set_visible(False)
    for axis in axes[max(0, len(places) - columns) : len(places)]:
        axis.set_xlabel("score", fontsize=9)
        axis.tick_params(labelbottom=True)
    figure.supylabel("share of episodes above it", fontsize=9)
    figure.suptitle(f"{label(source.study)}: performance profiles{caption.simulated_short(source)}", fontsize=11)
    handles = {name: line for axis in axes for line, name in zip(*axis.get_legend_handles_labels(), strict=True)}
    figure.legend(
        handles.values(),
        handles,
        loc="outside lower center",
        ncols=min(beside, len(handles)),
        fontsize=8,
        frameon=False,
    )
    return Drawing(
        name="profile",
        title=f"{source.study}: performance profiles.",
        caption=[
            "Share of scored episodes with a score above the value on the axis; bands are pointwise 95% intervals over "
            "tasks. The area under a curve is the mean reward.",
            *caption.simulated_in(source),
        ],
        figure=figure,
    )


def profile(source: Tracked, group: Group) -> Profile:
    """The profile of one group."""
    scores = sorted(group.scores().items())
    rng = generator(source.study, *group.key, "profile")
    return performance_profile([v for _, v in scores], [task for (task, _), _ in scores], TAUS, rng, resamples=1000)


def _panel(axis: Any, source: Tracked, found: Sequence[Group], methods: Sequence[str]) -> None:
    for group in found:
        curve = profile(source, group)
        shade = tint(source, group.method)
        style = dashes(group.method, methods)
        axis.step(curve.taus, curve.share, where="post", color=shade, ls=style, lw=1.7, label=label(group.method))
        if curve.low is not None and curve.high is not None:
            axis.fill_between(curve.taus, curve.low, curve.high, step="post", color=shade, alpha=0.13, lw=0)
    axis.set_xlim(0, 1)
    axis.set_ylim(0, 1.02)
    clean(axis, "both")
