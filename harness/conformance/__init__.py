"""Conformance: what every plugin must do, run against any registered plugin (`cota-bench check NAME`).

An author of a plugin gets these tests for free; the project's own test suite runs them for every plugin it registers.
A check returns nothing when it holds, raises `Unmet` with a sentence when it does not, or `NotApplicable` with the
reason when it cannot say.
"""

from harness.conformance.base import Finding, NotApplicable, Unmet
from harness.conformance.suite import check

__all__ = ["Finding", "NotApplicable", "Unmet", "check"]
