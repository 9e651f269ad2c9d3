"""Plan: the endpoints in a study, and the command line of a vLLM server for each that belongs on this machine.

Any parameters with `base_url` and `model` are an endpoint, whichever plugin they belong to.  Addresses of this machine
are served here, others are somebody else's.  On GPUs the largest models come first, each on the emptiest GPU, and
models that share one divide its memory by size; without a GPU everything is set for vLLM's CPU build.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from harness.errors import UsageError

SECTIONS = ("actors", "judges", "candidates", "environments")
HERE = ("localhost", "127.0.0.1", "::1", "0.0.0.0")  # noqa: S104  compared with, never bound to
MEMORY = 0.9  # share of a GPU's memory that servers take together
PYTHON = "COTA_BENCH_VLLM_PYTHON"


@dataclass(frozen=True, slots=True)
class Use:
    """One endpoint in a study: who uses it, as `actors/qwen`."""

    who: str
    base_url: str
    model: str
    revision: str | None = None
    key_env: str | None = None


@dataclass(frozen=True, slots=True)
class Server:
    """One server to start; `command` is a list for `exec`, `environment` is added to this process's."""

    model: str
    base_url: str
    users: tuple[str, ...]
    command: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)
    gpu: int | None = None

    @property
    def name(self) -> str:
        """A name for files."""
        return re.sub(r"[^A-Za-z0-9.-]+", "-", self.model).strip("-")[-60:] + f"-{urlsplit(self.base_url).port}"


def find_endpoints(study: Any) -> list[Use]:
    """All endpoints in a study's parameters, overrides included, in the order of the file."""
    found: list[Use] = []
    for section in SECTIONS:
        for label, part in getattr(study, section, {}).items():
            changes = [part, *getattr(part, "overrides", {}).values()]
            for params in (dict(change.params) for change in changes):
                found += _inside(params, f"{section}/{label}")
    return list(dict.fromkeys(found))


def _inside(value: Any, who: str) -> Iterator[Use]:
    if isinstance(value, Mapping):
        url, model = value.get("base_url"), value.get("model")
        if isinstance(url, str) and isinstance(model, str):
            yield Use(who, url.rstrip("/"), model, value.get("revision"), value.get("key_env"))
        for key, inner in value.items():
            yield from _inside(inner, f"{who}.{key}")
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _inside(inner, who)


def gpus() -> int:
    """Number of NVIDIA GPUs of this machine."""
    try:
        listed = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, timeout=20, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return 0
    return sum(line.startswith("GPU ") for line in listed.splitlines())


def size_of(model: str) -> float:
    """Billions of parameters by the model's name (`Qwen3-8B`, `SmolLM2-135M`); 7 where it does not say."""
    found = re.findall(r"(\d+(?:\.\d+)?)\s*([BM])(?![a-zA-Z])", model)
    return max((float(number) / (1000 if unit == "M" else 1) for number, unit in found), default=7.0)


def plan(
    uses: Sequence[Use],
    gpu_count: int,
    max_model_len: int = 16_384,
    python: str | None = None,
    extra: Sequence[str] = (),
) -> tuple[list[Server], list[Use]]:
    """(servers to start here, endpoints elsewhere).

    Args:
        uses: from `find_endpoints`.
        gpu_count: GPUs to use; 0: vLLM's CPU build.
        max_model_len: context in tokens that each server is started with; less where the model has less.
        python: interpreter that has vLLM; by default `$COTA_BENCH_VLLM_PYTHON` or this one.
        extra: further arguments for each server.

    Raises:
        UsageError: two models at one address, or a local address without a port.
    """
    here = [use for use in uses if urlsplit(use.base_url).hostname in HERE]
    elsewhere = [use for use in uses if use not in here]
    groups: dict[str, list[Use]] = {}
    for use in here:
        groups.setdefault(_address(use), []).append(use)
    for address, users in groups.items():
        models = sorted({(user.model, user.revision or "") for user in users})
        if len(models) > 1:
            listed = ", ".join(model for model, _ in models)
            raise UsageError(f"{address} is to serve {listed}: one server serves one model, so give them other ports.")
    interpreter = python or os.environ.get(PYTHON) or sys.executable
    placed = place([users[0].model for users in groups.values()], gpu_count)
    servers = []
    for (_, users), (gpu, share) in zip(groups.items(), placed, strict=True):
        command = (interpreter, *command_of(users[0], gpu, share, max_model_len), *extra)
        who = tuple(user.who for user in users)
        servers.append(Server(users[0].model, users[0].base_url, who, command, environment_of(gpu), gpu))
    return servers, elsewhere


