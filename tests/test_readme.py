"""What the README says works: its method passes the conformance suite, its commands exist."""

from __future__ import annotations

import re
from pathlib import Path

from harness.cli.app import add_commands, app
from harness.conformance import check

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_method_in_one_file_conforms(tmp_path: Path) -> None:
    code = re.search(r"```python\n(# my_method\.py.*?)```", README, re.S)
    assert code
    file = tmp_path / "my_method.py"
    file.write_text(code.group(1))
    failed = [f for f in check("methods", f"{file}:SecondLook") if f.verdict == "failed"]
    assert failed == []


def test_every_command_in_the_table_exists() -> None:
    add_commands()
    known = {(c.name or (c.callback.__name__ if c.callback else "")).rstrip("_") for c in app.registered_commands}
    rows = [line for line in README.splitlines() if line.startswith("| `cota-bench ")]
    named = {name for line in rows for name in re.findall(r"`cota-bench ([a-z-]+)", line)}
    assert named == known


def test_ci_runs_the_readmes_test_command() -> None:
    assert "<!-- command: test -->" in README
    assert "command: test" in (ROOT / ".ci" / "run").read_text(encoding="utf-8")
