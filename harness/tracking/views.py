"""Views: saved comparisons of the MLflow page, and the links that open on them.

MLflow keeps a shared view as an experiment tag, `mlflow.sharedViewState.<key>`, whose value is the page's state as
JSON, compressed.  That format is the page's own and may change with any version, so nothing depends on it: a view that
cannot be written is left out, and a page that does not understand one falls back to its defaults.  Metric columns are
hidden by default and the page opens on another overview unless told; the links say both.
"""

from __future__ import annotations

import base64
import json
import uuid
import zlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

if TYPE_CHECKING:
    from mlflow import MlflowClient

PREFIX: Final = "mlflow.sharedViewState."
COMPARISON: Final = "comparison"
TAG_LIMIT: Final = 20000
WORKFLOW: Final = "workflowType=machine_learning"  # else the page opens on its overview of language models


def save_view(
    client: MlflowClient,
    experiment_id: str,
    *,
    bars: Mapping[str, Sequence[tuple[str, str]]],
    lines: Sequence[tuple[str, str]] = (),
    columns: Sequence[str] = (),
    order_by: str = "tags.cota.position",
) -> bool:
    """Write the comparison view of an experiment, only when it differs from the one that is there.

    Args:
        client: The store.
        experiment_id: Where the view belongs.
        bars: Section title to bar charts as (metric, title).
        lines: Line charts over steps as (metric, title), in a section of their own.
        columns: Columns of the table such as ``params.method`` or ``metrics.reward_mean_scored``.
        order_by: What sorts the runs, ascending, written as the columns are.

    Returns:
        False when the view could not be written; the links then open the plain page.
    """
    state = page_state(experiment_id, bars, lines, columns, order_by)
    packed = "deflate;" + base64.b64encode(zlib.compress(json.dumps(state).encode(), 9)).decode()
    if len(packed) > TAG_LIMIT:
        return False
    try:
        if client.get_experiment(experiment_id).tags.get(PREFIX + COMPARISON) != packed:
            client.set_experiment_tag(experiment_id, PREFIX + COMPARISON, packed)
    except Exception:  # noqa: BLE001  a view is decoration: a store that refuses the tag keeps its runs and plain links
        return False
    return True


def page_state(
    experiment_id: str,
    bars: Mapping[str, Sequence[tuple[str, str]]],
    lines: Sequence[tuple[str, str]],
    columns: Sequence[str],
    order_by: str,
) -> dict[str, Any]:
    """The state of MLflow's runs page: charts in sections, columns, sorting."""
    sections, charts = [], []
    kinds = [("BAR", title, cards) for title, cards in bars.items()]
    kinds += [("LINE", "Over the tasks", lines)] if lines else []
    for kind, title, cards in kinds:
        section = _id(experiment_id, title)
        sections.append(
            {
                "uuid": section,
                "name": title,
                "display": True,
                "isReordered": False,
                "deleted": False,
                "isGenerated": False,
                "columns": 2,
            }
        )
        charts += [_chart(kind, section, metric, label) for metric, label in cards]
    return {
        "searchFilter": "",
        "orderByKey": _column(order_by),
        "orderByAsc": True,
        "startTime": "ALL",
        "lifecycleFilter": "Active",
        "modelVersionFilter": "All Runs",
        "datasetsFilter": [],
        "selectedColumns": [_column(name) for name in columns],
        "columnOrder": [],
        "columnWidths": {},
        "compareRunCharts": charts,
        "compareRunSections": sections,
        "runsHiddenMode": "SHOW_ALL",
        "viewMaximized": False,
        "runListHidden": False,
        "isAccordionReordered": False,
        "groupBy": None,
        "groupsExpanded": {},
        "useGroupedValuesInCharts": True,
        "hideEmptyCharts": True,
        "chartsSearchFilter": "",
    }


def ui_link(base: str, experiment_id: str, *, charts: bool = True, view: bool = True) -> str:
    """The address that opens an experiment's runs on the saved comparison.

    Args:
        base: Address of the server, such as ``http://127.0.0.1:5000``.
        experiment_id: The experiment.
        charts: Charts beside the table, or the table alone.
        view: Whether the saved view exists.
    """
    query = f"{WORKFLOW}&compareRunsMode={'CHART' if charts else 'TABLE'}"
    if view:
        query += f"&viewStateShareKey={COMPARISON}"
    return f"{base.rstrip('/')}/#/experiments/{quote(experiment_id)}/runs?{query}"


def run_link(base: str, experiment_id: str, run_id: str, artifact: str = "") -> str:
    """The address of one run, or of one of its artefacts."""
    tail = f"/artifacts/{quote(artifact)}" if artifact else ""
    return f"{base.rstrip('/')}/#/experiments/{quote(experiment_id)}/runs/{quote(run_id)}{tail}?{WORKFLOW}"


def _chart(kind: str, section: str, metric: str, label: str) -> dict[str, Any]:
    chart: dict[str, Any] = {
        "uuid": _id(section, metric),
        "type": kind,
        "metricKey": metric,
        "displayName": label,
        "runsCountToCompare": 100,
        "metricSectionId": section,
        "deleted": False,
        "isGenerated": False,
    }
    if kind == "LINE":
        chart |= {"selectedMetricKeys": [metric], "xAxisKey": "step", "scaleType": "linear", "lineSmoothness": 0}
    return chart


def _column(name: str) -> str:
    kind, _, key = name.partition(".")
    return f"{kind}.`{key}`"


def _id(*parts: str) -> str:
    """A stable identifier, so that writing the view again changes nothing."""
    return str(uuid.uuid5(uuid.NAMESPACE_OID, "/".join(parts)))
