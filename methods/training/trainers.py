"""Trainers: what is computed in a step; everything else is TRL's `SFTTrainer` and Transformers' `Trainer`.

Both heads are applied at the answers alone.  `SFTTrainer` would project every position onto the vocabulary and then
ignore all but the letters: 70% of a step of the tiny model, half of one of SmolLM2.  The loss is the same
(`tests/training/test_trainers.py` compares them).
"""

from __future__ import annotations

from functools import cache
from typing import Any


@cache
def trainer_class(classifier: bool) -> Any:
    """The trainer of a critic or of a comparator."""
    return _critic() if classifier else _comparator()


def answer_loss(model: Any, inputs: Any) -> tuple[Any, Any]:
    """(mean cross-entropy of the letters, share answered right); labels are -100 everywhere else."""
    import torch

    labels = inputs["labels"]
    rows, columns = (labels[:, 1:] >= 0).nonzero(as_tuple=True)
    logits = model.get_output_embeddings()(_hidden(model, inputs)[rows, columns]).float()
    wanted = labels[rows, columns + 1]
    return torch.nn.functional.cross_entropy(logits, wanted), (logits.argmax(-1) == wanted).float().mean()


def value_loss(model: Any, inputs: Any) -> Any:
    """Mean soft binary cross-entropy at each suffix's last token (paper appendix B.7)."""
    import torch

    logits = model.score(_hidden(model, inputs)[inputs["rows"], inputs["columns"]])[:, 0].float()
    return torch.nn.functional.binary_cross_entropy_with_logits(logits, inputs["labels"])


def _hidden(model: Any, inputs: Any) -> Any:
    return model.base_model(
        input_ids=inputs["input_ids"],
        position_ids=inputs["position_ids"],
        attention_mask=inputs["attention_mask"],
        use_cache=False,
    ).last_hidden_state


def _comparator() -> Any:
    from trl import SFTTrainer

    class AnswerTrainer(SFTTrainer):  # type: ignore[misc,unused-ignore]
        """Supervised fine-tuning with the loss on the letter, the only token of the completion."""

        def compute_loss(
            self, model: Any, inputs: Any, return_outputs: bool = False, num_items_in_batch: Any = None
        ) -> Any:
            with self.accelerator.autocast():  # which wraps only the forward that is not called here
                loss, right = answer_loss(model, inputs)
            self._metrics["train" if model.training else "eval"]["accuracy"].append(float(right))
            return (loss, None) if return_outputs else loss

    return AnswerTrainer


def _critic() -> Any:
    import torch
    from transformers import Trainer

    class CriticTrainer(Trainer):  # type: ignore[misc,unused-ignore]
        """A sequence classifier with one output and soft targets."""

        def compute_loss(
            self, model: Any, inputs: Any, return_outputs: bool = False, num_items_in_batch: Any = None
        ) -> Any:
            with self.accelerator.autocast():
                loss = value_loss(model, inputs)
            return (loss, None) if return_outputs else loss

        def prediction_step(
            self, model: Any, inputs: Any, prediction_loss_only: bool, ignore_keys: Any = None
        ) -> tuple[Any, Any, Any]:
            inputs = self._prepare_inputs(inputs)
            with torch.no_grad(), self.compute_loss_context_manager():
                return self.compute_loss(model, inputs).detach(), None, None

    return CriticTrainer
