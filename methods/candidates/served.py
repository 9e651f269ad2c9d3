"""Served small-LM candidates: the same generator and modes, behind an OpenAI-compatible endpoint.

Each lead is the beginning of the assistant's own message, which the server goes on with (`continue_final_message`,
known to vLLM and SGLang); the prompts of a draw share everything before it, so a prefix cache does the state once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, ClassVar, Unpack

from harness.models.answer import Completion
from harness.models.asking import QUICK, THROUGHPUT, Asking, endpoint
from harness.models.client import Endpoint
from harness.models.errors import ModelError
from harness.models.thinking import thinking_fields
from harness.records import Usage
from harness.seeds import seed_of
from methods.candidates.generation import Generated
from methods.candidates.small_lm import MODES, SmallLMCandidates


@dataclass(frozen=True, slots=True)
class ServedGenerator:
    """Samples lines over an endpoint."""

    endpoint: Endpoint
    deadline: float | None = None

    def sample(
        self, system: str, user: str, leads: Sequence[str], seed: int, tokens: int, temperature: float, top_p: float
    ) -> Generated:
        """One sampled line for each lead; a lead whose call fails gives no text.

        Raises:
            ModelError: no call succeeded.
            UsageError: no key, a wrong address or model.
        """
        sampling = {"max_tokens": tokens, "temperature": temperature, "top_p": top_p, "stop": ["\n"]}

        def one(number: int) -> Completion | ModelError:
            messages = [
                {"role": "system", "content": system},
                {"role": "user", "content": user},
                {"role": "assistant", "content": leads[number]},
            ]
            request: dict[str, Any] = {"messages": messages, **sampling, **thinking_fields(False, "template")}
            request |= {"continue_final_message": True, "add_generation_prompt": False}
            try:
                return self.endpoint.complete(request, seed_of(seed=seed, lead=number), self.deadline)
            except ModelError as error:
                return error

        with ThreadPoolExecutor(max(1, len(leads)), thread_name_prefix="candidates") as pool:
            answers = list(pool.map(one, range(len(leads))))
        fine = [answer for answer in answers if isinstance(answer, Completion)]
        for failure in answers:
            if isinstance(failure, ModelError) and not fine:
                raise failure
        texts = [answer.text.strip().partition("\n")[0].strip() for answer in fine]
        return Generated(tuple(texts), sum((answer.usage for answer in fine), Usage()))


class ServedSmallLMCandidates(SmallLMCandidates):
    """Actions proposed by a small language model over an endpoint; validity-filtered, never votes.

    Args:
        base_url: address up to and including `/v1`.
        model: name the server knows the model by.
        revision: which weights are served under that name; part of the identity.
        key_env: name of the environment variable that holds the key.
        modes: which of information, progress, recovery, distinct, in the order they are used.
        rounds: how often all modes are asked at most while candidates are missing.
        tokens: at most so many new tokens an answer.
        temperature: of sampling.
        top_p: nucleus of sampling.
        prompt: file with a user message of one's own, with the placeholder {view}.
        asking: as in `harness.models.asking`: timeout_s, patience_s, attempts, max_in_flight, cache.
    """

    version: ClassVar[str] = "1"
    estimate: ClassVar[Mapping[str, float]] = {"calls": 4, "prompt": 6000, "completion": 60, "seconds": 0.5}
    throughput: ClassVar[tuple[str, ...]] = THROUGHPUT
    passes_on: ClassVar[Asking] = QUICK

    def __init__(
        self,
        base_url: str,
        model: str,
        revision: str | None = None,
        key_env: str | None = None,
        modes: Sequence[str] = tuple(MODES),
        rounds: int = 2,
        tokens: int = 64,
        temperature: float = 0.8,
        top_p: float = 0.95,
        prompt: str | None = None,
        **asking: Unpack[Asking],
    ) -> None:
        super().__init__(
            model,
            revision,
            modes=modes,
            rounds=rounds,
            tokens=tokens,
            temperature=temperature,
            top_p=top_p,
            prompt=prompt,
        )
        self.endpoint = endpoint(base_url, model, revision, key_env, self.passes_on, asking)

    def _generator(self, deadline: float | None) -> ServedGenerator:
        return ServedGenerator(self.endpoint, deadline)
