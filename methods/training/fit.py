"""Fit: one training run with the Trainer classes of TRL and Transformers: checkpoints, selection, resume, curves.

Weights are fp32; bf16 is used for arithmetic alone, because AdamW in pure bf16 rounds the paper's small updates away.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from methods.training.settings import Settings
from methods.training.trainers import trainer_class

Progress = Callable[[int, int, Mapping[str, float]], None]
Examples = Sequence[Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Fitted:
    """The model with its best weights, and the run's record."""

    model: Any
    history: list[dict[str, Any]]
    best: float | None
    steps: int
    seconds: float
    cpu_seconds: float
    resumed: bool


@dataclass(frozen=True, slots=True)
class Job:
    """What to fit."""

    model: Any
    tokenizer: Any
    collator: Any
    train: Examples
    validation: Examples
    folder: Path
    device: str
    classifier: bool = False


def length(example: Mapping[str, Any]) -> int:
    """Tokens of a packed row."""
    return len(example["prefix"]) + sum(len(suffix) for suffix in example["suffixes"])


def _dataset(examples: Examples) -> Any:
    from datasets import Dataset

    return Dataset.from_list([{**example, "length": length(example)} for example in examples])


def steps_of(settings: Settings, rows: int) -> int:
    """Optimiser steps of a run."""
    steps = max(1, round(settings.epochs * -(-rows // settings.rows)))
    return min(steps, settings.most_steps) if settings.most_steps else steps


def fit(job: Job, settings: Settings, progress: Progress | None = None) -> Fitted:
    """Train, or go on from the last checkpoint in `job.folder`; the weights of the best evaluation are kept."""
    from transformers import PrinterCallback
    from transformers.utils import logging

    total = steps_of(settings, len(job.train))
    arguments = _arguments(job, settings, total)
    made = trainer_class(job.classifier)(
        model=job.model,
        args=_config_class(job.classifier)(**arguments),
        data_collator=job.collator,
        train_dataset=_dataset(job.train),
        eval_dataset=_dataset(job.validation) if job.validation else None,
        processing_class=job.tokenizer,
        callbacks=[_callback(progress, total)],
    )
    made.remove_callback(PrinterCallback)
    last = _last_checkpoint(job.folder)
    wall, cpu, loud = time.perf_counter(), time.process_time(), logging.get_verbosity()
    logging.set_verbosity_error()  # tied weights are not in a checkpoint twice, and it warns of that
    try:
        made.train(resume_from_checkpoint=str(last) if last else None)
    finally:
        logging.set_verbosity(loud)
    return Fitted(
        made.model,
        list(made.state.log_history),
        made.state.best_metric,
        int(made.state.global_step),
        time.perf_counter() - wall,
        time.process_time() - cpu,
        last is not None,
    )


def _bf16_pays(model: Any, cuda: bool, worth: int = 20_000_000) -> bool:
    """On a GPU; on a CPU with bf16 instructions for models past some size (SmolLM2: 1.6 times faster)."""
    import torch

    check = getattr(torch.cpu, "_is_avx512_bf16_supported", None)
    return cuda or bool(check is not None and check() and sum(p.numel() for p in model.parameters()) > worth)


def _arguments(job: Job, settings: Settings, total: int) -> dict[str, Any]:
    cuda = job.device.startswith("cuda")
    every = max(1, total // max(settings.evaluations, 1))
    arguments: dict[str, Any] = {
        "output_dir": str(job.folder),
        "max_steps": total,
        "per_device_train_batch_size": settings.rows,
        "per_device_eval_batch_size": settings.rows,
        "learning_rate": settings.learning_rate,
        "weight_decay": settings.weight_decay,
        "warmup_steps": max(1, int(settings.warmup * total)),
        "lr_scheduler_type": "cosine",
        "logging_steps": max(1, total // 40),
        "save_strategy": "steps",
        "save_steps": every,
        "save_total_limit": 2,
        "seed": settings.seed,
        "data_seed": settings.seed,
        "bf16": settings.autocast == "bf16" or (settings.autocast == "auto" and _bf16_pays(job.model, cuda)),
        "fp16": False,
        "use_cpu": not cuda,
        "activation_checkpointing": False,  # SFTConfig would turn it on and pay a second forward pass
        "gradient_checkpointing": False,
        "remove_unused_columns": False,
        "dataloader_pin_memory": cuda,
        "report_to": [],
        "disable_tqdm": True,
        "label_names": ["labels"],
        "train_sampling_strategy": "group_by_length",  # a third less padding
        "length_column_name": "length",
    }
    if job.validation:
        arguments |= {
            "eval_strategy": "steps",
            "eval_steps": every,
            "load_best_model_at_end": True,
            "metric_for_best_model": "eval_loss",
            "greater_is_better": False,
        }
    if not job.classifier:
        arguments |= {"dataset_kwargs": {"skip_prepare_dataset": True}, "max_length": None, "packing": False}
    return arguments


def _config_class(classifier: bool) -> Any:
    if classifier:
        from transformers import TrainingArguments

        return TrainingArguments
    from trl import SFTConfig

    return SFTConfig


def _callback(progress: Progress | None, total: int) -> Any:
    from transformers import TrainerCallback

    class Report(TrainerCallback):  # type: ignore[misc,unused-ignore]
        """Passes logged numbers on."""

        def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **kwargs: Any) -> None:
            if progress is not None and logs:
                numbers = {k: float(v) for k, v in logs.items() if isinstance(v, int | float)}
                progress(int(state.global_step), total, numbers)

    return Report()


def _last_checkpoint(folder: Path) -> Path | None:
    """The newest whole checkpoint; one that a killed run left half-written is passed over."""
    found = sorted(folder.glob("checkpoint-*"), key=lambda path: int(path.name.rpartition("-")[2]), reverse=True)
    needed = ("trainer_state.json", "optimizer.pt", "scheduler.pt")
    for path in found:
        if all((path / name).exists() and os.path.getsize(path / name) for name in needed):
            return path
    return None
