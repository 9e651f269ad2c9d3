"""Several episodes' questions in one forward pass: the numbers of each alone, within bounds, errors where they belong."""

from __future__ import annotations

import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from harness.models.weights import Loaded, pick_device, pick_dtype  # noqa: E402
from harness.protocols import Question  # noqa: E402
from harness.records import Action, DecisionState, Observation  # noqa: E402
from methods.judges.comparator import LocalComparator  # noqa: E402
from methods.judges.critic import LocalCritic  # noqa: E402
from methods.judges.engine import CPU_MB, GPU_BATCH, GPU_MB, Ask, Engine  # noqa: E402
from methods.training import tiny  # noqa: E402
from tests.judges.test_engine import check  # noqa: E402
from tests.training.helpers import COLOURS, tiny_comparator, view_of  # noqa: E402

pytestmark = pytest.mark.models
STATE = DecisionState("shelf", "t", "task", Observation("look"))


@pytest.fixture(scope="module")
def loaded():
    model, tokenizer, _ = tiny_comparator()
    return Loaded(model, tokenizer, "cpu", "float32", tokenizer.pad_token_id)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("judge")
    model, tokenizer, _ = tiny_comparator()
    tiny.save(tokenizer, model, folder)
    return str(folder)


def grown(draw: random.Random, ids: list[int]) -> list[int]:
    """A prefix that went on, or (rarely) changed in its middle."""
    keep = len(ids) if draw.random() < 0.8 else draw.randint(0, len(ids))
    return ids[:keep] + [draw.randrange(10, 60) for _ in range(draw.randint(0, 25))] or [11]


def prefix_of(length: int) -> list[int]:
    """Prefixes of different lengths that share no beginning."""
    return [10 + (length * (i + 1)) % 47 for i in range(length)]


def test_rows_of_a_pass_are_as_exact_as_questions_alone(loaded) -> None:
    draw = random.Random(3)
    for memory in (64.0, 0.06, 0.0):  # plenty; so little that rows of one pass push each other out; nothing
        engine = Engine(loaded, memory, batch_tokens=10_000)
        prefixes = [[draw.randrange(10, 60) for _ in range(draw.randint(1, 60))] for _ in range(5)]
        reused = 0
        for _ in range(8):
            prefixes = [grown(draw, ids) for ids in prefixes]
            asks = [
                Ask(ids, [[draw.randrange(10, 60)] * draw.randint(1, 7) for _ in range(draw.randint(1, 6))])
                for ids in draw.sample(prefixes, draw.randint(1, 5))
            ]
            for ask, answer in zip(asks, engine._pass(asks), strict=True):
                assert answer.run + answer.reused == len(ask.ids)
                reused += answer.reused
                check(loaded, answer, ask.ids, ask.suffixes)
            assert engine.kept_bytes <= memory * 2**20
            assert engine.kept_bytes == sum(kept.size for kept in engine._kept.values())
        assert (reused > 0) == (memory > 0)


def test_a_pass_is_bounded_in_tokens_with_its_padding(loaded) -> None:
    engine = Engine(loaded, batch_tokens=100)
    sizes = []
    run = engine.body.forward

    def counted(**given):
        sizes.append(given["input_ids"].numel())
        time.sleep(0.02)  # so that the others wait together
        return run(**given)

    engine.body.forward = counted
    try:
        with ThreadPoolExecutor(12) as pool:
            lengths = [5, 10, 20, 20, 30, 30, 40, 5, 10, 150, 20, 60]
            answers = list(pool.map(lambda n: engine.run(prefix_of(n), [[5, 6], [7]]), lengths))
    finally:
        engine.body.forward = run
    for length, answer in zip(lengths, answers, strict=True):
        check(loaded, answer, prefix_of(length), [[5, 6], [7]])
    assert max(engine.batcher.sizes) > 1
    assert sorted(sizes)[-2] <= 100  # only the question that is larger by itself goes beyond


