"""Canvas: figures without a display and without pyplot's global state, as PNG, PDF and SVG, the same each time."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from harness.errors import UsageError

DPI: Final = 150
NAME: Final = 34
GREY: Final = "#6b6b6b"
FORMATS: Final = ("png", "pdf", "svg")
# Nothing in a file says when it was made, so that the same numbers give the same bytes.
_META: Final[Mapping[str, dict[str, Any]]] = {
    "png": {"Software": "cota-bench"},
    "pdf": {"Creator": "cota-bench", "Producer": "cota-bench", "CreationDate": None},
    "svg": {"Creator": "cota-bench", "Date": None},
}


@dataclass(frozen=True)
class Drawing:
    """One figure: file name without an ending, title, caption sentences and matplotlib's figure."""

    name: str
    title: str
    caption: Sequence[str]
    figure: Any
    kept: dict[str, bytes] = field(default_factory=dict, repr=False, compare=False)  # files and page share an SVG

    def render(self, kind: str) -> bytes:
        """The figure as `png`, `pdf` or `svg`, drawn once."""
        if kind not in self.kept:
            self.kept[kind] = render(self.figure, kind)
        return self.kept[kind]


def available() -> bool:
    """Whether matplotlib is installed."""
    from importlib.util import find_spec

    return find_spec("matplotlib") is not None


def blank(width: float, height: float) -> Any:
    """An empty figure of a size in inches. Raises `UsageError` when matplotlib is not installed."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise UsageError("Figures need matplotlib. Install it: pip install 'cota-bench[tracking]'") from error
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def render(figure: Any, kind: str = "png") -> bytes:
    """A figure as bytes of one of `FORMATS`."""
    import matplotlib

    out = io.BytesIO()
    with matplotlib.rc_context({"svg.hashsalt": "cota-bench", "pdf.fonttype": 42, "svg.fonttype": "none"}):
        figure.savefig(out, format=kind, dpi=DPI, metadata=_META[kind])
    # The parts have found their places: no need to look for them again in the next format.
    figure.set_layout_engine("none")
    return out.getvalue()


def clean(axis: Any, grid: str = "x") -> None:
    """The look of every panel: a light grid along one axis, no frame on top and at the right."""
    axis.grid(axis=grid, color="#dddddd", lw=0.7)
    axis.set_axisbelow(True)
    for side in ("top", "right"):
        axis.spines[side].set_visible(False)
    axis.tick_params(labelsize=8)


def label(text: str, width: int = NAME) -> str:
    """A label that fits; mathematics in it is taken as plain text."""
    short = text if len(text) <= width else text[: width - 1].rstrip() + "…"
    return short.replace("$", r"\$")
