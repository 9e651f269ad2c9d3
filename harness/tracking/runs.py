"""Runs: writing one MLflow run so that writing it again changes nothing.

Every call names its run; MLflow's global active run is never touched, so threads and nested callers cannot mix.  A run
is found again by a tag (`cota.cell`, `cota.group`), and `cota.digest` tells whether anything changed since.  MLflow
keeps every metric point and refuses changed parameters: a run whose history would become wrong is therefore replaced
(deleted and made anew), a run that only grows is written on.  Names with a slash are curves.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from harness.rows import Scalar

if TYPE_CHECKING:
    from mlflow import MlflowClient

PARAM_CHARS: Final = 500
TAG_CHARS: Final = 5000
NOTE_CHARS: Final = 8000
KEY_CHARS: Final = 250
DIGEST: Final = "cota.digest"
STATUS: Final = "cota.status"
LAYOUT: Final = "3"

Points = Mapping[str, Sequence[tuple[int, float]]]


@dataclass(frozen=True)
class RunContent:
    """All that one run shall hold; `folder` is a directory of artefacts, `live` allows later growth in place."""

    key_tag: str
    key: str
    name: str
    status: str
    digest: str
    started_ms: int
    ended_ms: int
    params: Mapping[str, Scalar] = field(default_factory=dict)
    tags: Mapping[str, str] = field(default_factory=dict)
    metrics: Mapping[str, float] = field(default_factory=dict)
    points: Points = field(default_factory=dict)
    step: int = 0
    note: str = ""
    complete: bool = True
    folder: Path | None = None


def ensure_experiment(client: MlflowClient, name: str, root: Path | None, tags: Mapping[str, str]) -> str:
    """The id of the experiment, made or brought back from the bin, with its tags set."""
    found = client.get_experiment_by_name(name)
    if found is None:
        location = (root / name.replace("/", "_")).as_uri() if root else None
        experiment_id: str = client.create_experiment(name, artifact_location=location)
    else:
        experiment_id = found.experiment_id
        if found.lifecycle_stage == "deleted":
            client.restore_experiment(experiment_id)
    present = found.tags if found else {}
    for key, value in tags.items():
        if present.get(key) != value:
            client.set_experiment_tag(experiment_id, key, value)
    return experiment_id


def find_runs(client: MlflowClient, experiment_id: str, key_tag: str) -> dict[str, Any]:
    """The runs of an experiment by the value of a tag; a duplicate left by a crash is deleted, the newest stays."""
    found: dict[str, Any] = {}
    token = None
    while True:
        page = client.search_runs([experiment_id], max_results=1000, order_by=["start_time DESC"], page_token=token)
        for run in page:
            key = run.data.tags.get(key_tag)
            if key is None:
                continue
            if key in found:
                client.delete_run(run.info.run_id)
            else:
                found[key] = run
        token = page.token
        if not token:
            return found


def write_run(client: MlflowClient, experiment_id: str, content: RunContent, existing: Any | None) -> tuple[str, bool]:
    """Bring one run up to date.

    Returns:
        The run id, and whether anything was written.
    """
    if existing is not None and existing.data.tags.get(DIGEST) == content.digest:
        return existing.info.run_id, False
    if existing is not None and not _can_grow(existing, content):
        client.delete_run(existing.info.run_id)
        existing = None
    if existing is None:
        # Tags go in with the run: every separate write is a commit, and commits are what a sync waits for.
        tags = {content.key_tag: content.key, "mlflow.source.name": "cota-bench", STATUS: "writing", **_tags(content)}
        run = client.create_run(experiment_id, start_time=content.started_ms, tags=tags, run_name=content.name)
        run_id: str = run.info.run_id
        _log(client, run_id, content, set(), {})
    else:
        run_id = existing.info.run_id
        _log(client, run_id, content, set(existing.data.params), _tags(content))
    if content.folder is not None:
        client.log_artifacts(run_id, str(content.folder))
    _finish(client, run_id, content)
    return run_id, True


def _can_grow(run: Any, content: RunContent) -> bool:
    """Whether the new content only adds to what the run already says."""
    params = {key: value for key, value in clean_params(content.params).items() if key in run.data.params}
    same = all(run.data.params[key] == value for key, value in params.items())
    # A curve that was drawn once would keep its old points; final metrics only get a newer value.
    drawn = any("/" in name for name in run.data.metrics)
    layout = run.data.tags.get("cota.layout") == LAYOUT
    return same and layout and not drawn and set(run.data.metrics) <= set(content.metrics)


def _tags(content: RunContent) -> dict[str, str]:
    tags = {"cota.layout": LAYOUT, **content.tags}
    if content.note:
        tags["mlflow.note.content"] = content.note
    return {key[:KEY_CHARS]: clip(value, _limit(key)) for key, value in tags.items()}


def _log(client: MlflowClient, run_id: str, content: RunContent, known: set[str], tags: Mapping[str, str]) -> None:
    from mlflow.entities import Metric, Param, RunTag

    at = content.ended_ms
    metrics = [Metric(name, value, at, content.step) for name, value in content.metrics.items() if math.isfinite(value)]
    metrics += [
        Metric(name, value, at, step)
        for name, points in content.points.items()
        for step, value in points
        if math.isfinite(value)
    ]
    params = [Param(key, value) for key, value in clean_params(content.params).items() if key not in known]
    tag_list = [RunTag(key, value) for key, value in tags.items()]
    # Batches hold at most 1000 metrics, 100 parameters and 100 tags.
    for i in range(0, max(len(metrics), 10 * len(params), 10 * len(tag_list), 1), 1000):
        client.log_batch(
            run_id,
            metrics=metrics[i : i + 1000],
            params=params[i // 10 : i // 10 + 100],
            tags=tag_list[i // 10 : i // 10 + 100],
        )


def _finish(client: MlflowClient, run_id: str, content: RunContent) -> None:
    """The digest and the status come last: a run that lacks them was not written to its end."""
    if content.complete:
        client.set_terminated(run_id, status="FINISHED", end_time=content.ended_ms)
    else:
        client.update_run(run_id, status="RUNNING" if content.step else "SCHEDULED", name=content.name)
    from mlflow.entities import RunTag

    client.log_batch(run_id, tags=[RunTag(DIGEST, content.digest), RunTag(STATUS, content.status)])


def clean_params(params: Mapping[str, Scalar]) -> dict[str, str]:
    """Parameters as MLflow takes them: legal keys, clipped values, an unknown shown as such."""
    return {legal_name(key): clip("unknown" if v is None else str(v), PARAM_CHARS) for key, v in params.items()}


def legal_name(name: str) -> str:
    """A name of letters, digits and `_ - . / space` only."""
    return "".join(c if (c.isascii() and c.isalnum()) or c in "_-./ " else "_" for c in name)[:KEY_CHARS].strip() or "_"


def clip(text: str, limit: int) -> str:
    """Text within a limit; what was cut is said."""
    return text if len(text) <= limit else f"{text[: limit - 24]}... ({len(text)} characters)"


def _limit(key: str) -> int:
    return NOTE_CHARS - 200 if key == "mlflow.note.content" else TAG_CHARS
