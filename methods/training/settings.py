"""Settings of a training run: what decides the weights that come out, with defaults for each size of base model."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Final, Literal, get_args

from harness.errors import UsageError, nearest

RECIPE = 5  # raised by hand when code changes what comes out of the same settings
Autocast = Literal["auto", "none", "bf16"]
# (what is needed, whole numbers only, lowest, highest); lowest and highest are allowed themselves.
NUMBERS: Final[Mapping[str, tuple[str, bool, float, float]]] = {
    "epochs": ("a number above 0", False, 1e-9, 1e6),
    "learning_rate": ("a number above 0 and at most 1", False, 1e-12, 1.0),
    "warmup": ("a number from 0 to 1", False, 0.0, 1.0),
    "weight_decay": ("a number from 0 to 1", False, 0.0, 1.0),
    "rows": ("a whole number from 1 on", True, 1, math.inf),
    "per_row": ("a whole number from 1 on", True, 1, math.inf),
    "max_tokens": ("a whole number from 16 on", True, 16, math.inf),
    "evaluations": ("a whole number from 0 on", True, 0, math.inf),
    "seed": ("a whole number from 0 on", True, 0, 2**32 - 1),
    "gamma": ("a number from 0 to 1", False, 0.0, 1.0),
    "most_steps": ("a whole number from 1 on, or null", True, 1, math.inf),
}


@dataclass(frozen=True, slots=True)
class Settings:
    """Hyperparameters.

    Attributes:
        epochs, learning_rate, warmup, weight_decay: as usual; cosine schedule, AdamW, fp32 weights.
        rows: packed rows in an optimiser step.
        per_row: questions that share one run of their view; 1 is ordinary fine-tuning with separate prompts.
        max_tokens: longest state in tokens; longer ones lose their middle as they do in scoring.
        prompt: a preset of `methods.judges.prompt` or a user's own file.
        evaluations: how often in the whole run the validation split is scored and a checkpoint written.
        autocast: bf16 arithmetic over the fp32 weights; auto: where it is faster (GPU, or CPU with bf16 instructions).
        seed: order of the data and, for a model from scratch, its weights.
    """

    epochs: float = 3.0
    learning_rate: float = 2e-5
    warmup: float = 0.05
    weight_decay: float = 0.01
    rows: int = 8
    per_row: int = 8
    max_tokens: int = 2048
    prompt: str = "full"
    evaluations: int = 6
    autocast: Autocast = "auto"
    seed: int = 0
    gamma: float = 0.95
    most_steps: int | None = None

    def changed(self, **changes: Any) -> Settings:
        """A copy with changes. Raises `UsageError` for an unknown name or a value that cannot be."""
        for key, value in changes.items():
            if key not in asdict(self):
                raise UsageError(f"Unknown training setting {key!r}.{nearest(key, asdict(self))}")
            _check(key, value)
        return replace(self, **changes)


def _check(key: str, value: Any) -> None:
    """Found here, and not hours later when branches and pairs are there and the training starts."""
    if key == "autocast" and value not in get_args(Autocast):
        raise UsageError(f"autocast: unknown value {value!r}.{nearest(str(value), get_args(Autocast))}")
    if key == "prompt" and not isinstance(value, str):
        raise UsageError(f"prompt: a name or a file is needed, not {value!r}.")
    if key not in NUMBERS or (key == "most_steps" and value is None):
        return
    needed, whole, low, high = NUMBERS[key]
    number = isinstance(value, int if whole else int | float) and not isinstance(value, bool)
    if not number or not low <= value <= high:
        raise UsageError(f"{key}: {needed} is needed, not {value!r}.")


PRESETS: dict[str, Settings] = {
    "tiny": Settings(epochs=6, learning_rate=3e-3, rows=8, prompt="focused", max_tokens=512, evaluations=8),
    "smollm2": Settings(epochs=3, learning_rate=5e-5, rows=4, max_tokens=1024),
    "large": Settings(),
}


CRITIC_PRESETS: dict[str, Settings] = {
    "tiny": PRESETS["tiny"].changed(per_row=6),
    "smollm2": PRESETS["smollm2"].changed(prompt="critic"),
    "large": PRESETS["large"].changed(prompt="critic"),
}


def critic_preset(base: str) -> Settings:
    """Defaults for a critic on a base model by its name."""
    return CRITIC_PRESETS.get(base, CRITIC_PRESETS["large"])


def preset(base: str) -> Settings:
    """Defaults for a base model by its name."""
    return PRESETS.get(base, PRESETS["large"])
