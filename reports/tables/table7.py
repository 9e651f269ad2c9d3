"""Table 7: validation quality of the absolute-Q critics (paper appendix B.8)."""

from __future__ import annotations

from reports.frames import Tracked
from reports.measured import Shape, measured
from reports.table import Table

ORDER = 7
NEEDS = "cota-bench evaluate-judge STUDY (a study with a trained critic)"
SHAPE = Shape(
    "table7",
    "quality of the critics.",
    (
        ("environment", "Environment", None),
        ("pairwise_ranking_acc_pct", "Pairwise ranking acc. (%)", 2),
        ("spearman", "Spearman", 3),
        ("bce", "BCE", 3),
    ),
    ("Held-out branches. Labels are averages of few continuations, so no critic reaches the ends of these scales.",),
)


def build(source: Tracked) -> Table | None:
    """A row an environment; None until the critics are evaluated."""
    return measured(source, SHAPE)
