"""Logging a training run to MLflow: curves, data card, cost, the artefact's identity, and its weights by hash.

One experiment, `judges`, one run an artefact, found again by its identity hash, so logging twice changes nothing.  The
weights themselves stay where they are: a run names the folder and its hash, and holds the small files.
"""

from __future__ import annotations

import csv
import shutil
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harness.cache import cache_dir
from harness.rows import Scalar
from harness.tracking.client import artifact_root, connect, tracker_errors
from harness.tracking.runs import RunContent, ensure_experiment, find_runs, legal_name, write_run
from methods.judges.prompt import FILE
from methods.training.artefact import CARD, CURVES, IDENTITY, Artefact, read

EXPERIMENT, KEY = "judges", "cota.judge"
SMALL = (IDENTITY, CARD, CURVES, FILE, "diagnostics.json")


def log_training(folder: Path, tracking_uri: str) -> str:
    """Log a finished judge; the MLflow run id comes back.

    Raises:
        UsageError: the folder holds no finished judge, or MLflow is not installed.
        TrackerDown: the store does not answer.
    """
    artefact = read(folder)
    client = connect(tracking_uri)
    with tracker_errors(tracking_uri), tempfile.TemporaryDirectory() as held:
        for name in SMALL:
            if (folder / name).exists():
                shutil.copyfile(folder / name, Path(held) / name)
        experiment = ensure_experiment(client, EXPERIMENT, artifact_root(tracking_uri, cache_dir()), {})
        existing = find_runs(client, experiment, KEY).get(artefact.hash)
        return write_run(client, experiment, _content(artefact, Path(held)), existing)[0]


def _content(artefact: Artefact, small: Path) -> RunContent:
    card = artefact.card
    ended = int((artefact.folder / IDENTITY).stat().st_mtime * 1000) or int(time.time() * 1000)
    metrics = {
        "seconds": card["seconds"],
        "cpu_seconds": card["cpu_seconds"],
        "steps": card["steps"],
        "examples": card["examples"][0],
        "best_validation_loss": card["best_validation_loss"],
    }
    environments = ", ".join(card["data"]["train"]["environments"])
    return RunContent(
        key_tag=KEY,
        key=artefact.hash,
        name=f"{card['kind']} {environments} ({card['base']})",
        status="done",
        digest=artefact.hash,
        started_ms=ended - int(1000 * card["seconds"]),
        ended_ms=ended,
        params=_params(card),
        tags={"cota.kind": card["kind"], "cota.environments": environments},
        metrics={name: float(value) for name, value in metrics.items() if value is not None},
        points=_points(artefact.folder / CURVES),
        note=_note(artefact),
        folder=small,
    )


def _params(card: Mapping[str, Any]) -> dict[str, Scalar]:
    kept = {key: card[key] for key in ("kind", "base", "revision", "parameters")}
    settings = {f"settings.{key}": value for key, value in card["settings"].items()}
    return {**kept, **settings, **{f"hardware.{key}": value for key, value in card["hardware"].items()}}


def _points(path: Path) -> dict[str, list[tuple[int, float]]]:
    points: dict[str, list[tuple[int, float]]] = {}
    with path.open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            points.setdefault(f"curve/{legal_name(row['name'])}", []).append((int(row["step"]), float(row["value"])))
    return points


def _note(artefact: Artefact) -> str:
    card = artefact.card
    lines = [f"**{card['kind']}** from `{card['base']}`, {card['parameters']:,} parameters, full-parameter training."]
    for split in ("train", "validation"):
        counts = card["data"][split]
        lines.append(f"- {split}: {counts['rows']} rows, {counts['views']} states, {counts['tasks']} tasks")
    lines.append(f"- {card['seconds']} s on {card['hardware']['device']} ({card['hardware']['threads']} threads)")
    lines.append(f"- identity `{artefact.hash}`")
    return "\n".join(lines)
