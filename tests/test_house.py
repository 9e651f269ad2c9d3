"""The house's own rules: small files, small functions, no heavy import before it is needed."""

from __future__ import annotations

import ast
import statistics
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGES = ("harness", "methods", "reports", "experiments")
HEAVY = ("torch", "transformers", "mlflow", "pandas", "numpy", "spacy", "textworld", "tau2", "matplotlib", "joblib")


def sources() -> Iterator[Path]:
    for package in PACKAGES:
        yield from sorted((ROOT / package).rglob("*.py"))


def functions(tree: ast.AST) -> Iterator[tuple[str, int, int]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name, node.lineno, (node.end_lineno or node.lineno) - node.lineno + 1


def test_files_stay_small() -> None:
    lengths = {path: path.read_text(encoding="utf-8").count("\n") for path in sources()}
    assert {str(path): n for path, n in lengths.items() if n > 400} == {}
    assert statistics.median(lengths.values()) <= 135


def test_functions_stay_small() -> None:
    lengths, long = [], []
    for path in sources():
        for name, line, length in functions(ast.parse(path.read_text(encoding="utf-8"))):
            lengths.append(length)
            if length > 80:
                long.append(f"{path}:{line} {name} ({length} lines)")
    assert long == []
    assert statistics.median(lengths) <= 12


def test_every_module_says_what_it_is() -> None:
    silent = [str(path) for path in sources() if not ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))]
    assert silent == []


def test_the_command_line_imports_nothing_heavy() -> None:
    code = f"""
import sys
from harness.cli.app import add_commands
add_commands()
print([name for name in {HEAVY!r} if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.strip() == "[]"


def test_harness_imports_neither_methods_nor_reports() -> None:
    wrong = []
    for path in sorted((ROOT / "harness").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            wrong += [
                f"{path}: {name}" for name in names if name.split(".")[0] in ("methods", "reports", "experiments")
            ]
    assert wrong == []
