"""Table 6: candidate sources as configured (paper appendix B.5)."""

from __future__ import annotations

from reports.frames import Tracked
from reports.measured import Shape, measured
from reports.table import Table

ORDER = 6
NEEDS = "cota-bench run STUDY (a study with candidate sources)"
SHAPE = Shape(
    "table6",
    "candidate sources.",
    (
        ("environment", "Environment", None),
        ("actor_condition", "Actors", None),
        ("candidate_source", "Candidate source", None),
    ),
    ("Where the alternatives that a judge compares come from.",),
)


def build(source: Tracked) -> Table | None:
    """A row an environment and actor condition; None when the study has no source."""
    return measured(source, SHAPE)
