"""`cota-bench list`: plugins and studies, with what is broken and why."""

from __future__ import annotations

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from harness.registry import plugins
from harness.study import known


def show_lists(console: Console) -> int:
    """Print both lists; status 1 when a plugin fails to import."""
    rows = plugins()
    table = Table("kind", "name", "what it is", "package", title="plugins", title_justify="left")
    for row in rows:
        about = f"[red]fails to import[/red]: {escape(row.error)}" if row.error else escape(row.summary)
        table.add_row(row.kind, row.name, about, escape(row.package))
    console.print(table)
    studies = Table("study", "title", "fills", "hours", "file", title="studies", title_justify="left")
    for name, path in sorted(known().items()):
        studies.add_row(name, *_about(name), escape(str(path)))
    console.print(studies)
    return 1 if any(row.error for row in rows) else 0


def _about(name: str) -> tuple[str, str, str]:
    from harness.errors import UsageError
    from harness.study import load_study

    try:
        study = load_study(name)
    except UsageError as error:
        return f"[red]not valid[/red]: {escape(str(error).splitlines()[0])}", "", ""
    return escape(study.title), escape(study.fills), escape(str(study.hours))
