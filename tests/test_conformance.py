"""Every registered plugin passes the conformance suite; what cannot be built here is skipped with its reason."""

from __future__ import annotations

from pathlib import Path

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


BAD = """
import math
from harness.actors.mock import MockActor
from harness.environments.mock import MockEnvironment
from harness.protocols import Execute
from harness.records import Outcome, Proposal, Review, Usage

class Number(MockActor):
    def propose(self, state, mind):
        return Proposal(mind.parse("right"), 42)

class NoAnswer(MockActor):
    def replan(self, state, proposal, advice, mind):
        return None

class NaN:
    paper = {"title": "none", "section": "none", "defaults": "none"}
    needs = frozenset()
    def review(self, state, proposal, desk):
        return Execute(proposal.action, Review(proposal.action, scores=(math.nan,)))

class Nothing(NaN):
    def review(self, state, proposal, desk):
        return None

class Exits(NaN):
    def review(self, state, proposal, desk):
        raise SystemExit(3)

class Explodes(NaN):
    def __init__(self):
        raise OSError("no disk")

class Seven(MockEnvironment):
    def step(self, action):
        return Outcome(super().step(action).observation, 7.0)

class Unclosed(MockEnvironment):
    def close(self):
        raise RuntimeError("stuck")

class Unlisted(MockEnvironment):
    def tasks(self, split):
        raise RuntimeError("no index")

class NoList(MockEnvironment):
    def tasks(self, split):
        return None

class Twice(MockEnvironment):
    def tasks(self, split):
        return ["test-0", "test-0"]
"""


@pytest.mark.parametrize(
    ("kind", "name", "said"),
    [
        ("actors", "Number", "Proposal.thought: int where str belongs"),
        ("actors", "NoAnswer", "replan() returned None"),
        ("methods", "NaN", "Review.scores: nan is not finite"),
        ("methods", "Nothing", "review() returned None"),
        ("methods", "Exits", "raised SystemExit: 3"),
        ("methods", "Explodes", "raised OSError: no disk"),
        ("environments", "Seven", "a reward of 7.0, outside [0, 1]"),
        ("environments", "Unclosed", "raised RuntimeError: stuck"),
        ("environments", "Unlisted", "tasks('test') raised RuntimeError: no index"),
        ("environments", "NoList", "tasks('test') gives None"),
        ("environments", "Twice", "repeats test-0"),
    ],
)
def test_what_a_run_refuses_fails_a_check(tmp_path: Path, kind: Kind, name: str, said: str) -> None:
    file = tmp_path / "bad.py"
    file.write_text(BAD)
    failed = [f.message for f in check(kind, f"{file}:{name}") if f.verdict == "failed"]
    assert any(said in message for message in failed), failed
