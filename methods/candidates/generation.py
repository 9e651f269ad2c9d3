"""Generation on this machine: several short continuations of one shared prompt, seeded, without global randomness.

The prompts of one draw share their beginning (rules and state) and differ in how the answer was begun (the decision
mode), so the beginning is run through the model once and its cache is repeated for the batch.  Sampling uses a
generator of its own, so that threads cannot disturb each other and the same seed gives the same text.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Protocol

from harness.models.local import local_model
from harness.models.sampling import row_noise
from harness.records import Usage
from harness.seeds import seed_of

BATCH = 16


@dataclass(frozen=True, slots=True)
class Generated:
    """Texts in the order of the prompts, and what they cost; the shared beginning is counted once."""

    texts: tuple[str, ...]
    usage: Usage


class Samples(Protocol):
    """What samples short texts: a model here, or one behind an endpoint."""

    def sample(
        self, system: str, user: str, leads: Sequence[str], seed: int, tokens: int, temperature: float, top_p: float
    ) -> Generated:
        """One sampled line for each lead."""


class Generator:
    """A causal language model with its tokenizer, for sampling short texts."""

    def __init__(self, model: Any, tokenizer: Any, limit: int = 2048) -> None:
        self.model = model
        self.tokenizer = tokenizer
        self.limit = limit
        # Older versions of transformers call it otherwise.
        self._slot = "cache" if "cache" in inspect.signature(model.forward).parameters else "past_key_values"

    def sample(
        self, system: str, user: str, leads: Sequence[str], seed: int, tokens: int, temperature: float, top_p: float
    ) -> Generated:
        """One sampled line for each lead.

        Args:
            system: system message.
            user: user message.
            leads: beginnings of the answer, each continued on its own.
            seed: decides every draw.
            tokens: at most so many new tokens each.
            temperature: above 0.
            top_p: nucleus.
        """
        import torch

        beginning = self._encode(system, user)
        rows = [beginning + self._ids(lead) for lead in leads]
        shared = _common(rows)
        with torch.inference_mode():
            cache, last = self._prefill(rows, shared)
            texts, spent = self._decode(cache, last, len(rows), seed, tokens, temperature, top_p)
        prompt = shared + sum(len(row) - shared for row in rows)
        return Generated(tuple(texts), Usage(calls=1, prompt=prompt, completion=spent))

    def _encode(self, system: str, user: str) -> list[int]:
        chat = [{"role": "system", "content": system}, {"role": "user", "content": user}]
        text = self.tokenizer.apply_chat_template(chat, tokenize=False, add_generation_prompt=True)
        ids = self._ids(text)
        if len(ids) > self.limit:  # keep the rules at the beginning and the state's latest part
            ids = ids[: self.limit // 4] + ids[len(ids) - (self.limit - self.limit // 4) :]
        return ids

    def _ids(self, text: str) -> list[int]:
        ids: list[int] = self.tokenizer(text, add_special_tokens=False)["input_ids"]
        return ids

    def _prefill(self, rows: Sequence[Sequence[int]], shared: int) -> tuple[Any, Any]:
        """(cache of all rows, state after them): the shared beginning once, the rests as one left-padded batch."""
        import torch
        from transformers import DynamicCache

        cache: Any = DynamicCache(config=self.model.config)
        place = self.model.device
        self._run(cache, input_ids=torch.tensor([list(rows[0][:shared])], device=place))
        cache.batch_repeat_interleave(len(rows))
        rests = [list(row[shared:]) for row in rows]
        width = max(map(len, rests))
        pad = self.tokenizer.pad_token_id or 0
        ids = torch.tensor([[pad] * (width - len(rest)) + rest for rest in rests], device=place)
        masks = [[1] * shared + [0] * (width - len(rest)) + [1] * len(rest) for rest in rests]
        mask = torch.tensor(masks, device=place)
        places = (mask.cumsum(-1) - 1).clamp(min=0)[:, shared:]
        logits = self._run(cache, input_ids=ids, attention_mask=mask, position_ids=places)
        return cache, (logits, mask, places[:, -1:])

    def _run(self, cache: Any, **inputs: Any) -> Any:
        """Logits of the last position of each row; the cache grows."""
        return self.model(**inputs, **{self._slot: cache}, use_cache=True).logits[:, -1]

    def _decode(
        self, cache: Any, last: Any, rows: int, seed: int, tokens: int, temperature: float, top_p: float
    ) -> tuple[list[str], int]:
        import torch

        noise = row_noise([seed_of(seed=seed, row=row) for row in range(rows)], temperature, top_p)
        logits, mask, place = last
        ended = [False] * rows
        written: list[list[int]] = [[] for _ in range(rows)]
        spent = 0
        for _ in range(tokens):
            chosen = noise(None, logits).argmax(-1, keepdim=True)
            for row, token in enumerate(chosen.flatten().tolist()):
                if ended[row]:
                    continue
                spent += 1
                written[row].append(token)
                ended[row] = self._stops(written[row])
            if all(ended):
                break
            mask = torch.cat([mask, mask.new_ones((rows, 1))], -1)
            place = place + 1
            logits = self._run(cache, input_ids=chosen, attention_mask=mask, position_ids=place)
        return [self._text(row) for row in written], spent

    def _stops(self, ids: Sequence[int]) -> bool:
        return ids[-1] == self.tokenizer.eos_token_id or "\n" in self._text(ids, first_line=False).lstrip()

    def _text(self, ids: Sequence[int], first_line: bool = True) -> str:
        text: str = self.tokenizer.decode(ids, skip_special_tokens=True)
        return text.strip().partition("\n")[0].strip() if first_line else text


def _common(rows: Sequence[Sequence[int]]) -> int:
    """Length of the common beginning, at least one token short of the shortest row, and at least 1."""
    length = min(map(len, rows)) - 1
    for at in range(length):
        if any(row[at] != rows[0][at] for row in rows):
            return max(1, at)
    return max(1, length)


@lru_cache(maxsize=2)
def generator(model: str, revision: str | None, device: str, dtype: str) -> Generator:
    """The generator of a model, loaded once a process and shared with local actors of the same settings.

    Raises:
        UsageError: no such model, or the models extra is missing.
    """
    found = local_model(model, revision, device, dtype, BATCH)
    return Generator(found.model, found.tokenizer)
