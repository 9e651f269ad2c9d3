"""Property tests draw the same examples on every machine; `HYPOTHESIS_PROFILE=deep` looks further, at random."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

QUIET = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
settings.register_profile(
    "fixed", derandomize=True, deadline=None, database=None, max_examples=60, suppress_health_check=QUIET
)
settings.register_profile("deep", deadline=None, max_examples=3000, suppress_health_check=QUIET)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fixed"))
