"""Command line: one file a command, everything heavy imported when its command runs."""

from __future__ import annotations


def main() -> None:
    """Entry point of `cota-bench`."""
    from harness.cli.app import start

    start()
