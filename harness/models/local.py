"""Local generation with transformers: requests of threads that wait at the same time become one batch.

`Batcher` joins up to `batch_size` requests that are sampled alike.  Sampling draws from a stream for each row (Gumbel
noise on the logits, then the largest), so what a row samples depends on its own seed and never on its neighbours; only
the rounding of a batched matrix product can differ.  Counts of tokens are the model's own.  Choosing among given texts
scores each by its whole log-probability, the end of the turn included, with the prompt's key-value cache made once.
"""

from __future__ import annotations

import copy
import inspect
import threading
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, cast

from harness.models import weights
from harness.models.answer import Completion
from harness.models.batcher import Batcher
from harness.models.errors import ContextTooLong, ModelTimeout
from harness.models.sampling import row_noise
from harness.models.threads import cap
from harness.records import Usage

Message = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Sampling:
    """How a batch is sampled; requests of different sampling are never batched together."""

    temperature: float = 0.0
    top_p: float = 1.0
    max_tokens: int = 256
    stop: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Writing:
    """A request to continue `tokens`."""

    tokens: list[int]
    sampling: Sampling
    seed: int


@dataclass(frozen=True, slots=True)
class Scoring:
    """A request for the log-probability of each of `rows` after `tokens`."""

    tokens: list[int]
    rows: list[list[int]]


Ask = Writing | Scoring
Answer = Completion | list[float]


