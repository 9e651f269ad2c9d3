"""Local generation with transformers: requests of threads that wait at the same time become one batch.

There is no engine thread: whoever finds the model free takes all that is queued (up to `batch_size`) and does it for
everybody.  Sampling draws from a stream for each row (Gumbel noise on the logits, then the largest), so what a row
samples depends on its own seed and never on its neighbours; only the rounding of a batched matrix product can differ.
Counts of tokens are the model's own.  Choosing among given texts scores each by its whole log-probability, the end of
the turn included, with the prompt's key-value cache made once.
"""

from __future__ import annotations

import inspect
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from harness.models import weights
from harness.models.answer import Completion
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


@dataclass(eq=False)
class Job:
    """One request on its way."""

    tokens: list[int]
    sampling: Sampling
    seed: int
    deadline: float | None
    queued: float = field(default_factory=time.monotonic)
    done: bool = False
    result: Completion | None = None
    error: BaseException | None = None


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
        self.batches: list[int] = []  # sizes of the batches so far
        self._queue: list[Job] = []
        self._busy = False
        self._changed = threading.Condition()

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
            ModelTimeout: the deadline passed before its batch began.
        """
        if len(tokens) + sampling.max_tokens > self.context():
            raise ContextTooLong(f"{self.name}: {len(tokens)} tokens and {sampling.max_tokens} to come do not fit")
        job = Job(tokens, sampling, seed, deadline)
        with self._changed:
            self._queue.append(job)
            self._changed.wait_for(lambda: job.done or not self._busy)
            batch = [] if job.done else self._take(job)
        if batch:
            self._lead(batch)
        if job.error is not None:
            raise job.error
        if job.result is None:
            raise RuntimeError("a batch ended without a result")
        return job.result

    def _take(self, own: Job) -> list[Job]:
        """Own the model, and what is queued and fits one batch with `own`; the lock is held."""
        self._busy = True
        others = [job for job in self._queue if job is not own and job.sampling == own.sampling]
        batch = [own, *others[: self.batch_size - 1]]
        self._queue = [job for job in self._queue if job not in batch]
        return batch

    def _release(self, batch: Sequence[Job] = ()) -> None:
        with self._changed:
            self._busy = False
            for job in batch:
                job.done = True
            self._changed.notify_all()

    def _lead(self, batch: Sequence[Job]) -> None:
        """Do a batch for everybody in it."""
        late = [job for job in batch if job.deadline is not None and time.monotonic() > job.deadline]
        for job in late:
            job.error = ModelTimeout(f"{self.name}: the deadline passed in the queue")
        todo = [job for job in batch if job not in late]
        try:
            if todo:
                self._run(todo)
        except BaseException as error:  # each of the waiting threads has to hear of it
            for job in todo:
                job.error = error
            raise
        finally:
            self._release(batch)

    def _run(self, jobs: Sequence[Job]) -> None:
        import torch

        began, sampling = time.monotonic(), jobs[0].sampling
        self.batches.append(len(jobs))
        padded = self.tokenizer.pad({"input_ids": [job.tokens for job in jobs]}, return_tensors="pt")
        padded = padded.to(self.model.device)
        options: dict[str, Any] = {"do_sample": False, "max_new_tokens": sampling.max_tokens}
        options["pad_token_id"] = self.tokenizer.pad_token_id
        if sampling.stop:
            options |= {"stop_strings": list(sampling.stop), "tokenizer": self.tokenizer}
        if sampling.temperature > 0:
            seeds = [job.seed for job in jobs]
            options["logits_processor"] = [row_noise(seeds, sampling.temperature, sampling.top_p)]
        with torch.inference_mode():
            out = self.model.generate(**padded, **options)
        seconds = time.monotonic() - began
        for job, row in zip(jobs, out[:, padded["input_ids"].shape[1] :].tolist(), strict=True):
            job.result = self._completion(job, row, began - job.queued, seconds)

    def _completion(self, job: Job, row: list[int], waited: float, seconds: float) -> Completion:
        ends = _ends(self.model, self.tokenizer)
        length = next((index + 1 for index, token in enumerate(row) if token in ends), len(row))
        finish = "stop" if length < len(row) or (row and row[-1] in ends) else "length"
        text = self.tokenizer.decode(row[:length], skip_special_tokens=True)
        for stop in job.sampling.stop:
            if stop in text:
                text, finish = text[: text.index(stop)], "stop"
        reasoning = None if "<think>" in text else 0  # whoever thinks in the text does not say how much
        usage = Usage(1, len(job.tokens), length, 0, reasoning, waited)
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
        queued = time.monotonic()
        with self._changed:
            self._changed.wait_for(lambda: not self._busy)
            self._busy = True
        began = time.monotonic()
        try:
            values = [
                value
                for start in range(0, len(rows), self.batch_size)
                for value in self._score(tokens, rows[start : start + self.batch_size])
            ]
        finally:
            self._release()
        # Scored tokens count as prompt: they were read, not written.
        return values, Usage(1, len(tokens) + sum(map(len, rows)), 0, 0, 0, began - queued)

    def _score(self, tokens: list[int], rows: Sequence[list[int]]) -> list[float]:
        import torch

        pad, device, width = self.tokenizer.pad_token_id, self.model.device, max(len(row) for row in rows)
        with torch.inference_mode():
            cache = _new_cache(self.model)
            first = self.model(torch.tensor([tokens], device=device), **cache)
            next(iter(cache.values())).batch_repeat_interleave(len(rows))
            ids = torch.tensor([row + [pad] * (width - len(row)) for row in rows], device=device)
            logits = self.model(ids, **cache).logits[:, :-1].float()
        head = first.logits[0, -1].float().log_softmax(-1)
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