def test_device_dtype_and_bounds_are_chosen_by_what_there_is(loaded, monkeypatch) -> None:
    for there, device, dtype, room, held in (
        (False, "cpu", "float32", 0, CPU_MB),
        (True, "cuda", "bfloat16", GPU_BATCH, GPU_MB),
    ):
        monkeypatch.setattr(torch.cuda, "is_available", lambda there=there: there)
        assert pick_device() == device
        assert pick_dtype("auto", device) == dtype
        engine = Engine(replace(loaded, device=device))
        assert (engine.room, engine.limit) == (room, held * 2**20)
        assert engine._fits([Ask([1], [[2]])] * 2) == (room > 0)
    own = Engine(replace(loaded, device="cuda"), memory_mb=1, batch_tokens=0)
    assert (own.room, own.limit) == (0, 2**20)


def test_episodes_decide_the_same_together_and_alone(folder) -> None:
    alone = LocalComparator(folder, strict=False, batch_tokens=0)
    joint = LocalComparator(folder, strict=False, batch_tokens=4_000)
    critics = LocalCritic(folder, batch_tokens=0), LocalCritic(folder, batch_tokens=4_000)
    with torch.no_grad():  # a fresh head is drawn anew at each load
        critics[1].load().head.weight.copy_(critics[0].load().head.weight)
    wall = threading.Barrier(8)

    def episode(judge, critic, number: int, together: bool) -> list[object]:
        draw, done, found = random.Random(number), [], []
        for step in range(4):
            view = view_of(COLOURS[number], draw.sample(COLOURS, 5), done)
            done.append(f"click[{COLOURS[step]}]")
            acts = [Action(f"click[{c}]", c) for c in draw.sample(COLOURS, 4)]
            if together:
                wall.wait(20)
            question = Question(STATE, view)
            found += [b.label for b in judge.compare(question, [(a, acts[0]) for a in acts[1:]])]
            found += [round(s.value, 4) for s in critic.score(question, acts)]
        return found

    with ThreadPoolExecutor(8) as pool:
        joined = list(pool.map(lambda n: episode(joint, critics[1], n, True), range(8)))
    single = [episode(alone, critics[0], n, False) for n in range(8)]
    labels = [[x for x in one if isinstance(x, str)] for one in single]
    assert [[x for x in one if isinstance(x, str)] for one in joined] == labels
    numbers = [pytest.approx([x for x in one if not isinstance(x, str)], abs=2e-4) for one in single]
    assert [[x for x in one if not isinstance(x, str)] for one in joined] == numbers
    assert max(joint.load().engine.batcher.sizes) > 1
    assert max(alone.load().engine.batcher.sizes) == 1


def test_a_questions_error_and_deadline_are_its_own(loaded) -> None:
    engine = Engine(loaded, batch_tokens=10_000)
    held, go = threading.Event(), threading.Event()
    whole = engine._pass

    def slow(asks):
        held.set()
        assert go.wait(10)
        return whole(asks)

    engine.batcher._run = slow
    with ThreadPoolExecutor(4) as pool:
        first = pool.submit(engine.run, [11, 12], [[13]])
        assert held.wait(10)
        good = pool.submit(engine.run, [14, 15], [[16]])
        bad = pool.submit(engine.run, [14, 10**6], [[16]])  # no such token
        late = pool.submit(engine.run, [17], [[18]], time.monotonic() + 0.05)
        assert isinstance(late.exception(10), TimeoutError)
        while len(engine.batcher._queue) < 2:
            time.sleep(0.001)
        go.set()
        check(loaded, first.result(10), [11, 12], [[13]])
        check(loaded, good.result(10), [14, 15], [[16]])
        assert first.result().waited_s < good.result().waited_s
        assert isinstance(bad.exception(10), IndexError)
    assert engine.counts.calls == 2


def test_judges_do_not_begin_what_comes_too_late(folder) -> None:
    acts = [Action("click[red]", "red"), Action("click[blue]", "blue")]
    judge, critic = LocalComparator(folder, strict=False), LocalCritic(folder)
    for left, late in ((60.0, False), (-1.0, True)):
        question = Question(STATE, view_of("red", list(COLOURS), []), deadline=time.monotonic() + left)
        for ask in (lambda q: judge.compare(q, [(acts[0], acts[1])]), lambda q: critic.score(q, acts)):
            if late:
                with pytest.raises(TimeoutError):
                    ask(question)
            else:
                assert ask(question)[0].usage.waited_s < 60
