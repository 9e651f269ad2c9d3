"""Serving: what a study needs, how memory is divided, and a server's life with a stand-in for vLLM."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from harness.errors import UsageError
from harness.serving import find_endpoints, plan, serve
from harness.serving.plan import place, size_of

# What `python -m vllm.entrypoints.openai.api_server` looks like from outside.
STAND_IN = """
import argparse, http.server, json, os, sys
p = argparse.ArgumentParser()
for name in ("--model", "--served-model-name", "--host", "--max-model-len", "--dtype", "--max-num-batched-tokens"):
    p.add_argument(name)
p.add_argument("--port", type=int)
flags = ("--enable-prefix-caching", "--enable-prompt-tokens-details", "--enforce-eager", "--no-enable-chunked-prefill")
for name in flags:
    p.add_argument(name, action="store_true")
a = p.parse_args()
if a.model == "broken": sys.exit("cannot load")
print("SECRET", os.environ.get("SERVE_TEST_KEY"), flush=True)
class H(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        says = {"/version": {"version": "9.9"}, "/v1/models": {"data": [{"id": a.served_model_name, "root": a.model}]}}
        self.send_response(200); self.end_headers(); self.wfile.write(json.dumps(says.get(self.path, {})).encode())
http.server.ThreadingHTTPServer((a.host, a.port), H).serve_forever()
"""


def study(**actors: dict[str, Any]) -> Any:
    return SimpleNamespace(
        actors={label: SimpleNamespace(params=params, overrides={}) for label, params in actors.items()}
    )


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@pytest.fixture
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    package = tmp_path / "lib" / "vllm" / "entrypoints" / "openai"
    package.mkdir(parents=True)
    for folder in (package, package.parent, package.parent.parent):
        (folder / "__init__.py").write_text("")
    (package / "api_server.py").write_text(STAND_IN)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "lib"))
    return tmp_path


def test_endpoints_are_found_wherever_they_are() -> None:
    local = "http://localhost:8000/v1"
    whole = SimpleNamespace(
        actors={
            "q": SimpleNamespace(
                params={"base_url": local, "model": "Qwen/Qwen3-8B", "revision": "abc"},
                overrides={"webshop": SimpleNamespace(params={"temperature": 0.1})},
            )
        },
        judges={"j": SimpleNamespace(params={"base_url": "http://localhost:8001/v1/", "model": "j"}, overrides={})},
        environments={
            "retail": SimpleNamespace(params={"user": {"base_url": "https://api.x/v1", "model": "u", "key_env": "K"}})
        },
    )
    uses = find_endpoints(whole)
    assert [(use.who, use.model) for use in uses] == [
        ("actors/q", "Qwen/Qwen3-8B"),
        ("judges/j", "j"),
        ("environments/retail.user", "u"),
    ]
    servers, elsewhere = plan(uses, 1, python="python")
    assert [server.users for server in servers] == [("actors/q",), ("judges/j",)]
    assert [use.model for use in elsewhere] == ["u"]
    command = servers[0].command
    assert command[command.index("--revision") + 1] == "abc"
    assert command[command.index("--host") + 1] == "127.0.0.1"
    assert {server.environment["CUDA_VISIBLE_DEVICES"] for server in servers} == {"0"}


def test_gpus_are_shared_by_size() -> None:
    assert (size_of("Qwen/Qwen3-8B"), size_of("SmolLM2-135M"), size_of("Qwen3.6-35B-A3B")) == (8.0, 0.135, 35.0)
    assert place(["a-8B", "b-0.5B"], 1) == [(0, 0.72), (0, 0.18)]
    assert [gpu for gpu, _ in place(["a-8B", "b-0.5B", "c-35B"], 2)] == [1, 1, 0]
    assert place(["a-8B"], 0) == [(None, 0.0)]


def test_no_server_is_started_with_more_context_than_its_model_has(tmp_path: Path) -> None:
    def asked(model: str, *limit: int) -> list[str]:
        uses = find_endpoints(study(a={"base_url": "http://localhost:8000/v1", "model": model}))
        words = plan(uses, 0, *limit)[0][0].command
        return [words[words.index(flag) + 1] for flag in ("--max-model-len", "--max-num-batched-tokens")]

    assert asked(str(tmp_path)) == ["16384", "16384"], "a folder that does not say"
    (tmp_path / "config.json").write_text('{"max_position_embeddings": 8192}')
    assert asked(str(tmp_path)) == ["8192", "8192"]
    assert asked(str(tmp_path), 4096) == ["4096", "4096"]
    (tmp_path / "config.json").write_text('{"max_position_embeddings": "many"}')
    assert asked(str(tmp_path)) == ["16384", "16384"]


def test_two_models_at_one_address_and_an_address_without_a_port_are_refused() -> None:
    url = "http://127.0.0.1:8000/v1"
    with pytest.raises(UsageError, match="other ports"):
        plan(find_endpoints(study(a={"base_url": url, "model": "x"}, b={"base_url": url, "model": "y"})), 0)
    with pytest.raises(UsageError, match="port"):
        plan(find_endpoints(study(a={"base_url": "http://localhost/v1", "model": "x"})), 0)
    with pytest.raises(UsageError, match="localhost"):
        serve(study(a={"base_url": "https://api.x/v1", "model": "x"}), Path("unused"))


def test_a_dry_run_prints_and_starts_nothing(tmp_path: Path) -> None:
    lines: list[str] = []
    given = study(a={"base_url": "http://127.0.0.1:8000/v1", "model": "x y; rm -rf /"})
    assert serve(given, tmp_path / "out", dry_run=True, gpu_count=0, echo=lines.append) == 0
    assert "--model 'x y; rm -rf /'" in lines[-1]
    assert not (tmp_path / "out").exists()


def test_a_server_comes_up_is_written_down_and_is_gone_afterwards(
    stand_in: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SERVE_TEST_KEY", "sk-canary")
    port, lines = free_port(), []
    url = f"http://127.0.0.1:{port}/v1"
    given = study(a={"base_url": url, "model": "m", "key_env": "SERVE_TEST_KEY"}, b={"base_url": url, "model": "m"})
    folder = stand_in / "out"
    code = serve(given, folder, gpu_count=0, python=sys.executable, wait_s=300, echo=lines.append, until=lambda: True)
    assert code == 0
    assert any("ready: m" in line for line in lines)
    (fact,) = json.loads((folder / "serve.json").read_text())
    assert (fact["version"], fact["served"][0]["root"], fact["users"]) == ("9.9", "m", ["actors/a", "actors/b"])
    assert all("sk-canary" not in path.read_text() for path in folder.iterdir())
    with socket.socket() as one:
        assert one.connect_ex(("127.0.0.1", port)) != 0, "the server is still there"


def test_a_server_that_does_not_come_up_shows_the_end_of_its_log(stand_in: Path) -> None:
    given = study(a={"base_url": f"http://127.0.0.1:{free_port()}/v1", "model": "broken"})
    with pytest.raises(UsageError, match="cannot load"):
        serve(given, stand_in / "out", gpu_count=0, python=sys.executable, wait_s=300, echo=lambda _: None)


def test_an_interpreter_without_vllm_is_a_message(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", os.fspath(tmp_path))
    given = study(a={"base_url": f"http://127.0.0.1:{free_port()}/v1", "model": "m"})
    with pytest.raises(UsageError, match="vLLM"):
        serve(given, tmp_path, gpu_count=0, python=sys.executable, echo=lambda _: None)


def test_a_port_that_is_taken_is_a_message(stand_in: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        given = study(a={"base_url": f"http://127.0.0.1:{other.getsockname()[1]}/v1", "model": "m"})
        with pytest.raises(UsageError, match="answers at"):
            serve(given, stand_in / "out", gpu_count=0, python=sys.executable, echo=lambda _: None)


def test_a_request_to_end_ends_the_servers(stand_in: Path) -> None:
    port = free_port()
    code = (
        "import sys; from pathlib import Path; from types import SimpleNamespace as N; from harness.serving import serve;"
        f"a = N(params={{'base_url': 'http://127.0.0.1:{port}/v1', 'model': 'm'}}, overrides={{}});"
        "say = lambda line: print(line, flush=True);"
        f"sys.exit(serve(N(actors={{'a': a}}), Path({str(stand_in / 'out')!r}), gpu_count=0, wait_s=300, echo=say))"
    )
    path = os.pathsep.join([os.environ["PYTHONPATH"], str(Path(__file__).parents[2])])
    command = [sys.executable, "-c", code]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ | {"PYTHONPATH": path}) as process:
        assert process.stdout is not None
        while not process.stdout.readline().startswith("ready"):
            assert process.poll() is None
        process.terminate()
        assert process.wait(300) == 0
    with socket.socket() as one:
        assert one.connect_ex(("127.0.0.1", port)) != 0, "the server is still there"
