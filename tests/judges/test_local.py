"""Local judges: answers, invalid outputs, counts, cuts, pickling, and what people are told."""

from __future__ import annotations

import pickle

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from harness.errors import UsageError  # noqa: E402
from harness.protocols import Question  # noqa: E402
from harness.records import Action, DecisionState, Observation  # noqa: E402
from harness.registry import create  # noqa: E402
from methods.judges.comparator import LocalComparator  # noqa: E402
from methods.judges.critic import LocalCritic  # noqa: E402
from methods.judges.prompt import Prompt  # noqa: E402
from methods.training import tiny  # noqa: E402
from tests.training.helpers import COLOURS, tiny_comparator, view_of  # noqa: E402

pytestmark = pytest.mark.models
VIEW = view_of("red", list(COLOURS), ["click[blue]"])
STATE = DecisionState("shelf", "t", "task", Observation("look"))
QUESTION = Question(STATE, VIEW)


def action(colour: str) -> Action:
    return Action(f"click[{colour}]", f"click[{colour}]")


PAIRS = [(action(a), action("red")) for a in COLOURS[1:5]] + [(action("red"), action(a)) for a in COLOURS[1:5]]


@pytest.fixture
def folder(tmp_path):
    model, tokenizer, _ = tiny_comparator()
    tiny.save(tokenizer, model, tmp_path)
    Prompt().save(tmp_path)
    return tmp_path


def test_labels_are_the_largest_of_the_letters(folder) -> None:
    judge = LocalComparator(str(folder), strict=False)
    ballots = judge.compare(QUESTION, PAIRS)
    logits = judge.logits(VIEW, [(a.text, b.text) for a, b in PAIRS])
    assert [b.label for b in ballots] == ["ABT"[i] for i in logits.argmax(-1)]
    assert all(0.33 <= float(b.text.removeprefix("p=")) <= 1 for b in ballots)
    two = LocalComparator(str(folder), strict=False, ab_only=True).compare(QUESTION, PAIRS)
    assert [b.label for b in two] == ["AB"[i] for i in logits[:, :2].argmax(-1)]


def test_an_answer_outside_the_letters_is_invalid_when_strict(folder) -> None:
    strict, lenient = LocalComparator(str(folder)), LocalComparator(str(folder), strict=False)
    parts = strict.load()
    chosen = []
    with torch.inference_mode():
        for a, b in PAIRS:
            ids = parts.encoder.prefix(VIEW) + parts.encoder.pair(VIEW, a.text, b.text)
            chosen.append(int(parts.engine.loaded.model(torch.tensor([ids])).logits[0, -1].argmax()))
    answers = zip(strict.compare(QUESTION, PAIRS), lenient.compare(QUESTION, PAIRS), chosen, strict=True)
    for ballot, other, token in answers:
        valid = token in parts.encoder.letters()
        assert (ballot.label is not None) == valid
        assert ballot.cause == (None if valid else "invalid_output")
        assert other.label is not None
    assert any(token not in parts.encoder.letters() for token in chosen)  # an untrained model says other things


def test_a_broken_model_gives_no_label(folder) -> None:
    judge = LocalComparator(str(folder))
    with torch.no_grad():
        judge.load().head.weight.fill_(float("nan"))
    assert {(b.label, b.cause) for b in judge.compare(QUESTION, PAIRS)} == {(None, "not_finite")}


def test_tokens_are_counted_as_a_server_would(folder) -> None:
    judge = LocalComparator(str(folder), strict=False)
    parts = judge.load()
    prefix = len(parts.encoder.prefix(VIEW))
    ends = [len(parts.encoder.pair(VIEW, a.text, b.text)) for a, b in PAIRS]
    for cached in (0, prefix):
        usages = [b.usage for b in judge.compare(QUESTION, PAIRS)]
        assert [u.prompt for u in usages] == [prefix + end for end in ends]
        assert [u.cached for u in usages] == [cached] + [prefix] * (len(PAIRS) - 1)
        assert {(u.calls, u.completion) for u in usages} == {(1, 0)}
    assert parts.engine.counts.run == prefix + 2 * sum(ends)
    assert judge.compare(QUESTION, []) == []


def test_a_long_state_is_cut_and_the_ballot_says_so(folder) -> None:
    long = Question(STATE, view_of("red", list(COLOURS), ["click[blue]"] * 200))
    judge = LocalComparator(str(folder), strict=False, max_tokens=600)
    ballot = judge.compare(long, PAIRS[:1])[0]
    assert ballot.usage.prompt is not None
    assert ballot.usage.prompt <= 600
    assert " cut=" in ballot.text
    assert judge.load().engine.counts.cut == 1
    assert [b.label for b in judge.compare(long, PAIRS)] == [b.label for b in judge.compare(long, PAIRS)]


def test_critic_scores_lie_between_0_and_1(tmp_path) -> None:
    _, tokenizer, _ = tiny_comparator()
    tiny.save(tokenizer, tiny.make_model(tokenizer, "classifier", 0), tmp_path)
    critic = LocalCritic(str(tmp_path))
    scores = critic.score(QUESTION, [action(c) for c in COLOURS])
    assert all(s.value is not None and 0 < s.value < 1 for s in scores)
    again = [critic.score(QUESTION, [action(c)])[0].value for c in COLOURS]
    assert again == pytest.approx([s.value for s in scores], abs=1e-5)
    with torch.no_grad():
        critic.load().head.weight.fill_(float("nan"))
    assert critic.score(QUESTION, [action("red")])[0].cause == "not_finite"


def test_a_judge_goes_to_another_process_without_its_model(folder) -> None:
    judge = create("judges", "comparator", {"model": str(folder), "strict": False})
    expected = judge.compare(QUESTION, PAIRS)
    data = pickle.dumps(judge)
    assert len(data) < 2000
    assert [b.label for b in pickle.loads(data).compare(QUESTION, PAIRS)] == [b.label for b in expected]


def test_nothing_is_loaded_before_the_first_question() -> None:
    judge = LocalComparator("/nowhere/at/all")
    with pytest.raises(UsageError, match="no model folder"):
        judge.compare(QUESTION, PAIRS)
    with pytest.raises(UsageError, match="recipe, not weights"):
        LocalCritic("tiny").score(QUESTION, [action("red")])
    with pytest.raises(UsageError, match="Unknown dtype"):
        create("judges", "comparator", {"model": "smollm2", "dtype": "int3"}).load()
    with pytest.raises(UsageError, match="Did you mean 'model'"):
        create("judges", "critic", {"modle": "x"})


@pytest.mark.slow
def test_smollm2_shared_prefill_equals_full_prompts_over_an_episode() -> None:
    from benchmarks.judge_prefill import STATE, Bench, agreement, views
    from harness.models.weights import load

    bench = Bench(load("smollm2", dtype="float32"))
    assert 350 < len(bench.encoder.prefix(views(1)[STATE])) < 550
    for step in range(0, STATE, 2):
        found = bench.step(step)[1]
        for way in ("cold", "kept"):
            same = agreement(found[way], found["apart"])
            assert same["max_logit_difference"] < 5e-4
            assert same["decisions_differ"] == 0
