"""All figures in one table:  `python -m benchmarks [--only NAME ...] [--full] [--out FILE]`.

Each part runs in a process of its own, one after the other.  A part that fails does not stop the rest: it is named
below the table with its last words, and the exit status is 1.  Progress goes to the error stream, the table to the
standard output and to `--out`.  Without `--full` it takes about ten minutes on 2 quiet cores.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.figures import Figure, machine, number, table
from benchmarks.parts import MARK, PARTS, options

LIMIT_S = 1800


def run(part: str, arguments: Sequence[str]) -> tuple[list[Figure], str, bool]:
    """(figures, why some are not there, whether it failed) of one part."""
    command = [sys.executable, "-m", "benchmarks.parts", part, *arguments]
    figures, reason = [], ""
    with tempfile.TemporaryFile("w+", encoding="utf-8") as errors:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True)
        began = time.monotonic()
        for line in process.stdout or ():
            if line.startswith(MARK):
                figures.append(Figure(**json.loads(line.removeprefix(MARK))))
                print(f"  {figures[-1].what}: {number(figures[-1].value)} {figures[-1].unit}", file=sys.stderr)
            elif line.startswith("missing: "):
                reason = line.removeprefix("missing: ").strip()
            if time.monotonic() - began > LIMIT_S:
                process.kill()
        status = process.wait()
        errors.seek(0)
        last = [line.strip() for line in errors if line.strip()][-1:]
    if status not in (0, 3):
        reason = f"failed with status {status}: {' '.join(last)[:300]}"
    return figures, reason, status not in (0, 3)


def main() -> int:
    """Run the parts and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=PARTS, metavar="NAME", help=f"of: {', '.join(PARTS)}")
    parser.add_argument("--out", type=Path, help="write the table here too")
    options(parser)
    chosen = parser.parse_args()
    passed = ["--full"] * chosen.full
    for name in ("results", "inspect_python"):
        if getattr(chosen, name) is not None:
            passed += [f"--{name.replace('_', '-')}", str(getattr(chosen, name))]
    about, began = machine(), time.monotonic()
    names = [name for name in PARTS if chosen.only is None or name in chosen.only]
    figures: list[Figure] = []
    left_out: list[tuple[str, str]] = []
    broken = False
    for index, name in enumerate(names):
        print(f"[{index + 1}/{len(names)}] {name} ({time.monotonic() - began:.0f} s)", file=sys.stderr, flush=True)
        found, reason, failed = run(name, passed)
        figures += found
        broken |= failed
        if reason:
            print(f"  {reason}", file=sys.stderr)
            left_out.append((name, reason))
    left_out += [(name, "not asked for (--only)") for name in PARTS if name not in names]
    took = f"{'Full' if chosen.full else 'Short'} form, {(time.monotonic() - began) / 60:.1f} minutes."
    text = table(figures, left_out, f"{about}. {took}")
    print(text, end="")
    if chosen.out is not None:
        chosen.out.parent.mkdir(parents=True, exist_ok=True)
        chosen.out.write_text(text, encoding="utf-8")
    return 1 if broken else 0


if __name__ == "__main__":
    raise SystemExit(main())
