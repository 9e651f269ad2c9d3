"""Charts of the page: small SVGs that follow the page's colours, with real text and a label on every mark.

Drawn here and not by matplotlib so that they turn dark with the page, stay sharp in print and cost nothing.  Every text
passes through `escape`; colours are the methods' own (`harness.colours`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from markupsafe import Markup, escape

ROW: Final = 20
LEFT: Final = 122
WIDTH: Final = 400
LETTERS: Final = 21


@dataclass(frozen=True)
class Dot:
    """One estimate in a dot plot; a value of None is shown as such. `heading` rows have no mark."""

    label: str
    value: float | None = None
    low: float | None = None
    high: float | None = None
    note: str = ""
    colour: str = ""
    heading: bool = False


@dataclass(frozen=True)
class Part:
    """One part of a bar."""

    name: str
    value: float
    style: str  # CSS class that colours it


def dots(title: str, items: Sequence[Dot]) -> Markup:
    """Estimates in [0, 1] with their intervals, one a line."""
    room = WIDTH - LEFT - 62
    height = ROW * len(items) + 26
    out = [_open(height, title)]
    for i in range(5):
        x = LEFT + room * i / 4
        out.append(f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="4" y2="{height - 20}"/>')
        out.append(_text(x, height - 6, ("0", ".25", ".5", ".75", "1")[i], "middle", "tick"))
    for i, item in enumerate(items):
        y = ROW * i + ROW / 2 + 4
        if item.heading:
            out.append(_text(4, y + 4, item.label, "start", "head"))
            continue
        out.append(_text(LEFT - 8, y + 4, item.label, "end", "label"))
        if item.value is None:
            out.append(_text(LEFT + 4, y + 4, item.note or "no scored episode", "start", "tick"))
            continue
        said = f"{item.label}: {item.value:.3f}"
        if item.low is not None and item.high is not None:
            said += f", 95% interval {item.low:.3f} to {item.high:.3f}"
            a, b = LEFT + room * item.low, LEFT + room * item.high
            out.append(f'<line x1="{a:.1f}" x2="{b:.1f}" y1="{y}" y2="{y}" stroke="{item.colour}" stroke-width="3"/>')
        x = LEFT + room * item.value
        out.append(f'<circle class="dot" cx="{x:.1f}" cy="{y}" r="5" fill="{item.colour}">')
        out.append(f"<title>{escape(said)}, {escape(item.note)}</title></circle>")
        out.append(_text(WIDTH - 4, y + 4, item.note, "end", "tick"))
    return Markup("".join([*out, "</svg>"]))  # noqa: S704  made of numbers and escaped text


def stacked(title: str, rows: Sequence[tuple[str, Sequence[Part], str]], *, share: bool = True) -> Markup:
    """Horizontal bars of parts: (label, parts, note) a line; `share` fills each bar, else all have one scale."""
    room = WIDTH - LEFT - 70
    height = ROW * len(rows) + 6
    longest = max((sum(part.value for part in parts) for _, parts, _ in rows), default=0.0)
    out = [_open(height, title)]
    for i, (label, parts, note) in enumerate(rows):
        y = ROW * i + 4
        whole = sum(part.value for part in parts) if share else longest
        out.append(_text(LEFT - 8, y + 12, label, "end", "label"))
        x = float(LEFT)
        for part in parts:
            wide = room * part.value / whole if whole else 0.0
            if wide <= 0:
                continue
            said = f"{label}: {part.name} {part.value:.3g}" + (f" ({part.value / whole:.0%})" if share else "")
            out.append(f'<rect class="{part.style}" x="{x:.1f}" y="{y}" width="{wide:.1f}" height="{ROW - 5}">')
            out.append(f"<title>{escape(said)}</title></rect>")
            if share and wide > 30:
                out.append(_text(x + wide / 2, y + 11.5, f"{part.value / whole:.0%}", "middle", f"in {part.style}"))
            x += wide
        out.append(_text(WIDTH - 4, y + 12, note, "end", "tick"))
    return Markup("".join([*out, "</svg>"]))  # noqa: S704


def lines(title: str, series: Mapping[str, Sequence[tuple[int, float]]], colours: Mapping[str, str]) -> Markup:
    """Shares in [0, 1] over whole numbers, one line a name; a lone point is a dot."""
    left, top, height = 40, 10, 170
    room, tall = WIDTH - left - 14, height - top - 34
    last = max([x for points in series.values() for x, _ in points], default=1) or 1
    out = [_open(height, title)]
    for i in range(5):
        y = top + tall * (1 - i / 4)
        out.append(f'<line class="grid" x1="{left}" x2="{left + room}" y1="{y:.1f}" y2="{y:.1f}"/>')
        out.append(_text(left - 6, y + 4, f"{25 * i}%", "end", "tick"))
    step = max(1, -(-last // 8))
    for x in range(0, last + 1, step):
        out.append(_text(left + room * x / last, height - 20, str(x), "middle", "tick"))
    out.append(_text(left + room / 2, height - 5, "step", "middle", "tick"))
    for name, points in series.items():
        at = [(left + room * x / last, top + tall * (1 - y)) for x, y in points]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in at)
        stroke = colours[name]
        out.append(f'<polyline fill="none" stroke="{stroke}" stroke-width="2" points="{path}"/>')
        for (cx, cy), (step_, value) in zip(at, points, strict=True):
            out.append(f'<circle cx="{cx:.1f}" cy="{cy:.1f}" r="2.6" fill="{stroke}">')
            out.append(f"<title>{escape(name)}, step {step_}: {value:.1%}</title></circle>")
    return Markup("".join([*out, "</svg>"]))  # noqa: S704


def _open(height: float, title: str) -> str:
    head = f'<svg class="chart" viewBox="0 0 {WIDTH} {height:g}" role="img" aria-label="{escape(title)}">'
    return f"{head}<title>{escape(title)}</title>"


def _text(x: float, y: float, text: str, anchor: str, style: str) -> str:
    shown = text if len(text) <= LETTERS or style != "label" else text[: LETTERS - 1] + "…"
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" class="{style}">{escape(shown)}</text>'
