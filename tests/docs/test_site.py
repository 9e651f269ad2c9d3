"""The site builds without a warning, its pages are there, and its glossary knows every metric and every cause."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
import yaml

from harness.tracking.metrics import GLOSSARY
from tests.docs.commands import ROOT, pages


def _files(nav: object) -> list[str]:
    if isinstance(nav, str):
        return [nav]
    values = nav.values() if isinstance(nav, dict) else nav if isinstance(nav, list) else []
    return [file for value in values for file in _files(value)]


def test_every_page_is_in_the_navigation_and_there() -> None:
    config = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
    named = _files(config["nav"])
    there = {path.relative_to(ROOT / "docs").as_posix() for path in pages() if path.name != "README.md"}
    assert len(named) == len(set(named))
    assert sorted(set(named) - there) == []
    assert sorted(there - set(named)) == [], "pages that the navigation of mkdocs.yml does not name"


@pytest.mark.skipif(find_spec("mkdocs") is None or find_spec("material") is None, reason="needs the docs extra")
def test_the_site_builds(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "-q", "-d", str(tmp_path / "site")]
    settings = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    ran = subprocess.run(command, cwd=ROOT, env=settings, capture_output=True, text=True, timeout=120, check=False)
    assert ran.returncode == 0, ran.stderr[-3000:]
    text = (tmp_path / "site" / "extending" / "index.html").read_text(encoding="utf-8")
    for word in ("SecondLook", "InTurn", "LightsOracle", "in_turn.py:InTurn"):
        assert word in text, f"the snippet with {word} is not on the page"
    for page in (tmp_path / "site").rglob("*.html"):
        written = page.read_text(encoding="utf-8")
        assert not re.search(
            r"<(?:script|link|img)[^>]*(?:src|href)=\"?https?://(?!127)", written.replace("canonical", "")
        )


def test_the_glossary_is_complete() -> None:
    text = (ROOT / "docs" / "metrics.md").read_text(encoding="utf-8")
    missing = [name for name in GLOSSARY if f"`{name}`" not in text]
    assert missing == []
    for word in ("pass^k", "pass@k", "Avg. T", "domination rate", "adopt", "keep", "novel", "billed", "would-be"):
        assert word in text
    code = "".join(path.read_text(encoding="utf-8") for path in sorted((ROOT / "methods").rglob("*.py")))
    causes = {*re.findall(r'append\("([a-z]+)"\)', (ROOT / "methods/panel.py").read_text(encoding="utf-8"))}
    causes |= set(re.findall(r'"((?:judge|candidates|critic):[a-z_]+)"', code))
    assert len(causes) > 4
    assert [cause for cause in sorted(causes) if f"`{cause}`" not in text] == []


def test_the_bounds_in_the_threat_note_are_those_of_the_code() -> None:
    from harness import bounds

    text = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")
    for number in (bounds.MAX_ANSWER, bounds.MAX_ACTION, bounds.MAX_OBSERVATION, bounds.MAX_CALLS):
        assert f"{number:,}" in text
    for file in re.findall(r"`(tests/[a-z_/]+(?:\.py)?)`", text):
        assert (ROOT / file).exists(), file
