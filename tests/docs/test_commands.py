"""Every command in README and documentation exists with its options, and the cheap ones run."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import typer.main

from harness.cli.app import add_commands, app
from tests.docs.commands import ROOT, Command, blocks, commands, pages, split

EVERY = list(dict.fromkeys(command for page in pages() for command in commands(page)))
PAGES = sorted({command.page for command in EVERY if command.runs})
KNOWN_PROGRAMS = ("pip", "python", "python3", "cota-bench", ".", "pip-audit", "mkdocs", "alfworld-download", "export",
                  "cd", "git", "ssh", "sbatch", "srun", "dask", "dask-scheduler", "dask-worker", "curl", "apt-get",
                  "createdb", "vllm", "docker", "kubectl", "source", "zcat", "mlflow", "scp", "ls", "cat", "sed",
                  "squeue", "scancel", "module", "psql", "pg_ctl", "initdb", "nvidia-smi")  # fmt: skip


@cache
def known() -> Any:
    """The real command line."""
    if not {command.name for command in app.registered_commands} & {"report"}:
        add_commands()
    return typer.main.get_command(app)


def wrong(command: Command) -> str | None:
    """What the command line would say, or None. Inline code may leave arguments out."""
    words = list(command.words)
    if not words or words == ["--help"] or words[0].startswith("..."):
        return None
    if words[0] not in known().commands:
        return f"there is no command {words[0]!r}"
    sub = known().commands[words[0]]
    words = [word for word in words[1:] if word not in ("...", "…")]
    if "--help" in words:
        return None
    try:
        sub.make_context(words[0] if words else "", [_number(word) for word in words])
    except Exception as error:
        said = str(getattr(error, "message", "") or error)
        lacks = type(error).__name__ == "MissingParameter"
        return None if lacks and not command.fenced else f"{type(error).__name__}: {said}"
    return None


def _number(word: str) -> str:
    """A placeholder in capitals stands for some value; where a number belongs it must not fail the types."""
    return "1" if word in ("N", "PORT", "COUNT", "SEED") else word


@pytest.mark.parametrize("command", EVERY, ids=str)
def test_it_exists_with_its_options(command: Command) -> None:
    assert wrong(command) is None


def test_what_does_not_exist_is_found() -> None:
    for words in (("no-such",), ("run", "x", "--nope"), ("run",), ("ui", "--port", "x"), ("run", "a", "b"), ("plan", "--x=1", "y")):
        assert wrong(Command("p", words, True)), words
    assert wrong(Command("p", ("run",), False)) is None
    found = list(split("A=b cota-bench run 'x y' && cota-bench plan z | tail -3 # end"))
    assert found == [("cota-bench", "run", "x y"), ("cota-bench", "plan", "z"), ("tail", "-3")]
    marks = list(blocks("<!-- needs: gpu -->\n```bash\ncota-bench run a \\\n  --workers 2\n```\n```bash\nls\n```\n"))
    assert marks == [("needs", ("cota-bench", "run", "a", "--workers", "2")), ("", ("ls",))]


def test_the_pages_have_commands() -> None:
    assert len(EVERY) > 40
    assert {"README.md", "docs/tutorial.md", "docs/extending.md"} <= {command.page for command in EVERY}
    assert {"docs/tutorial.md", "docs/extending.md", "docs/troubleshooting.md"} <= set(PAGES)


def others() -> Iterator[tuple[str, tuple[str, ...]]]:
    for page in pages():
        for _, words in blocks(page.read_text(encoding="utf-8")):
            yield page.name, words


def test_other_programs_are_real() -> None:
    """Scripts and modules of the project that a page names are there; other programs are few and known."""
    for page, words in others():
        program = Path(words[0]).name or "."
        assert program in KNOWN_PROGRAMS, f"{page}: {words[0]!r} (if it is right, add it to KNOWN_PROGRAMS)"
        if program.startswith("python") and len(words) > 1 and words[1].endswith(".py"):
            assert (ROOT / words[1]).is_file(), f"{page}: {words[1]}"
        if program.startswith("python") and words[1:2] == ("-m",) and words[2].split(".")[0] in ("benchmarks", "tests", "harness"):
            assert find_spec(words[2]) is not None, f"{page}: {words[2]}"


@pytest.mark.parametrize("page", PAGES)
def test_the_cheap_ones_run(page: str, tmp_path: Path) -> None:
    """In the order of the page and in one folder, so that a page is what a reader does."""
    for name in ("docs", "experiments"):
        (tmp_path / name).symlink_to(ROOT / name)
    settings = {**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "120", "OMP_NUM_THREADS": "1"}
    settings.pop("MLFLOW_TRACKING_URI", None)
    for command in [command for command in EVERY if command.page == page and command.runs]:
        if "mlflow" in " ".join(command.words) and find_spec("mlflow") is None:
            continue
        ran = subprocess.run(
            [sys.executable, "-m", "harness.cli", *command.words],
            cwd=tmp_path, env=settings, capture_output=True, text=True, timeout=300, check=False,
        )  # fmt: skip
        fine = (0, 1) if command.words[:1] == ("doctor",) else (0,)  # 1: something of the quickstart is not installed
        assert ran.returncode in fine, f"{command}\n{ran.stdout[-1500:]}\n{ran.stderr[-1500:]}"
