"""Plugins: near misses, broken plugins, wrong parameters, plugins in one file."""

from __future__ import annotations

from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from harness import registry
from harness.conformance import check
from harness.errors import UsageError

METHOD = '''
from harness.protocols import Execute
from harness.records import Review

class Mine:
    """Mine: executes everything."""
    paper = {"title": "none", "section": "none", "defaults": "none"}
    needs = frozenset()

    def __init__(self, strength: int = 1) -> None:
        self.strength = strength

    def review(self, state, proposal, desk):
        return Execute(proposal.action, Review(proposal.action))
'''


def test_near_miss() -> None:
    with pytest.raises(UsageError, match="Did you mean 'origin'"):
        registry.load("methods", "orgin")


def test_wrong_parameter_is_named_with_the_nearest() -> None:
    with pytest.raises(UsageError, match="no parameter 'kk'"):
        registry.create("methods", "cota", {"kk": 3})


def test_parameters_that_a_plugin_passes_on_are_known_checked_and_no_identity() -> None:
    from harness.models.asking import THROUGHPUT

    known = registry.parameters("actors", "chat")
    assert set(THROUGHPUT) <= set(known)
    assert (known["timeout_s"].default, known["attempts"].default) == (180.0, 8)
    assert registry.parameters("judges", "served-comparator")["timeout_s"].default == 60.0
    place = {"base_url": "http://x/v1", "model": "m"}
    made = registry.create("actors", "chat", {**place, "attempts": 3})
    assert (made.endpoint.attempts, made.endpoint.timeout_s) == (3, 180.0)
    with pytest.raises(UsageError, match="Did you mean 'timeout_s'"):
        registry.create("actors", "chat", {**place, "timeout": 3})
    with pytest.raises(UsageError, match="'attempts' must be int"):
        registry.create("actors", "chat", {**place, "attempts": 2.5})
    assert set(THROUGHPUT) <= set(registry.load("judges", "served-comparator").throughput)


def test_a_broken_plugin_leaves_the_others_usable(monkeypatch: pytest.MonkeyPatch) -> None:
    points = dict(registry._points("methods"))
    points["broken"] = EntryPoint("broken", "no_such_module_at_all:Thing", "cota_bench.methods")
    monkeypatch.setattr(registry, "_points", lambda kind: points if kind == "methods" else {})
    with pytest.raises(UsageError, match=r"fails to import.*no_such_module_at_all"):
        registry.load("methods", "broken")
    rows = {row.name: row for row in registry.plugins()}
    assert rows["broken"].error
    assert rows["origin"].error is None
    assert registry.create("methods", "origin") is not None


def test_a_method_in_one_file(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(METHOD)
    name = f"{file}:Mine"
    assert registry.create("methods", name, {"strength": 2}).strength == 2
    findings = check("methods", name)
    assert [f for f in findings if f.verdict == "failed"] == []
    with pytest.raises(UsageError, match="Did you mean 'Mine'"):
        registry.load("methods", f"{file}:Mime")
    with pytest.raises(UsageError, match="there is no file"):
        registry.load("methods", f"{tmp_path}/absent.py:Mine")


def test_a_file_that_fails_to_import_says_so(tmp_path: Path) -> None:
    file = tmp_path / "bad.py"
    file.write_text("1 / 0\n")
    with pytest.raises(UsageError, match="ZeroDivisionError"):
        registry.load("methods", f"{file}:Mine")


def test_a_file_that_exits_at_import_says_so(tmp_path: Path) -> None:
    file = tmp_path / "bad.py"
    file.write_text("import sys\nsys.exit(5)\n")
    with pytest.raises(UsageError, match="fails to import: SystemExit: 5"):
        registry.load("methods", f"{file}:Mine")


def test_a_constructor_that_raises_is_named(tmp_path: Path) -> None:
    file = tmp_path / "bad.py"
    file.write_text("class Mine:\n    def __init__(self):\n        raise OSError('no disk')\n")
    with pytest.raises(UsageError, match=r"method plugin '.*bad.py:Mine'.*its constructor raised OSError: no disk"):
        registry.create("methods", f"{file}:Mine")
