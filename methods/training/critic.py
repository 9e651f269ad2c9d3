"""Critic training: a sequence classifier with soft BCE on discounted outcomes (paper appendix B.7)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from harness.errors import UsageError
from methods.training.artefact import Artefact
from methods.training.data import (
    CRITIC_COLUMNS,
    Source,
    critic_rows,
    data_hash,
    describe_targets,
    group_targets,
)
from methods.training.examples import TargetCollator, target_examples
from methods.training.fit import Progress
from methods.training.recipe import Recipe, train_judge
from methods.training.settings import Settings, critic_preset


def train_critic(
    records: Source,
    out: Path,
    base: str = "tiny",
    *,
    revision: str | None = None,
    settings: Settings | None = None,
    environments: Sequence[str] | None = None,
    device: str = "auto",
    progress: Progress | None = None,
) -> Artefact:
    """Train a critic, or find it trained; arguments and errors as for `train_comparator`."""
    settings = settings or critic_preset(base)
    train, validation = (critic_rows(records, split, environments) for split in ("train", "validation"))
    if not train:
        raise UsageError("There are no records for this critic. Collect more tasks, or check `environments`.")
    recipe = Recipe(
        kind="classifier",
        base=base,
        revision=revision,
        settings=settings,
        data={"train": data_hash(train, CRITIC_COLUMNS), "validation": data_hash(validation, CRITIC_COLUMNS)},
        card={"train": describe_targets(train), "validation": describe_targets(validation)},
        groups=(group_targets(train, settings.gamma), group_targets(validation, settings.gamma)),
        examples=target_examples,
        collator=TargetCollator,
        device=device,
    )
    return train_judge(recipe, out, progress)
