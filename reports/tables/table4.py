"""Table 4: pairs of branches by split (paper appendix B.3)."""

from __future__ import annotations

from reports.frames import Tracked
from reports.measured import Shape, measured
from reports.table import Table

ORDER = 4
NEEDS = "cota-bench pairs STUDY (a study with a section training)"
SHAPE = Shape(
    "table4",
    "pairs of branches.",
    (
        ("environment", "Environment", None),
        ("physical_pairs", "Physical pairs", 0),
        ("train", "Train", 0),
        ("validation", "Validation", 0),
        ("test", "Test", 0),
    ),
    ("Splits are at task level and hold every pair in both orders; ties are downsampled in training data.",),
)


def build(source: Tracked) -> Table | None:
    """A row an environment; None until the pairs are counted."""
    return measured(source, SHAPE)
