"""Comparator: a language model that answers A, B or T, read off its logits (paper section 3.2, appendix B.4).

All pairs of a question are one forward pass behind the shared state; nothing is generated.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, cast

from harness.protocols import Question
from harness.records import Action, Ballot, Label, Usage
from methods.judges.local import LocalJudge, Scored


class LocalComparator(LocalJudge):
    """Comparator: a local language model reads A/B/T logits over a shared state (trained or as it comes).

    Args:
        model: artefact folder, `smollm2`, or a hub name such as `Qwen/Qwen2.5-0.5B-Instruct`.
        revision: of a hub model.
        max_tokens: longest prompt; longer states lose their middle, and the ballot says so.
        dtype, device: `auto` is bfloat16 on a GPU, float32 on the CPU.
        prompt_file: a user's own wording (YAML with the fields of `Prompt`), or `full` or `focused`.
        ab_only: the two-letter target of the paper's table 9: T is no answer.
        strict: an answer is valid only when the letter is what the model would say, of all its vocabulary; otherwise
            the best of the letters counts.
        memory_mb: bound on kept keys and values; by default 512 on a CPU, 4096 on a GPU.
        batch_tokens: bound on a forward pass that several episodes' questions share; 0: none do. By default they do on
            a GPU.
    """

    kind = "lm"
    preset = "full"
    # K=4: four comparisons and about two of the other order (paper table 11: 9,700 tokens a step).
    estimate: ClassVar[Mapping[str, float]] = {"calls": 6, "prompt": 9600, "seconds": 0.2}

    def __init__(
        self,
        model: str,
        revision: str | None = None,
        max_tokens: int = 3072,
        dtype: str = "auto",
        device: str = "auto",
        prompt_file: str | None = None,
        ab_only: bool = False,
        strict: bool = True,
        memory_mb: float | None = None,
        batch_tokens: int | None = None,
    ) -> None:
        super().__init__(model, revision, max_tokens, dtype, device, prompt_file, memory_mb, batch_tokens)
        self.ab_only = ab_only
        self.strict = strict

    def compare(self, question: Question, pairs: Sequence[tuple[Action, Action]]) -> Sequence[Ballot]:
        """One ballot a pair; `text` holds the label's probability among the letters, and tokens cut if any."""
        return self.compare_texts(question.view, [(a.text, b.text) for a, b in pairs], question.deadline)

    def compare_texts(self, view: str, pairs: Sequence[tuple[str, str]], deadline: float | None = None) -> list[Ballot]:
        """`compare` for a rendered view and action texts."""
        if not pairs:
            return []
        scored = self._pairs(view, pairs, deadline)
        return [self._ballot(scored, i) for i in range(len(pairs))]

    def logits(self, view: str, pairs: Sequence[tuple[str, str]]) -> Any:
        """(pairs, 3) fp32 logits of A, B and T."""
        return self._pairs(view, pairs).outputs[:, list(self.load().encoder.letters())]

    def _pairs(self, view: str, pairs: Sequence[tuple[str, str]], deadline: float | None = None) -> Scored:
        return self._score(view, lambda encoder: [encoder.pair(view, a, b) for a, b in pairs], deadline)

    def _ballot(self, scored: Scored, index: int) -> Ballot:
        letters = self.load().encoder.letters()[: 2 if self.ab_only else 3]
        row: Any = scored.outputs[index]
        usage: Usage = scored.usages[index]
        logits = row[list(letters)]
        best = int(logits.argmax())
        text = f"p={float(logits.softmax(0)[best]):.3f}" + (f" cut={scored.cut}" if scored.cut else "")
        if not bool(logits.isfinite().all()):
            return Ballot(None, "not_finite", "", usage)
        if self.strict and int(row.argmax()) not in letters:
            return Ballot(None, "invalid_output", text, usage)
        return Ballot(cast(Label, "ABT"[best]), None, text, usage)
