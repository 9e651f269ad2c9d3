"""Table 10: offline cost by phase (paper appendix B.10)."""

from __future__ import annotations

from reports.frames import Tracked
from reports.measured import Shape, measured
from reports.table import Table

ORDER = 10
NEEDS = "cota-bench train JUDGE STUDY (a study with a section training)"
SHAPE = Shape(
    "table10",
    "offline cost.",
    (
        ("environment", "Environment", None),
        ("recipe", "Recipe", None),
        ("base_rollout_hours", "Base rollout (h)", 3),
        ("branch_rollout_hours", "Branch rollout (h)", 3),
        ("comparator_ft_hours", "Comparator training (h)", 3),
        ("critic_ft_hours", "Critic training (h)", 3),
        ("total_hours", "Total (h)", 3),
        ("hardware", "Hardware", None),
    ),
    (
        "Hours of the hardware named, spent once and shared by every actor and evaluation that uses the judge. The "
        "paper counts hours of an H200.",
    ),
)


def build(source: Tracked) -> Table | None:
    """A row an environment; None until something was trained."""
    return measured(source, SHAPE)
