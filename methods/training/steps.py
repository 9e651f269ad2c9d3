"""Steps: what is done for one recipe, each found when it was done before, resumed when it was interrupted.

Branches, pairs, a judge, its diagnostics.  Each shows how far it is on standard error, and keeps what is finished when
it is stopped.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from harness.errors import UsageError
from harness.progress import Steps, Units
from methods.branching.collect import Collected, collect
from methods.branching.pair_counts import PairCounts
from methods.branching.pairs import make_pairs
from methods.training.studyrecipe import Judge, Prepared
from methods.training.turn import turn

Say = Callable[[str], None]
SHOWN = ("loss", "eval_loss", "accuracy")


def collected(one: Prepared, say: Say = print) -> Collected:
    """The recipe's branches, collected now or found.

    Raises:
        UsageError: units failed (how many, and why). While another process is collecting the same this one waits.
    """
    with turn(one.branches, f"{one.label}/branches", say), Units(f"{one.label}: branches") as shown:
        made = collect(one.spec, one.branches, one.throughput, shown)
    if not made.complete:
        reasons = "; ".join(f"{n} x {reason}" for reason, n in made.reasons.items())
        raise UsageError(f"{one.label}: {made.statuses.get('failed')} branch units failed ({reasons}). Run it again.")
    there, asked = made.planned // one.recipe.trajectories, one.recipe.tasks
    if there < asked:
        say(f"{one.label}: {asked} tasks are asked for, and split {one.recipe.split!r} has {there} from there on")
    counts = made.card.get("counts", {})
    say(f"{one.label}: {made.planned} branch units, {counts.get('points', 0)} verified points, kept in {one.branches}")
    return made


def paired(one: Prepared, say: Say = print) -> PairCounts:
    """The recipe's pairs, made anew from its branches (seconds)."""
    recipe = one.recipe
    margins = {} if recipe.margin is None else {one.spec.environment.plugin: recipe.margin}
    with turn(one.pairs, f"{one.label}/pairs", say), Steps(f"{one.label}: prefix groups paired") as shown:
        counts = make_pairs(
            [one.branches],
            one.pairs,
            margins=margins,
            tie_share=recipe.tie_share,
            seed=recipe.seed,
            ab_only=recipe.ab_only,
            progress=shown,
        )
    for row in counts.table4():
        say(f"{one.label}: pairs {', '.join(f'{key} {value}' for key, value in row.items())}")
    return counts


def train(one: Prepared, judge: Judge, say: Say = print) -> Path:
    """One judge of the recipe, trained now or found; while another process is training it, this one waits."""
    from methods.training.critic import train_critic
    from methods.training.sft import train_comparator

    settings = one.settings(judge)
    if settings is None:
        raise UsageError(f"training.{one.label} leaves the {judge} out; write `{judge}: {{}}` to train it.")
    fit = train_comparator if judge == "comparator" else train_critic
    began = time.monotonic()
    out = one.folder / judge
    with turn(out, f"{one.label}/{judge}", say), Steps(f"{one.label}/{judge}: training steps") as bar:

        def shown(step: int, steps: int, numbers: Mapping[str, float]) -> None:
            bar(step, steps, {name: value for name, value in numbers.items() if name in SHOWN})

        made = fit(one.pairs, out, one.recipe.base, revision=one.recipe.revision, settings=settings, progress=shown)
    how = f"trained in {time.monotonic() - began:.0f} s, kept" if made.fresh else "found"
    say(f"{one.label}/{judge}: {how} in {out}")
    return out


def evaluated(
    one: Prepared,
    judge: Judge,
    say: Say = print,
    split: str = "test",
    again: bool = False,
    on: Prepared | None = None,
) -> dict[str, Any]:
    """Diagnostics of a trained judge on held-out pairs, made now or found beside it.

    Args:
        one: the judge's recipe.
        judge: which of its judges.
        say: where lines about it go.
        split: of the pairs.
        again: make them anew.
        on: another recipe, on whose pairs the judge is asked; its own when None.
    """
    from methods.training.diagnostics import evaluate_judge, remembered

    folder, name, pairs = one.folder / judge, asked_on(split, on), (on or one).pairs
    found = None if again else remembered(folder, name)
    if found is not None:
        return found
    if not (pairs / f"{split}.parquet").exists():
        collected(on or one, say)
        paired(on or one, say)
    with Steps(f"{one.label}/{judge}: {name} states scored") as shown:
        return evaluate_judge(folder, pairs, split, progress=shown, name=name)


def asked_on(split: str, on: Prepared | None) -> str:
    """The name that diagnostics on another recipe's pairs are kept under."""
    return split if on is None else f"{split} of {on.hash[:16]}"
