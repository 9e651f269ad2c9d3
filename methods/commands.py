"""Commands of the advisors: collect, pairs, train, evaluate-judge, diversity, audit.

Light to import; the work is imported when run.  All of them show how far they are on standard error, keep what is
finished when they are stopped, and go on by the same command.  What they measure goes to `measures/` in the study's
results folder (`harness.measures`).
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from harness.errors import UsageError, nearest

if TYPE_CHECKING:
    from harness.study import Study
    from methods.training.studyrecipe import Prepared

STUDY = Annotated[str, typer.Argument(help="Name of a study in experiments/ or path of a YAML file.")]
RECIPE = Annotated[str | None, typer.Argument(help="A label under the study's `training:`; default: all of them.")]
RESULTS = Annotated[Path, typer.Option(help="Folder that holds one folder a study; measures go there.")]
TRACKING = Annotated[
    str | None,
    typer.Option(envvar="MLFLOW_TRACKING_URI", help="MLflow store; default: SQLite inside the results folder."),
]
NO_TRACKING = Annotated[bool, typer.Option("--no-tracking", help="Log nothing to MLflow.")]
DEFAULT_RESULTS = Path("results")


def _say(text: str) -> None:
    print(text, file=sys.stderr)


def _chosen(name: str, recipe: str | None) -> tuple[Study, list[Prepared]]:
    from harness.study import load_study
    from methods.training.studyrecipe import recipes

    study = load_study(name)
    known = recipes(study)
    if not known:
        raise UsageError(f"The study {name!r} has no `training:` section, so there is nothing to collect or to train.")
    if recipe is None:
        return study, list(known.values())
    if recipe not in known:
        raise UsageError(f"No recipe is called {recipe!r} in {name!r}.{nearest(recipe, known)}")
    return study, [known[recipe]]


def _measured(study: Study, results: Path, command: str) -> None:
    from methods.training.measured import write_measures

    folder = results / study.study
    names = write_measures(study, folder, f"cota-bench {command} {study.study}")
    print(f"measures {', '.join(names)}: {folder / 'measures'}")


def collect(study: STUDY, recipe: RECIPE = None, results: RESULTS = DEFAULT_RESULTS) -> None:
    """Collect same-prefix branches for a study's recipes, into the cache. Resumes."""
    from harness.interrupt import stoppable
    from methods.training.steps import collected

    loaded, chosen = _chosen(study, recipe)
    with stoppable(_say, "collection"):
        for one in chosen:
            made = collected(one, lambda _: None)
            card = made.card
            print(f"{one.label}: {made.planned} units, {made.statuses}; counts {card.get('counts')}")
            print(f"  verified {card.get('verified_share')}; seconds {card.get('seconds')}; {made.folder}")
    _measured(loaded, results, "collect")


def pairs(study: STUDY, recipe: RECIPE = None, results: RESULTS = DEFAULT_RESULTS) -> None:
    """Make comparator pairs and critic records from collected branches (Table 4), in the cache."""
    from harness.interrupt import stoppable
    from methods.training.steps import collected, paired

    loaded, chosen = _chosen(study, recipe)
    with stoppable(_say, "pairing"):
        for one in chosen:
            collected(one, _say)
            counts = paired(one, lambda _: None)
            for row in counts.table4():
                print(f"{one.label}: {', '.join(f'{key} {value}' for key, value in row.items())}")
            for warning in counts.warnings():
                print(f"  warning: {warning}")
            print(f"  {one.pairs}")
    _measured(loaded, results, "pairs")


def train(
    judge: Annotated[str, typer.Argument(help="comparator or critic")],
    study: STUDY,
    recipe: RECIPE = None,
    results: RESULTS = DEFAULT_RESULTS,
    tracking_uri: TRACKING = None,
    no_tracking: NO_TRACKING = False,
) -> None:
    """Train the comparator or the critic of a study's recipes, in the cache, evaluate and log it. Resumes."""
    from harness.interrupt import stoppable
    from harness.tracking.client import resolve_uri
    from methods.training import steps
    from methods.training.logging import log_softly
    from methods.training.studyrecipe import JUDGES

    if judge not in JUDGES:
        raise UsageError(f"Unknown judge {judge!r}.{nearest(judge, JUDGES)}")
    loaded, chosen = _chosen(study, recipe)
    with stoppable(_say, "training"):
        for one in chosen:
            if one.settings(judge) is None and recipe is None:
                print(f"{one.label}: its recipe leaves the {judge} out")
                continue
            if not one.trained(judge):
                steps.collected(one, _say)
                steps.paired(one, _say)
            folder = steps.train(one, judge, _say) if not one.trained(judge) else one.folder / judge
            steps.evaluated(one, judge, _say)
            print(f"{one.label}/{judge}: {folder}")
            if not no_tracking:
                log_softly(folder, resolve_uri(tracking_uri, results), _say)
    _measured(loaded, results, "train")


