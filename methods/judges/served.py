"""Served comparator: the pairwise judge behind an OpenAI-compatible endpoint, one token a comparison.

What decides is the probability of the letters A, B and T as the first token of the answer.  vLLM gives exactly these
when it is told their token ids; any other server gives its most probable tokens, in which the letters are looked up.
The state stands first in the prompt, so all comparisons of a step share a prefix with each other and, because views are
append-only, most of it with those of the step before.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from typing import Any, ClassVar, Unpack, cast

from harness.errors import UsageError, nearest
from harness.models.answer import Completion
from harness.models.asking import QUICK, THROUGHPUT, Asking, endpoint
from harness.models.errors import ModelError, ModelTimeout
from harness.models.thinking import STYLES, thinking_fields
from harness.protocols import Question
from harness.records import Action, Ballot, Label
from harness.seeds import digest
from methods.judges.prompt import load_prompt

LETTERS = ("A", "B", "T")
READINGS = ("letters", "token")


class ServedComparator:
    """Comparator over an endpoint: A/B/T by the first token's log-probabilities.

    Args:
        base_url: address up to and including `/v1`.
        model: name the server knows the model by.
        revision: which weights are served under that name; part of the identity.
        key_env: name of the environment variable that holds the key.
        token_ids: token ids of A, B and T (vLLM only): exact probabilities of these three.
        reading: `letters` takes the most probable of the three letters; `token` takes the server's own first token and
            counts anything else as invalid output.
        prompt: a preset, the folder of a trained judge (what it was trained with), or a file of one's own.
        thinking: None leaves the request without a word about thinking; False switches it off.
        thinking_style: how a server is told so.
        send_ahead: send the first comparison of a batch before the others, for servers whose cache is filled only when
            an answer ends (vLLM needs none of it: `benchmarks/prefix_cache.py`).
        asking: as in `harness.models.asking`: timeout_s, patience_s, attempts, max_in_flight, cache.
    """

    needs_oracle = False
    version: ClassVar[str] = "1"
    # K=4: four comparisons and about two of the other order, each with the whole state (paper table 11: 9,700 tokens).
    estimate: ClassVar[Mapping[str, float]] = {"calls": 6, "prompt": 9600, "completion": 6, "seconds": 0.3}
    throughput: ClassVar[tuple[str, ...]] = ("send_ahead", *THROUGHPUT)
    passes_on: ClassVar[Asking] = QUICK

    def __init__(
        self,
        base_url: str,
        model: str,
        revision: str | None = None,
        key_env: str | None = None,
        token_ids: Sequence[int] | None = None,
        reading: str = "letters",
        prompt: str = "full",
        thinking: bool | None = None,
        thinking_style: str = "template",
        send_ahead: bool = False,
        **asking: Unpack[Asking],
    ) -> None:
        if reading not in READINGS:
            raise UsageError(f"served-comparator: unknown reading {reading!r}.{nearest(reading, READINGS)}")
        if thinking_style not in STYLES:
            raise UsageError(f"served-comparator: unknown thinking_style.{nearest(thinking_style, STYLES)}")
        if token_ids is not None and len(token_ids) != len(LETTERS):
            raise UsageError("served-comparator: token_ids are three numbers, for A, B and T.")
        self.endpoint = endpoint(base_url, model, revision, key_env, self.passes_on, asking)
        self.prompt = prompt
        self.reading = reading
        self.send_ahead = send_ahead
        self.request: dict[str, Any] = {"temperature": 0.0, "max_tokens": 1, "logprobs": True}
        if token_ids is None or reading == "token":
            self.request["top_logprobs"] = 20
        else:
            self.request["logprob_token_ids"] = list(token_ids)
        self.request |= thinking_fields(thinking, thinking_style)

    def identity(self) -> dict[str, str]:
        """What decides outcomes besides the parameters: the prompt texts in effect."""
        return {"prompt": digest(asdict(load_prompt(self.prompt)))}

    def compare(self, question: Question, pairs: Sequence[tuple[Action, Action]]) -> Sequence[Ballot]:
        """One ballot a pair; a pair whose call fails is an empty ballot with its cause.

        Raises:
            UsageError: no key, a wrong address or model.
        """
        ahead = [self._ask(question, pair) for pair in pairs[:1]] if self.send_ahead else []
        rest = pairs[len(ahead) :]
        if not rest:
            return ahead
        with ThreadPoolExecutor(len(rest), thread_name_prefix="compare") as pool:
            return [*ahead, *pool.map(lambda pair: self._ask(question, pair), rest)]

    def _ask(self, question: Question, pair: tuple[Action, Action]) -> Ballot:
        prompt, view = load_prompt(self.prompt), question.view
        user = prompt.prefix(view) + prompt.pair(view, _line(pair[0].text), _line(pair[1].text))
        messages = [{"role": "system", "content": prompt.system}] if prompt.system else []
        messages.append({"role": "user", "content": user})
        try:
            answer = self.endpoint.complete({"messages": messages, **self.request}, deadline=question.deadline)
        except ModelError as error:
            return Ballot(None, "timeout" if isinstance(error, ModelTimeout) else type(error).__name__.lower())
        return ballot(answer, self.reading)


def _line(action: str) -> str:
    """An action on one line, so that it cannot pass for more of the prompt."""
    return " ".join(action.split())


def ballot(answer: Completion, reading: str = "letters") -> Ballot:
    """The ballot of a one-token answer; `text` is what the server wrote and how probable the letters were."""
    odds = dict.fromkeys(LETTERS, -math.inf)
    for token, value in answer.top:
        letter = token.strip()
        if letter in odds:
            odds[letter] = _log_sum(odds[letter], value)
    shown = " ".join(f"{letter}={math.exp(value):.4f}" for letter, value in odds.items())
    text = f"{answer.text[:20]!r} {shown}"
    own = answer.text.strip()
    best = max(odds, key=lambda letter: odds[letter])
    if reading == "letters" and odds[best] > -math.inf:
        return Ballot(cast(Label, best), text=text, usage=answer.usage)
    if own in LETTERS:
        return Ballot(cast(Label, own), text=text, usage=answer.usage)
    return Ballot(None, "invalid_output", text, answer.usage)


def _log_sum(a: float, b: float) -> float:
    high, low = max(a, b), min(a, b)
    return high if low == -math.inf else high + math.log1p(math.exp(low - high))
