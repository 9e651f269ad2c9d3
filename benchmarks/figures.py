"""A figure of the benchmark suite: what was measured, how, and what it was to be; and the Markdown table of many."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass

CPU = "CPU"
WALL = "wall"


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of the table.

    `most` and `least` are the target (at most, at least); without either, the figure has no target.
    """

    what: str
    value: float
    unit: str
    how: str
    most: float | None = None
    least: float | None = None

    @property
    def target(self) -> str:
        """The target in words, or nothing."""
        ends = (("at most", self.most), ("at least", self.least))
        return ", ".join(f"{word} {end:g}" for word, end in ends if end is not None)

    @property
    def met(self) -> bool | None:
        """Whether the target was met; None without one."""
        if self.most is None and self.least is None:
            return None
        low = self.least is None or self.value >= self.least
        return low and (self.most is None or self.value <= self.most)

    def row(self) -> str:
        """Its Markdown line."""
        met = {None: "", True: "yes", False: "**no**"}[self.met]
        return f"| {self.what} | {number(self.value)} | {self.unit} | {self.how} | {self.target} | {met} |"

    def line(self) -> str:
        """As one line of JSON, for the process that makes the table."""
        return json.dumps(asdict(self))


def number(value: float) -> str:
    """Three digits that count, never in powers of ten."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def machine() -> str:
    """What the figures were taken on, in one line."""
    cores = len(os.sched_getaffinity(0))
    return (
        f"{cores} cores ({cpu_name()}), Python {platform.python_version()}, {platform.system()} {platform.machine()}; "
        f"load average at start {', '.join(f'{load:.1f}' for load in os.getloadavg())}"
    )


def cpu_name() -> str:
    """The processor's name, where the system tells it."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            names = [line.partition(":")[2].strip() for line in file if line.startswith("model name")]
    except OSError:
        names = []
    return names[0] if names else platform.processor() or "unknown processor"


def table(figures: Iterable[Figure], left_out: Sequence[tuple[str, str]], about: str) -> str:
    """The whole page: the machine, the table, and which parts are not in it and why."""
    lines = [
        "# Figures of cota-bench",
        "",
        about,
        "",
        "| what | figure | unit | how | target | met |",
        "| --- | ---: | --- | --- | --- | --- |",
        *(figure.row() for figure in figures),
    ]
    if left_out:
        lines += ["", "Not measured here:", "", *(f"- {name}: {reason}" for name, reason in left_out)]
    return "\n".join(lines) + "\n"
