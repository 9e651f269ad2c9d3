"""Summary: one entry a method and actor for the tracker's summary experiment, with intervals and an error-bar chart.

MLflow's own grouping averages only the runs it has loaded and knows no intervals; so they are computed here and logged
as `<name>`, `<name>_ci_lo` and `<name>_ci_hi`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from harness.tracking.metrics import finite
from harness.tracking.runs import legal_name
from harness.tracking.summary import Summary, SummaryRun
from reports import caption
from reports.figures.performance import error_bars
from reports.figures.style import tint
from reports.frames import Group, Tracked, groups, score
from reports.performance import Performance, generator, measure
from reports.stats import Estimate, mean_of_means
from reports.write import page, report_files

EMBEDDED = 100  # episodes in the page of each summary run
GLOSSARY = {
    "performance_mean": "unweighted mean over environments of performance in [0, 1] (mean reward, or success rate); "
    "none for a method that was skipped in an environment where others ran",
    "<environment>_performance": "performance over scored episodes of all seeds, in [0, 1]; errors left out",
    "<environment>_performance_errors_zero": "the same with errors counted as 0; there only when it differs",
    "<environment>_avg_t": "summed working time over that of the paired Origin episodes",
    "avg_t_mean": "unweighted mean of avg_t over environments",
    "..._ci_lo, ..._ci_hi": "95% interval, tasks being the independent unit",
    "episodes_scored": "the n of the means",
    "episodes_errors": "failed, timed out or unparsed episodes",
    "episodes_missing": "planned episodes without a record",
}


def summarise(source: Tracked) -> Summary:
    """The summary runs of a study, with the charts and columns of their comparison."""
    found = measure(source)
    by_group: dict[tuple[str, str], list[Performance]] = {}
    for item in found:
        by_group.setdefault((item.method, item.actor), []).append(item)
    files = report_files(source, figures=False)
    html = page(source, episodes=EMBEDDED).encode()
    charts = {actor: error_bars(source, actor, found) for actor in dict.fromkeys(item.actor for item in found)}
    every = groups(source)
    runs = []
    # Methods of one actor stand next to each other, actors in the order of the plan.
    actors = list(charts)
    for (method, actor), items in sorted(by_group.items(), key=lambda entry: actors.index(entry[0][1])):
        parts = [group for group in every if (group.method, group.actor) == (method, actor)]
        artifacts = {"performance.png": charts[actor]}
        artifacts["report.md"] = files["report.md"].encode()
        artifacts["report.html"] = html
        artifacts |= {f"tables/{name}": text.encode() for name, text in files.items() if name.endswith(".csv")}
        runs.append(
            SummaryRun(
                method=method,
                actor=actor,
                metrics=_metrics(source.study, items, parts, partial=bool(_left_out(items, found))),
                note=_note(source, items, _left_out(items, found)),
                complete=not any(item.missing for item in items),
                params={"environments": ", ".join(item.environment for item in items)},
                tags={"mlflow.runColor": tint(source, method)},
                artifacts=artifacts,
            )
        )
    environments = list(dict.fromkeys(item.environment for item in found))
    return Summary(runs, GLOSSARY, _bars(environments), _columns(environments))


def macro(study: str, items: Sequence[Performance], parts: Sequence[Group]) -> Estimate:
    """Unweighted mean over environments; no value while one of them has no scored episode."""
    samples = []
    for item, group in zip(items, parts, strict=True):
        if item.skipped:
            continue
        rows = group.of("scored")
        samples.append(([score(row, item.metric) for row in rows], [str(row["task_id"]) for row in rows]))
    return mean_of_means(samples, generator(study, items[0].method, items[0].actor, "macro"))


def _left_out(items: Sequence[Performance], found: Sequence[Performance]) -> list[str]:
    """Environments where other methods ran with this actor and this one was skipped: a mean would hide that."""
    ran = {item.environment for item in items if not item.skipped}
    others = (item for item in found if item.actor == items[0].actor and not item.skipped)
    return sorted({item.environment for item in others} - ran)


def _metrics(study: str, items: Sequence[Performance], parts: Sequence[Group], *, partial: bool) -> dict[str, float]:
    """Metrics of one summary run; `partial` ones have no mean over environments."""
    found: dict[str, float | None] = {} if partial else dict(_named("performance_mean", macro(study, items, parts)))
    for item in items:
        place = legal_name(item.environment)
        found |= _named(f"{place}_performance", item.scored)
        found |= _named(f"{place}_avg_t", item.avg_t)
        if item.conventions_differ:
            found[f"{place}_performance_errors_zero"] = item.zeros.value
    times = [item.avg_t.value for item in items if not item.skipped]
    known = [value for value in times if value is not None]
    complete = bool(known) and len(known) == len(times) and not partial
    found["avg_t_mean"] = math.fsum(known) / len(known) if complete else None
    found["episodes_scored"] = sum(item.scored.n for item in items)
    found["episodes_errors"] = sum(item.errors for item in items)
    found["episodes_missing"] = sum(item.missing for item in items)
    return finite(found)


def _named(name: str, estimate: Estimate) -> dict[str, float | None]:
    return {name: estimate.value, f"{name}_ci_lo": estimate.low, f"{name}_ci_hi": estimate.high}


def _note(source: Tracked, items: Sequence[Performance], left_out: Sequence[str]) -> str:
    lines = [f"**{items[0].method}** with actor **{items[0].actor}**, all seeds of study {source.study}.", ""]
    warning = caption.simulated(part for item in items for part in item.simulated)
    if warning:
        lines += [f"**{warning}**", ""]
    lines += ["| environment | performance | 95% interval | n | Avg. T |", "| --- | ---: | --- | ---: | ---: |"]
    for item in items:
        scale, digits = (1.0, 3) if item.metric == "mean_reward" else (100.0, 1)
        span = item.scored.interval
        bounds = f"{span[0] * scale:.{digits}f} to {span[1] * scale:.{digits}f}" if span else "–"
        time = "–" if item.avg_t.value is None else f"{item.avg_t.value:.2f}"
        count = f"{item.scored.n} of {item.planned}"
        lines.append(f"| {item.environment} | {caption.shown(item)} | {bounds} | {count} | {time} |")
    notes = [*caption.other_convention(items), *caption.unscored(items)]
    if any(item.missing for item in items):
        notes.append(f"Incomplete: {sum(item.missing for item in items)} planned episodes are missing.")
    if left_out:
        notes.append(f"No mean over environments: skipped by the study in {', '.join(left_out)}, where others ran.")
    files = "`report.html` is the page to read, `performance.png` has the intervals, `report.md` every table."
    return "\n".join([*lines, "", *notes, "", files])


def _bars(environments: Sequence[str]) -> dict[str, list[tuple[str, str]]]:
    names = [(legal_name(name), name) for name in environments]
    performance = [("performance_mean", "Performance, mean over environments")]
    performance += [(f"{key}_performance", f"Performance, {name}") for key, name in names]
    return {
        "Performance": performance,
        "Time against Origin": [(f"{key}_avg_t", f"Avg. T, {name}") for key, name in names],
    }


def _columns(environments: Sequence[str]) -> list[str]:
    columns = ["params.method", "params.actor", "tags.cota.status"]
    columns += [f"metrics.performance_mean{tail}" for tail in ("", "_ci_lo", "_ci_hi")]
    for name in environments:
        columns += [f"metrics.{legal_name(name)}_performance", f"metrics.{legal_name(name)}_avg_t"]
    return [*columns, "metrics.episodes_scored"]
