"""Palette: the colour of each method of a study, the same in the page, its figures and the tracking page."""

from __future__ import annotations

from harness.colours import colour
from reports.frames import Tracked


def palette(source: Tracked) -> dict[str, str]:
    """Colour by method label, in the order of the plan."""
    methods = dict.fromkeys(cell.method for cell in source.cells)
    return {method: colour(method, methods) for method in methods}
