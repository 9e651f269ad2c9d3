"""Table 2: absolute Q or pairwise, forced or constructive (paper section 4.4)."""

from __future__ import annotations

from harness.rows import Scalar
from reports import caption
from reports.frames import Tracked
from reports.names import TWO_BY_TWO
from reports.performance import Performance, measure
from reports.table import INCOMPLETE, Column, Entry, Table, entry, flat, shape

ORDER = 2
NEEDS = "the four methods of the 2x2 (experiments/ablation.yaml): agentprm, absq-constructive, pairwise-forced, cota"
WORDS = {"absolute_q": "absolute Q", "pairwise": "pairwise"}


def build(source: Tracked) -> Table | None:
    """A row a judge and intervention, a column an environment and actor; None with fewer than two of the four."""
    found = [item for item in measure(source) if item.plugin in TWO_BY_TWO and not item.skipped]
    plugins = [plugin for plugin in TWO_BY_TWO if any(item.plugin == plugin for item in found)]
    if len(plugins) < 2:
        return None
    places = list(dict.fromkeys((item.environment, item.actor) for item in found))
    methods = [m for plugin in plugins for m in dict.fromkeys(i.method for i in found if i.plugin == plugin)]
    by_key = {(item.method, item.environment, item.actor): item for item in found}
    columns = [Column(head, numeric=False) for head in ("Judge", "Intervention", "Method")]
    columns += [Column(actor, environment) for environment, actor in places]
    body = []
    for method in methods:
        judge, intervention = TWO_BY_TWO[next(item.plugin for item in found if item.method == method)]
        cells = [_entry(by_key.get((method, *place))) for place in places]
        body.append([Entry(WORDS[judge]), Entry(intervention), Entry(method), *cells])
    return Table(
        name="table2",
        title=f"{source.study}: judge and intervention.",
        columns=columns,
        body=body,
        caption=[
            "Mean reward in [0, 1] or success rate in percent, over all seeds.",
            caption.sample_size(found),
            caption.interval(found, timed=False),
            "Paired contrasts of the four are in the table of paired differences.",
            *caption.simulated_in(source),
        ],
        notes=[*caption.marks(found), *caption.other_convention(found), *caption.unscored(found)],
        data=[_tidy(item) for item in found],
    )


def _entry(item: Performance | None) -> Entry:
    if item is None:
        return Entry("–")
    mark = INCOMPLETE if item.incomplete else ""
    extra = f"n={item.scored.n}/{item.planned}" if item.incomplete or item.unscored else ""
    return entry(item.scored, *shape(item.metric), mark, extra)


def _tidy(item: Performance) -> dict[str, Scalar]:
    judge, intervention = TWO_BY_TWO[item.plugin]
    return {
        "objective": judge,
        "intervention": intervention,
        "method": item.method,
        "environment": item.environment,
        "actor": item.actor,
        "metric": item.metric,
        **flat("performance_scored", item.scored),
        **flat("performance_errors_zero", item.zeros),
        "incomplete": item.incomplete,
    }
