"""Run a study file in a process of its own: `python -m tests.grid.go STUDY ROOT`."""

from __future__ import annotations

import sys
from pathlib import Path

from harness.errors import UsageError
from harness.run import run_study
from harness.study import load_study

if __name__ == "__main__":
    try:
        summary = run_study(load_study(sys.argv[1]), Path(sys.argv[2]), live=False)
    except UsageError as error:
        print(error, file=sys.stderr)
        sys.exit(2)
    print(summary.text())
    sys.exit(summary.exit_status)
