"""Comparator training: full-parameter fine-tuning on A/B/T letters (paper appendix B.4)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from harness.errors import UsageError
from methods.training.artefact import Artefact
from methods.training.data import (
    PAIR_COLUMNS,
    Source,
    data_hash,
    describe_pairs,
    group_pairs,
    pair_rows,
)
from methods.training.examples import PairCollator, pair_examples
from methods.training.fit import Progress
from methods.training.recipe import Recipe, train_judge
from methods.training.settings import Settings, preset


def train_comparator(
    pairs: Source,
    out: Path,
    base: str = "tiny",
    *,
    revision: str | None = None,
    settings: Settings | None = None,
    environments: Sequence[str] | None = None,
    device: str = "auto",
    progress: Progress | None = None,
) -> Artefact:
    """Train a comparator, or find it trained; the same call goes on after an interruption.

    Args:
        pairs: folder made by `cota-bench pairs`, or rows with its columns.
        out: artefact folder.
        base: `tiny` (from scratch), `smollm2`, a model folder, or a hub name.
        revision: of a hub model.
        settings: hyperparameters; the default depends on `base`.
        environments: train on these alone; None: all there are.
        device: `auto`, `cpu` or `cuda`.
        progress: called with (step, steps, numbers).

    Raises:
        UsageError: no pairs, an unknown base, or `out` holds another judge.
    """
    settings = settings or preset(base)
    train, validation = (pair_rows(pairs, split, environments) for split in ("train", "validation"))
    if not train:
        raise UsageError(
            "There are no training pairs for this comparator. Collect more tasks, or check `environments`."
        )
    recipe = Recipe(
        kind="lm",
        base=base,
        revision=revision,
        settings=settings,
        data={"train": data_hash(train, PAIR_COLUMNS), "validation": data_hash(validation, PAIR_COLUMNS)},
        card={"train": describe_pairs(train), "validation": describe_pairs(validation)},
        groups=(group_pairs(train), group_pairs(validation)),
        examples=pair_examples,
        collator=PairCollator,
        device=device,
    )
    return train_judge(recipe, out, progress)