def evaluate_judge(
    study: STUDY,
    recipe: RECIPE = None,
    split: Annotated[str, typer.Option(help="train, validation or test pairs.")] = "test",
    results: RESULTS = DEFAULT_RESULTS,
    out: Annotated[Path | None, typer.Option(help="Write the numbers as JSON to this file.")] = None,
    again: Annotated[bool, typer.Option("--again", help="Evaluate anew what was evaluated before.")] = False,
) -> None:
    """Diagnose trained judges: accuracy, order consistency, valid outputs, calibration; ranking, Spearman, BCE."""
    import json

    from harness.interrupt import stoppable
    from methods.training.steps import evaluated
    from methods.training.studyrecipe import JUDGES, recipes, sibling

    splits = ("train", "validation", "test")
    if split not in splits:
        raise UsageError(f"Unknown split {split!r}.{nearest(split, splits)}")
    loaded, chosen = _chosen(study, recipe)
    with stoppable(_say, "evaluation"):
        found = {
            f"{one.label}/{judge}": evaluated(one, judge, _say, split, again)
            for one in chosen
            for judge in JUDGES
            if one.trained(judge)
        }
        known = recipes(loaded)
        for one in chosen:
            other = sibling(one, known)
            if other is not None and one.trained("comparator"):
                evaluated(one, "comparator", _say, split, again, other)
    if not found:
        raise UsageError(f"No judge of {study!r} is trained yet. Train them: cota-bench run {study}")
    for name, numbers in found.items():
        print(name)
        for environment, values in numbers.items():
            for key, value in values.items():
                print(f"  {environment} {key}: {value}")
    if out is not None:
        try:
            out.write_text(json.dumps(found, indent=2), encoding="utf-8")
        except OSError as error:
            raise UsageError(f"--out {out} cannot be written: {error.strerror}. Name another file.") from error
    _measured(loaded, results, "evaluate-judge")


def diversity(study: STUDY, results: RESULTS = DEFAULT_RESULTS) -> None:
    """Count distinct actions at prefixes of a study's branches: actor samples against candidates. Resumes."""
    from harness.interrupt import stoppable
    from harness.study import load_study
    from methods.training.diversity import measured_diversity, wanted
    from methods.training.prepare import prepare

    loaded = load_study(study)
    wanted(loaded)  # says what is wrong before anything is collected
    with stoppable(_say, "the diversity measurement"):
        ready = prepare(loaded, say=_say)
        folder = results / loaded.study
        rows = measured_diversity(loaded, ready, folder, f"cota-bench diversity {loaded.study}", _say)
    for row in rows:
        mean, share = row["distinct_actions_mean"], row["unique_action_utilization_pct"]
        shown = "-" if mean is None or share is None else f"{float(mean):.2f} distinct, {float(share):.1f}% of them"
        print(
            f"{row['environment']}, {row['actor']}, {row['sampler']} x {row['samples_per_prefix']}: {shown}; "
            f"{row['prefixes_collapsed_to_one']} of {row['prefixes']} prefixes collapse to one"
        )
    print(f"measure diversity: {folder / 'measures'}")


def audit(
    study: STUDY,
    results: Annotated[Path, typer.Option(help="Root of all results.")] = DEFAULT_RESULTS,
    fired: Annotated[int, typer.Option(min=0, help="Audited interventions a method, actor and environment.")] = 40,
    quiet: Annotated[int, typer.Option(min=0, help="Audited reviews without one, for the gate's recall.")] = 40,
    continuations: Annotated[int, typer.Option(min=1, help="M, rollouts an action.")] = 4,
    seed: Annotated[int, typer.Option(help="Chooses the sample.")] = 0,
    out: Annotated[Path | None, typer.Option(help="Default: `audit` in the study's results folder.")] = None,
) -> None:
    """Audit a finished study's interventions: was the advice better, did replans help, was the gate right? Resumes."""
    from harness.interrupt import stoppable
    from harness.progress import Units
    from harness.run import status
    from harness.scheduler import resolve_here
    from harness.study import load_study
    from methods.branching.audit import AuditSpec
    from methods.branching.audit import audit as run_audit
    from methods.branching.spec import Throughput
    from methods.training.prepare import prepare

    if fired + quiet == 0:
        raise UsageError("--fired 0 --quiet 0: nothing would be audited. Give one of them at least 1.")
    if out is not None and out.exists() and not out.is_dir():
        raise UsageError(f"--out {out}: a file is there already; name a folder.")
    loaded = prepare(load_study(study), dry=True, say=_say)
    plan, _ = status(loaded, results)
    folder = results / loaded.study
    spec = AuditSpec(fired=fired, quiet=quiet, continuations=continuations, seed=seed)
    backend, workers = resolve_here(loaded.throughput)
    throughput = Throughput(workers=workers, backend=backend)
    with stoppable(_say, "the audit"), Units(f"{loaded.study}: audited episodes") as shown:
        report = run_audit(loaded, plan, folder, out or folder / "audit", spec, throughput, shown)
    print(report.text)
    if report.failed:
        raise typer.Exit(1)
