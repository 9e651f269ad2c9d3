"""Comparators on held-out pairs: accuracy, consistency over both orders, valid outputs, calibration.

Not in the paper, which gives such numbers for the critics alone (table 7).
"""

from __future__ import annotations

from reports.frames import Tracked
from reports.measured import Shape, measured
from reports.table import Table

ORDER = 23
NEEDS = "cota-bench evaluate-judge STUDY (a study with a trained comparator)"
SHAPE = Shape(
    "comparator",
    "quality of the comparators.",
    (
        ("environment", "Environment", None),
        ("recipe", "Recipe", None),
        ("target", "Target", None),
        ("accuracy_pct", "Accuracy (%)", 1),
        ("bidirectional_accuracy_pct", "Both orders right (%)", 1),
        ("order_consistency_pct", "Order consistency (%)", 1),
        ("valid_output_pct", "Valid output (%)", 1),
        ("calibration_error", "Calibration error", 3),
        ("majority_pct", "Always the commonest (%)", 1),
        ("n", "n", 0),
    ),
    ("Held-out pairs in both orders, labels A, B and T.",),
)


def build(source: Tracked) -> Table | None:
    """A row a recipe; None until a comparator is evaluated."""
    return measured(source, SHAPE)
