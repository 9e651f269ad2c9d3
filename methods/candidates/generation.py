"""Generation on this machine: several short continuations of one shared prompt, seeded, without global randomness.

The prompts of one draw share their beginning (rules and state) and differ in how the answer was begun (the decision
mode), so the beginning is run through the model once and its cache is repeated for the batch.  Sampling uses a
generator of its own, so that threads cannot disturb each other and the same seed gives the same text.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Protocol

from harness.records import Usage

_LOCK = threading.Lock()


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
        self.model(input_ids=torch.tensor([list(rows[0][:shared])]), cache=cache, use_cache=True)
        cache.batch_repeat_interleave(len(rows))
        rests = [list(row[shared:]) for row in rows]
        width = max(map(len, rests))
        pad = self.tokenizer.pad_token_id or 0
        ids = torch.tensor([[pad] * (width - len(rest)) + rest for rest in rests])
        mask = torch.tensor([[1] * shared + [0] * (width - len(rest)) + [1] * len(rest) for rest in rests])
        places = (mask.cumsum(-1) - 1).clamp(min=0)[:, shared:]
        out = self.model(
            input_ids=ids, attention_mask=mask, position_ids=places, cache=cache, use_cache=True
        )
        return cache, (out.logits[:, -1], mask, places[:, -1:])

    def _decode(
        self, cache: Any, last: Any, rows: int, seed: int, tokens: int, temperature: float, top_p: float
    ) -> tuple[list[str], int]:
        import torch

        chance = torch.Generator().manual_seed(seed)
        logits, mask, place = last
        ended = [False] * rows
        written: list[list[int]] = [[] for _ in range(rows)]
        spent = 0
        for _ in range(tokens):
            chosen = _nucleus(logits.float() / temperature, top_p, chance)
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
            out = self.model(
                input_ids=chosen, attention_mask=mask, position_ids=place, cache=cache, use_cache=True
            )
            logits = out.logits[:, -1]
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


def _nucleus(scores: Any, top_p: float, chance: Any) -> Any:
    import torch

    chances, order = torch.sort(torch.softmax(scores, -1), descending=True)
    beyond = chances.cumsum(-1) - chances >= top_p
    pick = torch.multinomial(chances.masked_fill(beyond, 0.0), 1, generator=chance)
    return order.gather(-1, pick)


def generator(model: str) -> Generator:
    """The generator of a model name or folder, loaded once a process. Raises `UsageError` when it cannot be loaded."""
    with _LOCK:
        return _load(model)


@lru_cache(maxsize=2)
def _load(model: str) -> Generator:
    from methods.weights import load_causal

    network, tokenizer = load_causal(model)
    return Generator(network, tokenizer)
