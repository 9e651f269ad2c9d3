"""`cota-bench check NAME`: the conformance suite for one plugin."""

from __future__ import annotations

import json
from collections import Counter

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from harness.conformance.suite import check, find
from harness.errors import UsageError
from harness.registry import KINDS, Kind, names


def show_check(console: Console, name: str, kind: str | None, params: str, split: str | None) -> int:
    """Run and print; status 1 when a check failed."""
    try:
        given = json.loads(params)
    except json.JSONDecodeError as error:
        raise UsageError(f"--params is not JSON: {error}. For example --params '{{\"k\": 4}}'.") from error
    if not isinstance(given, dict):
        raise UsageError("--params must be a JSON object, such as '{\"k\": 4}'.")
    findings = [finding for one in _kinds(name, kind) for finding in check(one, name, given, split)]
    table = Table("", "kind", "check", "what was found")
    marks = {"ok": "[green]ok[/green]", "failed": "[red]failed[/red]", "not applicable": "[dim]n/a[/dim]"}
    for finding in findings:
        table.add_row(marks[finding.verdict], finding.kind, finding.check, escape(finding.message))
    console.print(table)
    counts = Counter(finding.verdict for finding in findings)
    console.print(f"{counts['ok']} ok, {counts['failed']} failed, {counts['not applicable']} not applicable")
    return 1 if counts["failed"] else 0


def _kinds(name: str, kind: str | None) -> list[Kind]:
    """As `find`; a plugin of this very name under another kind is said to be one. Raises `UsageError`."""
    if kind in KINDS and ".py:" not in name:
        others = [other for other in KINDS if name in names(other)]
        if others and kind not in others:
            raise UsageError(
                f"{name!r} is none of the {kind}; it is registered under {', '.join(others)}. "
                f"Check it there: cota-bench check {name} --kind {others[0]}"
            )
    return find(name, kind)
