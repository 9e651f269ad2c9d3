"""Traces: a few episodes of each cell in MLflow's trace view, written by the process that syncs.

Every method of a study is traced on the same tasks, the first of each cell, so that traces can be laid side by side.
Nothing is recorded while an episode runs: traces are made from the ledger and written at once, without MLflow's queue
(which drops traces under load) and without its global state.  A trace's id is a digest of its run and its row, so that
writing it again changes nothing; the run names its traces in a tag, a trace names its run as its source.

MLflow's public API can only trace what happens now.  What is used here, `TracingClient` and `Span.from_dict`, is
what its own exporter and importer use.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from harness import results
from harness.records import Episode, Usage
from harness.seeds import digest
from harness.study import Throughput
from harness.tracking.spans import Span, spans_of

if TYPE_CHECKING:
    from mlflow import MlflowClient

LAYOUT: Final = "1"
MARK: Final = "cota.traces"  # on a run: what its traces were made from
IDS: Final = "cota.trace_ids"
CELL: Final = "cota.cell"  # on a trace, as on its run
PREVIEW: Final = 400


def wanted(folder: Path) -> int:
    """How many episodes of each cell a study wants traced (`throughput.traces`). Raises `UsageError`."""
    study = results.stored_study(folder) or {}
    given = study.get("resolved", {}).get("throughput", {}).get("traces", Throughput().traces)
    return int(given)


def mark_of(run_id: str, heads: Iterable[Mapping[str, Any]]) -> str:
    """Changes when other episodes are to be traced, or these have newer attempts."""
    return digest([LAYOUT, run_id, [dict(head) for head in heads]])[:32]


def write_traces(
    client: MlflowClient, uri: str, experiment_id: str, run_id: str, cell: str, episodes: Iterable[Episode]
) -> list[str]:
    """Make the traces of a cell those of these episodes; others of the cell are deleted. Gives the ids."""
    from mlflow.tracing.client import TracingClient

    tracing = TracingClient(uri)
    present = _present(client, experiment_id, cell)
    ids = []
    for episode in episodes:
        spans = spans_of(episode)
        trace_id = "tr-" + digest([LAYOUT, run_id, episode.task_id, episode.attempt, episode.started_at])[:32]
        ids.append(trace_id)
        if trace_id not in present:
            tracing.start_trace(_info(trace_id, experiment_id, run_id, episode, spans[0]))
            tracing.log_spans(experiment_id, _stored(trace_id, spans))
    stale = sorted(present - set(ids))
    for start in range(0, len(stale), 100):
        client.delete_traces(experiment_id, trace_ids=stale[start : start + 100])
    return ids


def _present(client: MlflowClient, experiment_id: str, cell: str) -> set[str]:
    found: set[str] = set()
    token = None
    while True:
        page = client.search_traces(
            locations=[experiment_id],
            filter_string=f"tags.`{CELL}` = '{cell}'",
            max_results=200,
            page_token=token,
            include_spans=False,
        )
        found |= {trace.info.trace_id for trace in page}
        token = page.token
        if not token:
            return found


def _info(trace_id: str, experiment_id: str, run_id: str, episode: Episode, root: Span) -> Any:
    from mlflow.entities import TraceInfo, TraceState
    from mlflow.entities.trace_location import TraceLocation

    tags = {
        "mlflow.traceName": root.name,
        CELL: episode.cell,
        "cota.task": str(root.inputs["task_id"]),
        "cota.study": episode.study,
        "method": episode.method,
        "actor": episode.actor,
        "environment": episode.environment,
        "seed": str(episode.seed),
        "status": episode.status,
        "simulated": ", ".join(episode.simulated) or "nothing",
    }
    outcome = f"{episode.status}, reward {'unknown' if episode.reward is None else f'{episode.reward:.3g}'}"
    return TraceInfo(
        trace_id=trace_id,
        trace_location=TraceLocation.from_experiment_id(experiment_id),
        request_time=root.begin // 1_000_000,
        execution_duration=(root.end - root.begin) // 1_000_000,
        state=TraceState.ERROR if root.error else TraceState.OK,
        request_preview=str(root.inputs["task"])[:PREVIEW],
        response_preview=f"{episode.method}: {outcome}, {len(episode.steps)} steps",
        trace_metadata={"mlflow.sourceRun": run_id},
        tags=tags,
    )


def _stored(trace_id: str, spans: list[Span]) -> list[Any]:
    """Spans as MLflow keeps them."""
    from mlflow.entities import Span as Stored

    ids = [bytes.fromhex(digest([trace_id, number])[:16]) for number in range(len(spans))]
    return [
        Stored.from_dict(
            {
                "trace_id": _base64(bytes.fromhex(trace_id.removeprefix("tr-"))),
                "span_id": _base64(ids[number]),
                "parent_span_id": None if span.parent is None else _base64(ids[span.parent]),
                "name": span.name,
                "start_time_unix_nano": span.begin,
                "end_time_unix_nano": span.end,
                "events": [],
                "status": {"code": f"STATUS_CODE_{'ERROR' if span.error else 'OK'}", "message": span.error},
                "attributes": {key: json.dumps(value) for key, value in _attributes(trace_id, span).items()},
            }
        )
        for number, span in enumerate(spans)
    ]


def _attributes(trace_id: str, span: Span) -> dict[str, Any]:
    known = {"mlflow.traceRequestId": trace_id, "mlflow.spanType": span.kind, **span.attributes}
    if span.inputs:
        known["mlflow.spanInputs"] = dict(span.inputs)
    if span.outputs:
        known["mlflow.spanOutputs"] = dict(span.outputs)
    return known | (tokens(span.usage) if span.usage is not None else {})


def tokens(usage: Usage) -> dict[str, Any]:
    """Usage as attributes of a span. Where the server did not say, there is no count, and that is said."""
    known: dict[str, Any] = {"calls": usage.calls, "waited_s": round(usage.waited_s, 3)}
    if usage.prompt is None or usage.completion is None:
        return known | {"tokens": "unknown: not reported by the server"}
    counts = {"input_tokens": usage.prompt, "output_tokens": usage.completion}
    counts["total_tokens"] = usage.prompt + usage.completion
    if usage.cached is not None:
        counts["cache_read_input_tokens"] = usage.cached
    if usage.reasoning is not None:
        known["reasoning_tokens"] = usage.reasoning
    return known | {"mlflow.chat.tokenUsage": counts}


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")