class LocalModel:
    """A causal language model in this process; safe for many threads."""

    def __init__(
        self, model: str, revision: str | None, device: str, dtype: str, batch_size: int, threads: int | None = None
    ) -> None:
        self.name = model
        loaded = weights.load(model, revision=revision, dtype=dtype, device=device)
        if threads is not None:
            cap(threads)
        self.model, self.tokenizer = loaded.model, loaded.tokenizer
        self.tokenizer.padding_side = "left"  # so that all rows end where generation begins
        self.tokenizer.pad_token_id = loaded.pad
        self.batch_size = batch_size
        self._batcher: Batcher[Ask, Answer] = Batcher(self._run, self._fits)

    def encode(self, messages: Sequence[Message], begin: str = "", **template: Any) -> list[int]:
        """Token ids of a chat up to where the answer begins; `begin` is text the answer starts with."""
        text = self.tokenizer.apply_chat_template(
            list(messages), tokenize=False, add_generation_prompt=True, **template
        )
        ids: list[int] = self.tokenizer(text + begin, add_special_tokens=False)["input_ids"]
        return ids

    def context(self) -> int:
        """Tokens the model can hold."""
        return int(getattr(self.model.config, "max_position_embeddings", 0) or 1 << 30)

    def generate(self, tokens: list[int], sampling: Sampling, seed: int, deadline: float | None = None) -> Completion:
        """Continue `tokens`.

        Raises:
            ContextTooLong: they do not fit.
            ModelTimeout: the deadline passed before the answer came.
        """
        if len(tokens) + sampling.max_tokens > self.context():
            raise ContextTooLong(f"{self.name}: {len(tokens)} tokens and {sampling.max_tokens} to come do not fit")
        try:
            answer, waited = self._batcher(Writing(tokens, sampling, seed), deadline)
        except TimeoutError as error:
            raise ModelTimeout(f"{self.name}: {error}") from error
        found = cast(Completion, answer)
        return replace(found, usage=replace(found.usage, waited_s=waited))

    @property
    def batches(self) -> Counter[int]:
        """How many batches there were of each size."""
        return self._batcher.sizes

    def _fits(self, asks: list[Ask]) -> bool:
        """Texts to write share a batch when they are sampled alike; a scoring is a batch by itself."""
        alike = {ask.sampling if isinstance(ask, Writing) else None for ask in asks}
        return len(asks) <= self.batch_size and len(alike) == 1 and None not in alike

    def _run(self, asks: list[Ask]) -> list[Answer]:
        written = [ask for ask in asks if isinstance(ask, Writing)]
        if written:
            return list(self._write(written))
        return [self._scores(ask) for ask in asks if isinstance(ask, Scoring)]

    def _write(self, asks: list[Writing]) -> list[Completion]:
        import torch

        began, sampling = time.monotonic(), asks[0].sampling
        padded = self.tokenizer.pad({"input_ids": [ask.tokens for ask in asks]}, return_tensors="pt")
        padded = padded.to(self.model.device)
        options: dict[str, Any] = {"do_sample": False, "max_new_tokens": sampling.max_tokens}
        options["pad_token_id"] = self.tokenizer.pad_token_id
        if sampling.stop:
            options |= {"stop_strings": list(sampling.stop), "tokenizer": self.tokenizer}
        if sampling.temperature > 0:
            seeds = [ask.seed for ask in asks]
            options["logits_processor"] = [row_noise(seeds, sampling.temperature, sampling.top_p)]
        with torch.inference_mode():
            out = self.model.generate(**padded, **options)
        seconds = time.monotonic() - began
        rows = out[:, padded["input_ids"].shape[1] :].tolist()
        return [self._completion(ask, row, seconds) for ask, row in zip(asks, rows, strict=True)]

    def _completion(self, ask: Writing, row: list[int], seconds: float) -> Completion:
        ends = _ends(self.model, self.tokenizer)
        length = next((index + 1 for index, token in enumerate(row) if token in ends), len(row))
        finish = "stop" if length < len(row) or (row and row[-1] in ends) else "length"
        text = self.tokenizer.decode(row[:length], skip_special_tokens=True)
        for stop in ask.sampling.stop:
            if stop in text:
                text, finish = text[: text.index(stop)], "stop"
        reasoning = None if "<think>" in text else 0  # whoever thinks in the text does not say how much
        usage = Usage(1, len(ask.tokens), length, 0, reasoning)
        return Completion(text, finish=finish, usage=usage, model=self.name, seconds=seconds)

    def score(self, tokens: list[int], texts: Sequence[str]) -> tuple[list[float], Usage]:
        """Log-probability of each text, with the end of the turn after it, as a continuation of `tokens`.

        Raises:
            ContextTooLong: prompt and longest text do not fit.
        """
        end = self.tokenizer.eos_token_id
        rows = [[*self.tokenizer(text, add_special_tokens=False)["input_ids"], end] for text in texts]
        longest = max(len(row) for row in rows)
        if len(tokens) + longest > self.context():
            raise ContextTooLong(f"{self.name}: {len(tokens)} tokens and {longest} of an action do not fit")
        values, waited = self._batcher(Scoring(tokens, rows))
        # Scored tokens count as prompt: they were read, not written.
        return cast(list[float], values), Usage(1, len(tokens) + sum(map(len, rows)), 0, 0, 0, waited)

    def _scores(self, ask: Scoring) -> list[float]:
        """The prompt is read once; each part of the rows goes on from a copy of its keys and values."""
        import torch

        cache = _new_cache(self.model)
        with torch.inference_mode():
            first = self.model(torch.tensor([ask.tokens], device=self.model.device), logits_to_keep=1, **cache)
        head = first.logits[0, -1].float().log_softmax(-1)
        parts = [ask.rows[start : start + self.batch_size] for start in range(0, len(ask.rows), self.batch_size)]
        return [value for part in parts for value in self._score(head, copy.deepcopy(cache), part)]

    def _score(self, head: Any, cache: dict[str, Any], rows: Sequence[list[int]]) -> list[float]:
        import torch

        pad, device, width = self.tokenizer.pad_token_id, self.model.device, max(len(row) for row in rows)
        with torch.inference_mode():
            next(iter(cache.values())).batch_repeat_interleave(len(rows))
            ids = torch.tensor([row + [pad] * (width - len(row)) for row in rows], device=device)
            logits = self.model(ids, **cache).logits[:, :-1].float()
        tail = logits.log_softmax(-1).gather(-1, ids[:, 1:, None])[..., 0]
        return [float(head[row[0]] + tail[index, : len(row) - 1].sum()) for index, row in enumerate(rows)]


def _new_cache(model: Any) -> dict[str, Any]:
    """An empty key-value cache under the argument name that this version of transformers takes."""
    import transformers

    name = "cache" if "cache" in inspect.signature(model.forward).parameters else "past_key_values"
    return {name: transformers.DynamicCache(config=model.config)}


def _ends(model: Any, tokenizer: Any) -> set[int]:
    given = model.generation_config.eos_token_id
    ends = set(given) if isinstance(given, list | tuple) else {given}
    return {token for token in (*ends, tokenizer.eos_token_id) if token is not None}


@lru_cache(maxsize=2)
def local_model(
    model: str, revision: str | None, device: str, dtype: str, batch_size: int, threads: int | None = None
) -> LocalModel:
    """The model of this process, loaded once. Raises `UsageError`."""
    with _loading:
        return LocalModel(model, revision, device, dtype, batch_size, threads)


_loading = threading.Lock()
