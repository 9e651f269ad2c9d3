"""Logging a training run to MLflow: curves, data card, cost, the artefact's identity, and its weights by hash.

One experiment, `judges`, one run an artefact, found again by its identity hash, so logging twice changes nothing.  The
weights themselves stay where they are: a run names the folder and its hash, and holds the small files.  Each artefact
is a version of a registered model (`comparator webshop`), tagged with its identity hash.
"""

from __future__ import annotations

import csv
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from harness.cache import cache_dir, read_json
from harness.errors import UsageError
from harness.rows import Scalar
from harness.seeds import digest
from harness.tracking.client import artifact_root, connect, redacted, sqlite_path, tracker_errors
from harness.tracking.runs import RunContent, ensure_experiment, find_runs, legal_name, write_run
from methods.judges.prompt import FILE
from methods.training.artefact import CARD, CURVES, IDENTITY, Artefact, read, write_json

EXPERIMENT, KEY = "judges", "cota.judge"
DIAGNOSTICS = "diagnostics.json"
SMALL = (IDENTITY, CARD, CURVES, FILE, DIAGNOSTICS)
LOGGED = "logged.json"  # stores that have this judge, so that a run with nothing to do opens none


def log_softly(folder: Path, tracking_uri: str, say: Callable[[str], None]) -> bool:
    """Log a judge where it is not logged yet; a store that is down is said and stops nothing. True: it is there now."""
    if find_spec("mlflow") is None:
        return False
    state = _state(folder)
    known = _logged(folder)
    name = digest(tracking_uri)[:16]
    path = sqlite_path(tracking_uri)
    if known.get(name) == state and (path is None or path.exists()):
        return True
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
    try:
        log_training(folder, tracking_uri)
    except UsageError as error:
        say(f"{folder.name}: its training is not logged to {redacted(tracking_uri)}: {error}")
        say("Nothing is lost: the same command logs it later.")
        return False
    write_json(folder / LOGGED, {**known, name: state})
    return True


def _state(folder: Path) -> str:
    files = (folder / name for name in (IDENTITY, DIAGNOSTICS))
    return digest([path.read_text(encoding="utf-8") for path in files if path.exists()])[:32]


def _logged(folder: Path) -> dict[str, str]:
    path = folder / LOGGED
    found: dict[str, str] = read_json(path) if path.exists() else {}
    return found


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
        run_id = write_run(client, experiment, _content(artefact, Path(held)), existing)[0]
        _register(client, artefact, run_id)
        return run_id


def _register(client: Any, artefact: Artefact, run_id: str) -> None:
    """The artefact as a version of its registered model; one that points at a run since replaced is made anew."""
    name = legal_name(f"{artefact.card['kind']} {_environments(artefact.card)}").replace("/", "_")
    if not client.search_registered_models(filter_string=f"name='{name}'", max_results=1):
        client.create_registered_model(name, description="Judges trained by cota-bench; weights stay in its cache.")
    for version in client.search_model_versions(f"name='{name}'"):
        if version.tags.get(KEY) == artefact.hash:
            if version.run_id == run_id:
                return
            client.delete_model_version(name, version.version)
    tags = {KEY: artefact.hash, "cota.folder": str(artefact.folder)}
    source = f"{client.get_run(run_id).info.artifact_uri}"
    client.create_model_version(name, source=source, run_id=run_id, tags=tags)


def _environments(card: Mapping[str, Any]) -> str:
    return ", ".join(card["data"]["train"]["environments"])


def _target(card: Mapping[str, Any]) -> str:
    """` A/B` or ` A/B/T`: the letters that a comparator was trained on; nothing for a critic."""
    labels = card["data"]["train"].get("labels")
    if labels is None:
        return ""
    return " A/B/T" if any(label.endswith("/T") for label in labels) else " A/B"


def _found(folder: Path) -> Iterator[tuple[str, float]]:
    """Numbers of the diagnostics as `test_accuracy`; several environments are under their names."""
    path = folder / DIAGNOSTICS
    held = read_json(path) if path.exists() else {}
    for split, by_environment in held.items():
        plain = isinstance(by_environment, dict) and " " not in split  # others are on another recipe's pairs
        for environment, numbers in by_environment.items() if plain else ():
            for name, value in numbers.items():
                value = value.get("value") if isinstance(value, dict) else value
                if isinstance(value, int | float):
                    middle = f"_{environment}" if len(by_environment) > 1 else ""
                    yield legal_name(f"{split}{middle}_{name}"), float(value)


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
        name=f"{card['kind']} {environments}{_target(card)} ({card['base']})",
        status="done",
        digest=_state(artefact.folder),
        started_ms=ended - int(1000 * card["seconds"]),
        ended_ms=ended,
        params=_params(card),
        tags={"cota.kind": card["kind"], "cota.environments": environments},
        metrics={name: float(value) for name, value in metrics.items() if value is not None} | dict(_found(small)),
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
