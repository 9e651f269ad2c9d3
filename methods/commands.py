"""Commands of the advisors: collect, pairs, train, evaluate-judge. Light to import; the work is imported when run."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from harness.errors import UsageError, nearest

if TYPE_CHECKING:
    from methods.training.prepare import Prepared

STUDY = Annotated[str, typer.Argument(help="Name of a study in experiments/ or path of a YAML file.")]
RECIPE = Annotated[str | None, typer.Argument(help="A label under the study's `training:`; default: all of them.")]


def _say(text: str) -> None:
    print(text, file=sys.stderr)


def _chosen(study: str, recipe: str | None) -> list[Prepared]:
    from harness.study import load_study
    from methods.training.prepare import recipes

    known = recipes(load_study(study))
    if not known:
        raise UsageError(f"The study {study!r} has no `training:` section, so there is nothing to collect or to train.")
    if recipe is None:
        return list(known.values())
    if recipe not in known:
        raise UsageError(f"No recipe is called {recipe!r} in {study!r}.{nearest(recipe, known)}")
    return [known[recipe]]


def collect(study: STUDY, recipe: RECIPE = None) -> None:
    """Collect same-prefix branches for a study's recipes, into the cache (no results folder). Resumes."""
    from methods.training.prepare import collected

    for one in _chosen(study, recipe):
        made = collected(one, _say)
        card = made.card
        print(f"{one.label}: {made.planned} units, {made.statuses}; counts {card.get('counts')}")
        print(f"  verified {card.get('verified_share')}; seconds {card.get('seconds')}; {made.folder}")


def pairs(study: STUDY, recipe: RECIPE = None) -> None:
    """Make comparator pairs and critic records from collected branches (Table 4), in the cache (no results folder)."""
    from methods.training.prepare import collected, paired

    for one in _chosen(study, recipe):
        collected(one, _say)
        counts = paired(one, lambda _: None)
        for row in counts.table4():
            print(f"{one.label}: {', '.join(f'{key} {value}' for key, value in row.items())}")
        for warning in counts.warnings():
            print(f"  warning: {warning}")
        print(f"  {one.folder / 'pairs'}")


def train(
    judge: Annotated[str, typer.Argument(help="comparator or critic")],
    study: STUDY,
    recipe: RECIPE = None,
    tracking_uri: Annotated[
        str | None, typer.Option(envvar="MLFLOW_TRACKING_URI", help="Log the training to this MLflow store.")
    ] = None,
) -> None:
    """Train the comparator or the critic of a study's recipes, in the cache (no results folder). Resumes."""
    from methods.training import prepare

    if judge not in prepare.JUDGES:
        raise UsageError(f"Unknown judge {judge!r}.{nearest(judge, prepare.JUDGES)}")
    for one in _chosen(study, recipe):
        prepare.collected(one, _say)
        prepare.paired(one, _say)
        folder = prepare.train(one, judge, _say)
        print(f"{one.label}/{judge}: {folder}")
        if tracking_uri is not None:
            from methods.training.logging import log_training

            log_training(folder, tracking_uri)


def evaluate_judge(
    study: STUDY,
    recipe: RECIPE = None,
    split: Annotated[str, typer.Option(help="train, validation or test pairs.")] = "test",
    out: Annotated[Path | None, typer.Option(help="Write the numbers as JSON to this file.")] = None,
) -> None:
    """Diagnose trained judges: accuracy, order consistency, valid outputs, calibration; ranking, Spearman, BCE."""
    import json

    from methods.training.diagnostics import evaluate_judge as evaluate
    from methods.training.prepare import JUDGES

    found = {}
    for one in _chosen(study, recipe):
        for judge in JUDGES:
            if one.trained(judge):
                found[f"{one.label}/{judge}"] = evaluate(one.folder / judge, one.folder / "pairs", split=split)
    if not found:
        raise UsageError(f"No judge of {study!r} is trained yet. Train them: cota-bench run {study}")
    for name, numbers in found.items():
        print(name)
        for key, value in numbers.items():
            print(f"  {key}: {value}")
    if out is not None:
        out.write_text(json.dumps(found, indent=2), encoding="utf-8")


def audit(
    study: STUDY,
    results: Annotated[Path, typer.Option(help="Root of all results.")] = Path("results"),
    fired: Annotated[int, typer.Option(min=0, help="Audited interventions a method, actor and environment.")] = 40,
    quiet: Annotated[int, typer.Option(min=0, help="Audited reviews without one, for the gate's recall.")] = 40,
    continuations: Annotated[int, typer.Option(min=1, help="M, rollouts an action.")] = 4,
    seed: Annotated[int, typer.Option(help="Chooses the sample.")] = 0,
    out: Annotated[Path | None, typer.Option(help="Default: `audit` in the study's results folder.")] = None,
) -> None:
    """Audit a finished study's interventions: was the advice better, did replans help, was the gate right? Resumes."""
    from harness.run import status
    from harness.scheduler import resolve_here
    from harness.study import load_study
    from methods.branching.audit import AuditSpec
    from methods.branching.audit import audit as run_audit
    from methods.branching.spec import Throughput
    from methods.training.prepare import prepare

    loaded = prepare(load_study(study), dry=True, say=_say)
    plan, _ = status(loaded, results)
    folder = results / loaded.study
    spec = AuditSpec(fired=fired, quiet=quiet, continuations=continuations, seed=seed)
    backend, workers = resolve_here(loaded.throughput)
    throughput = Throughput(workers=workers, backend=backend)

    def progress(done: int, total: int, _: object) -> None:
        if done % 10 == 0 or done == total:
            _say(f"audited {done}/{total} episodes")

    report = run_audit(loaded, plan, folder, out or folder / "audit", spec, throughput, progress)
    print(report.text)
    if report.failed:
        raise typer.Exit(1)