def place(models: Sequence[str], gpu_count: int) -> list[tuple[int | None, float]]:
    """(GPU, share of its memory) for each model, largest first onto the emptiest GPU."""
    if gpu_count == 0:
        return [(None, 0.0) for _ in models]
    weight = {index: size_of(model) + 2.0 for index, model in enumerate(models)}  # 2: caches of the small ones
    load = [0.0] * gpu_count
    where: dict[int, int] = {}
    for index in sorted(weight, key=lambda index: -weight[index]):
        where[index] = min(range(gpu_count), key=lambda gpu: load[gpu])
        load[where[index]] += weight[index]
    return [(where[index], round(MEMORY * weight[index] / load[where[index]], 3)) for index in range(len(models))]


def command_of(use: Use, gpu: int | None, share: float, max_model_len: int) -> list[str]:
    """Arguments after the interpreter. The module is started as such because not every build has a working `vllm`."""
    from harness.models.weights import SMOLLM2, smollm2_folder

    weights = str(smollm2_folder()) if use.model == SMOLLM2 else use.model
    command = ["-m", "vllm.entrypoints.openai.api_server", "--model", weights, "--served-model-name", use.model]
    # Loopback only: a server without a key is nobody else's business.
    command += ["--host", "127.0.0.1", "--port", str(urlsplit(use.base_url).port)]
    context = str(min(max_model_len, context_of(weights) or max_model_len))
    command += ["--max-model-len", context, "--enable-prefix-caching", "--enable-prompt-tokens-details"]
    if use.revision:
        command += ["--revision", use.revision]
    if gpu is None:
        # A seeded request whose prompt is read in two parts ends vLLM 0.32 on a CPU ("CPU Generator does not use
        # offset"): prompts are read whole, so all of one must fit a batch.
        whole = ["--no-enable-chunked-prefill", "--max-num-batched-tokens", context]
        return [*command, "--dtype", "bfloat16", "--enforce-eager", *whole]
    return [*command, "--gpu-memory-utilization", str(share)]


def context_of(weights: str) -> int | None:
    """Tokens a model was made for, where its folder is at hand to say so; vLLM refuses to start with more."""
    try:
        told = json.loads((Path(weights) / "config.json").read_text(encoding="utf-8"))["max_position_embeddings"]
    except (OSError, ValueError, LookupError, TypeError):
        return None
    return told if isinstance(told, int) and told > 0 else None


def environment_of(gpu: int | None) -> dict[str, str]:
    """Environment of one server; what the user's own says about the CPU build stays."""
    if gpu is not None:
        return {"CUDA_VISIBLE_DEVICES": str(gpu)}
    cores = os.cpu_count() or 1
    known = {"VLLM_CPU_OMP_THREADS_BIND": f"0-{cores - 1}" if cores > 1 else "0", "VLLM_CPU_KVCACHE_SPACE": "2"}
    return {name: os.environ.get(name, value) for name, value in known.items()}


def _address(use: Use) -> str:
    parts = urlsplit(use.base_url)
    if parts.port is None:
        raise UsageError(f"{use.who}: base_url {use.base_url!r} needs a port, such as http://127.0.0.1:8000/v1.")
    return f"127.0.0.1:{parts.port}"
