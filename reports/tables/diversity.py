"""Action diversity: what repeated samples of the actor offer, against a candidate mechanism (paper section 4.5)."""

from __future__ import annotations

from reports.frames import Tracked
from reports.measured import Shape, measured
from reports.table import Table

ORDER = 13
NEEDS = "cota-bench diversity STUDY (a study with a section diversity)"
SHAPE = Shape(
    "diversity",
    "distinct actions.",
    (
        ("sampler", "Sampler", None),
        ("samples_per_prefix", "Samples", 0),
        ("distinct_actions_mean", "Distinct actions", 2),
        ("unique_action_utilization_pct", "Utilisation (%)", 1),
        ("prefixes", "Prefixes", 0),
        ("prefixes_collapsed_to_one", "Collapsed to one", 0),
    ),
    ("Actions are the same when their canonical forms are. Utilisation: distinct actions over samples.",),
)


def build(source: Tracked) -> Table | None:
    """A row a sampler; None until it is measured."""
    return measured(source, SHAPE)
