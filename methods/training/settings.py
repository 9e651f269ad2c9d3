"""Settings of a training run: what decides the weights that come out, with defaults for each size of base model."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from harness.errors import UsageError, nearest

RECIPE = 5  # raised by hand when code changes what comes out of the same settings
Autocast = Literal["auto", "none", "bf16"]


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
        """A copy with changes. Raises `UsageError` for an unknown name."""
        for key in changes:
            if key not in asdict(self):
                raise UsageError(f"Unknown training setting {key!r}.{nearest(key, asdict(self))}")
        return replace(self, **changes)


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
