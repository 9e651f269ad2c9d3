"""Artefacts: a trained judge in a folder, with what it is, what it was made from and what it cost.

`identity.json` decides: the same identity is not trained twice, another one is refused.  `card.json` is for people,
`curves.csv` for plots, `prompt.json` is what the judge must be asked with.
"""

from __future__ import annotations

import csv
import json
import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.cache import read_json
from harness.errors import UsageError
from harness.seeds import digest

IDENTITY, CARD, CURVES, CHECKPOINTS = "identity.json", "card.json", "curves.csv", "checkpoints"


@dataclass(frozen=True, slots=True)
class Artefact:
    """A finished judge; `fresh` is False when it was found and not trained now."""

    folder: Path
    identity: Mapping[str, Any]
    card: Mapping[str, Any]
    fresh: bool = True

    @property
    def hash(self) -> str:
        """Identity hash, 64 hex characters."""
        return str(self.identity["hash"])


def make_identity(parts: Mapping[str, Any]) -> dict[str, Any]:
    """Identity with its hash."""
    return {**parts, "hash": digest(parts)}


def find(folder: Path, identity: Mapping[str, Any]) -> Artefact | None:
    """The finished artefact of this identity, or None when it is still to be made (or to be finished).

    Raises:
        UsageError: the folder belongs to another identity; the differing keys are listed.
    """
    for path in (folder / IDENTITY, folder / CHECKPOINTS / IDENTITY):
        if path.exists():
            held = read_json(path)
            if held["hash"] != identity["hash"]:
                raise UsageError(
                    f"{folder} holds another judge; different: {', '.join(differing(held, identity))}. "
                    "Choose another folder, or delete this one."
                )
    return read(folder) if (folder / IDENTITY).exists() else None


def differing(one: Mapping[str, Any], other: Mapping[str, Any], prefix: str = "") -> list[str]:
    """Dotted keys whose values differ."""
    found = []
    for key in sorted({*one, *other} - {"hash"}):
        left, right = one.get(key), other.get(key)
        if isinstance(left, Mapping) and isinstance(right, Mapping):
            found += differing(left, right, f"{prefix}{key}.")
        elif left != right:
            found.append(f"{prefix}{key} ({left!r} there, {right!r} now)")
    return found


def read(folder: Path) -> Artefact:
    """A finished artefact. Raises `UsageError` when the folder holds none."""
    if not (folder / IDENTITY).exists():
        raise UsageError(f"{folder} holds no trained judge ({IDENTITY} is missing). Make one with `cota-bench train`.")
    identity = read_json(folder / IDENTITY)
    return Artefact(folder, identity, read_json(folder / CARD), fresh=False)


def refuse_damaged(folder: Path) -> None:
    """Raises `UsageError` for weights that cannot be opened: a judge that always fails would look like Origin."""
    from safetensors import SafetensorError, safe_open

    read(folder)
    for path in sorted(folder.glob("*.safetensors")):
        try:
            with safe_open(path, framework="np"):  # reads the header and compares sizes, not the weights
                pass
        except (OSError, SafetensorError) as error:
            raise UsageError(f"{path} is damaged ({error}). Delete {folder} and run the same command again.") from error


def write_json(path: Path, value: Any) -> None:
    """Write JSON atomically; NaN is refused."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    draft.write_text(json.dumps(value, indent=1, sort_keys=True, allow_nan=False) + "\n", encoding="utf-8")
    os.replace(draft, path)


def write_curves(path: Path, history: Sequence[Mapping[str, Any]]) -> None:
    """Training curves, long form: step, epoch, name, value."""
    with path.open("w", newline="", encoding="utf-8") as file:
        out = csv.writer(file)
        out.writerow(["step", "epoch", "name", "value"])
        for entry in history:
            for name, value in entry.items():
                if name not in ("step", "epoch") and isinstance(value, int | float) and value == value:
                    out.writerow([entry.get("step", 0), round(float(entry.get("epoch", 0.0)), 4), name, value])


def hardware(device: str) -> dict[str, Any]:
    """What it ran on."""
    import torch
    import transformers

    found: dict[str, Any] = {
        "device": torch.cuda.get_device_name() if device.startswith("cuda") else "cpu",
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "machine": platform.machine(),
        "python": platform.python_version(),
        "torch": str(torch.__version__),
        "transformers": transformers.__version__,
    }
    return found
