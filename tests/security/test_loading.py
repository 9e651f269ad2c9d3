"""Nothing in the code runs or unpickles what it reads: a walk over every syntax tree, which is itself tried first."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = ("harness", "methods", "reports", "experiments", "benchmarks", "docs")
# What each of these does with a file or text from outside is to run it.
CALLS = {
    "eval", "exec", "__import__", "os.system", "os.popen", "pickle.load", "pickle.loads", "pickle.Unpickler",
    "cPickle.load", "dill.load", "dill.loads", "cloudpickle.load", "cloudpickle.loads", "joblib.load", "marshal.load",
    "marshal.loads", "shelve.open", "yaml.load_all", "yaml.unsafe_load", "yaml.full_load", "yaml.unsafe_load_all",
    "pandas.read_pickle", "pd.read_pickle", "shutil.unpack_archive", "tempfile.mktemp", "ssl._create_unverified_context",
    "xml.etree.ElementTree.parse", "ET.parse",
}  # fmt: skip
BUILTIN = {"eval", "exec", "__import__"}  # methods of these names (a model's `eval()`) are other things


def dotted(node: ast.expr) -> str:
    if isinstance(node, ast.Name):
        return node.id
    return f"{dotted(node.value)}.{node.attr}" if isinstance(node, ast.Attribute) else ""


def _is(node: ast.expr | None, value: object) -> bool:
    return isinstance(node, ast.Constant) and node.value is value


def _call(node: ast.Call) -> str | None:
    """What is wrong with a call, or None."""
    name, given = dotted(node.func), {word.arg: word.value for word in node.keywords}
    if name in CALLS and (name not in BUILTIN or isinstance(node.func, ast.Name)):
        return name
    if name == "yaml.load" and not dotted(given.get("Loader", ast.Name(""))).endswith("SafeLoader"):
        return "yaml.load without a safe loader"
    if name == "torch.load" and not _is(given.get("weights_only"), True):
        return "torch.load without weights_only=True"
    if name.endswith(".load") and _is(given.get("allow_pickle"), True):
        return "allow_pickle=True"
    if name in ("np.load", "numpy.load") and not _is(given.get("allow_pickle"), False):
        return "np.load without allow_pickle=False"
    if name.endswith((".extractall", ".extract")) and "filter" not in given:
        return f"{name} without a filter"
    if "shell" in given and not _is(given["shell"], False):
        return "a shell"
    if "trust_remote_code" in given and not _is(given["trust_remote_code"], False):
        return "trust_remote_code"
    if _is(given.get("verify"), False) or (isinstance(given.get("cert_reqs"), ast.Constant)):
        return "TLS without verification"
    return None


def unsafe(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """(line, what) of each unsafe thing."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and (wrong := _call(node)):
            yield node.lineno, wrong
        names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        for name in names:
            if name.split(".")[0] in ("pickle", "marshal", "shelve", "dill", "cPickle", "telnetlib", "ftplib"):
                yield node.lineno, f"import {name}"
        if isinstance(node, ast.ImportFrom) and node.module == "os":
            yield from ((node.lineno, f"os.{a.name}") for a in node.names if a.name in ("system", "popen"))


@pytest.mark.parametrize(
    "code",
    [
        "eval(x)", "exec(x)", "import pickle", "from pickle import loads", "joblib.load(f)", "yaml.load(f)",
        "yaml.load(f, Loader=yaml.Loader)", "yaml.unsafe_load(f)", "torch.load(f)", "torch.load(f, weights_only=False)",
        "np.load(f)", "np.load(f, allow_pickle=True)", "numpy.load(f)", "tar.extractall(path)", "subprocess.run(c, shell=True)",
        "Popen(c, shell=flag)", "os.system(c)", "from os import system", "AutoModel.from_pretrained(n, trust_remote_code=True)",
        "requests.get(u, verify=False)", "pandas.read_pickle(f)", "shutil.unpack_archive(f)",
    ],
)  # fmt: skip
def test_the_walk_finds(code: str) -> None:
    assert list(unsafe(ast.parse(code)))


@pytest.mark.parametrize(
    "code",
    ["model.eval()", "yaml.safe_load(f)", "yaml.load(f, Loader=yaml.SafeLoader)", "torch.load(f, weights_only=True)",
     "np.load(f, allow_pickle=False)", "tar.extractall(p, filter='data')", "subprocess.run(c)", "json.load(f)"],
)  # fmt: skip
def test_the_walk_lets_through(code: str) -> None:
    assert not list(unsafe(ast.parse(code)))


# A dask worker obeys its scheduler anyway; jobs are pickled by the parent for workers of its own cluster (docs/security.md).
OF_ITS_OWN_CLUSTER = {("harness/cluster.py", what) for what in ("import pickle", "pickle.loads")}


def test_nothing_runs_what_it_reads() -> None:
    files = [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))]
    assert len(files) > 100
    found = [
        f"{path.relative_to(ROOT)}:{line}: {what}"
        for path in files
        for line, what in unsafe(ast.parse(path.read_text(encoding="utf-8")))
        if (path.relative_to(ROOT).as_posix(), what) not in OF_ITS_OWN_CLUSTER
    ]
    assert found == []


def test_servers_bind_to_loopback() -> None:
    """An address that all the world reaches may be compared with, never given to a server."""
    wrong = []
    for path in [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))] + sorted(
        (ROOT / "tests").rglob("mock_endpoint.py")
    ):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        # Constants of hosts that mean this machine (`HERE = (...)`) are what an address is compared with.
        known = {id(c) for a in ast.walk(tree) if isinstance(a, ast.Assign) for c in ast.walk(a.value)
                 if isinstance(a.targets[0], ast.Name) and a.targets[0].id == "HERE"}  # fmt: skip
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and node.value in ("0.0.0.0", "::") and id(node) not in known:
                wrong.append(f"{path}:{node.lineno}: {node.value!r}")
            if isinstance(node, ast.Call) and dotted(node.func).endswith((".bind", "HTTPServer", "start_server")):
                host = next((c.value for c in ast.walk(node) if isinstance(c, ast.Constant) and c.value == ""), None)
                wrong += [f"{path}:{node.lineno}: an empty host"] if host == "" else []
    assert wrong == []


def test_the_commands_of_servers_say_loopback() -> None:
    from harness.tracking.ui import HOST

    assert HOST == "127.0.0.1"
    for file in ("harness/serving/plan.py", "harness/tracking/ui.py"):
        text = (ROOT / file).read_text(encoding="utf-8")
        assert '"--host", HOST' in text or '"--host", "127.0.0.1"' in text


def test_pages_never_make_markup_of_text() -> None:
    """Scripts of the web pages set text, and nothing is fetched from elsewhere while a page is read."""
    forbidden = ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function", "srcdoc")
    files = [path for folder in FOLDERS for ending in ("*.js", "*.html") for path in (ROOT / folder).rglob(ending)]
    found = [f"{path.name}: {word}" for path in files for word in forbidden if word in path.read_text(encoding="utf-8")]
    assert found == []
