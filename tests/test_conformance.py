"""Every registered plugin passes the conformance suite; what cannot be built here is skipped with its reason."""

from __future__ import annotations

import pytest

from harness.conformance import check
from harness.registry import KINDS, Kind, names, parameters

# Plugins that need an artefact or an endpoint have tests of their own.
NEED_MORE: dict[tuple[str, str], str] = {
    ("candidates", "small-lm"): "runs a language model: tests/candidates/test_small_lm.py",
}
CASES = [(kind, name) for kind in KINDS for name in names(kind)]


@pytest.mark.parametrize(("kind", "name"), CASES, ids=[f"{k}-{n}" for k, n in CASES])
def test_conforms(kind: Kind, name: str) -> None:
    if (kind, name) in NEED_MORE:
        pytest.skip(NEED_MORE[kind, name])
    required = [key for key, p in parameters(kind, name).items() if p.default is p.empty]
    if required:
        pytest.skip(f"needs parameters: {', '.join(required)}")
    failed = [f"{f.check}: {f.message}" for f in check(kind, name) if f.verdict == "failed"]
    assert not failed, failed


def test_the_suite_can_fail() -> None:
    from harness.conformance.base import run_checks
    from harness.conformance.environments import CHECKS, EnvironmentSubject
    from harness.environments.mock import MockEnvironment

    class Forgetful(MockEnvironment):
        def restore(self, snapshot: int) -> None:
            self._at = 4

    findings = run_checks("environments", "forgetful", CHECKS, EnvironmentSubject(Forgetful(), "test", "test-0"))
    failed = {f.check for f in findings if f.verdict == "failed"}
    assert "A snapshot can be restored more than once and continues exactly" in failed
