"""A real vLLM server: set COTA_BENCH_TEST_VLLM to its /v1 address (`cota-bench serve` starts one).

Any instruct model will do; the tests look at plumbing, counts and probabilities, never at skill.
"""

from __future__ import annotations

import os
import re
import time
import urllib.request

import pytest

from harness.actors.chat import ChatActor
from harness.desk import Tools
from harness.environments.mock import MockEnvironment
from harness.errors import UsageError
from harness.loop import Limits
from harness.models.client import Endpoint
from harness.models.errors import ContextTooLong, Unavailable
from harness.protocols import Question
from harness.records import Action, DecisionState, Observation, Usage
from methods.advisers.chat import ChatAdviser
from methods.asym_ac import AsymAC
from methods.candidates.environment import EnvironmentCandidates
from methods.cota import Cota
from methods.judges.served import ServedComparator
from methods.self_reflection import SelfReflection
from tests.harness.helpers import episode

URL = os.environ.get("COTA_BENCH_TEST_VLLM", "")
MODEL = os.environ.get("COTA_BENCH_TEST_VLLM_MODEL", "smollm2")
pytestmark = pytest.mark.skipif(not URL, reason="set COTA_BENCH_TEST_VLLM to the address of a vLLM server")
LEFT, RIGHT = Action("left", "left"), Action("right", "right")


def counters() -> dict[str, float]:
    """The server's own counters, summed over labels."""
    with urllib.request.urlopen(URL.removesuffix("/v1") + "/metrics", timeout=30) as answer:
        text = answer.read().decode()
    found: dict[str, float] = {}
    for name, value in re.findall(r"^(vllm:\w+)\{[^}]*\} ([0-9.e+]+)$", text, re.MULTILINE):
        found[name] = found.get(name, 0.0) + float(value)
    return found


def spent(before: dict[str, float]) -> tuple[int, int]:
    """(prompt, generation) tokens since `before`, once the counters have settled."""
    time.sleep(0.5)
    now = counters()
    names = ("vllm:prompt_tokens_total", "vllm:generation_tokens_total")
    prompt, generation = (int(now[name] - before.get(name, 0.0)) for name in names)
    return prompt, generation


def test_tokens_of_all_roles_equal_the_servers_counters() -> None:
    before, totals = counters(), Usage()
    actor = ChatActor(URL, MODEL, max_tokens=24, format_retries=1)
    tools = Tools(
        comparator=ServedComparator(URL, MODEL, token_ids=[49, 50, 68] if MODEL == "smollm2" else None),
        adviser=ChatAdviser(URL, MODEL, max_tokens=24),
        candidates=EnvironmentCandidates(),
    )
    for method in (Cota(k=2, r=1), AsymAC(), SelfReflection()):
        found = episode(method, actor=actor, tools=tools, environment=MockEnvironment(3), limits=Limits(max_steps=2))
        assert found.status in ("done", "truncated", "unparsed"), found.reason
        assert found.boundary != "harness", found.reason
        totals = sum(found.usage.values(), totals)
    assert (totals.prompt, totals.completion) == spent(before)
    assert totals.calls > 3
    assert totals.cached is not None, "start the server with --enable-prompt-tokens-details"


def test_letters_have_exact_probabilities() -> None:
    if MODEL != "smollm2":
        pytest.skip("the token ids are SmolLM2's")
    question = Question(DecisionState("mock", "t", "go", Observation("o")), "You stand at 0 of 5. Go right.")
    pairs = [(RIGHT, LEFT), (LEFT, RIGHT)]
    exact = ServedComparator(URL, MODEL, token_ids=[49, 50, 68]).compare(question, pairs)
    assert all(ballot.label in ("A", "B", "T") for ballot in exact)
    odds = [float(part) for part in re.findall(r"=([0-9.]+)", exact[0].text)]
    assert 0 < sum(odds) <= 1.001
    assert len(odds) == 3
    again = ServedComparator(URL, MODEL, token_ids=[49, 50, 68]).compare(question, pairs)
    assert [ballot.label for ballot in again] == [ballot.label for ballot in exact]


def test_the_prefix_of_a_state_is_cached() -> None:
    view = f"{time.time()} " + " ".join(f"Step {i}: you walk and see nothing new." for i in range(60))
    question = Question(DecisionState("mock", "t", "go", Observation("o")), view)
    judge = ServedComparator(URL, MODEL)
    first, *rest = judge.compare(question, [(RIGHT, LEFT), (LEFT, RIGHT), (RIGHT, RIGHT)])
    assert first.usage.prompt is not None
    for ballot in rest:
        assert ballot.usage.cached is not None
        assert ballot.usage.cached > 0.8 * first.usage.prompt


def test_the_same_seed_writes_the_same_text() -> None:
    request = {"messages": [{"role": "user", "content": "Tell me a story."}], "max_tokens": 12, "temperature": 1.0}
    texts = [Endpoint(URL, MODEL).complete(request, seed=seed).text for seed in (7, 7, 8)]
    assert texts[0] == texts[1]
    assert texts[0] != texts[2]


def test_what_the_server_refuses_is_told_apart() -> None:
    long = {"messages": [{"role": "user", "content": "word " * 200_000}], "max_tokens": 4}
    with pytest.raises(ContextTooLong):
        Endpoint(URL, MODEL).complete(long)
    with pytest.raises(UsageError, match="no-such-model"):
        Endpoint(URL, "no-such-model").complete({"messages": [{"role": "user", "content": "hi"}]})
    with pytest.raises(Unavailable):
        Endpoint("http://127.0.0.1:1/v1", MODEL, attempts=1).complete(long)
