"""The engine against independent full prompts: same numbers whatever is kept, cut, diverged or evicted."""

from __future__ import annotations

import random
import threading

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from harness.models.weights import Loaded  # noqa: E402
from methods.judges.engine import Engine, _common  # noqa: E402
from methods.judges.pack import Row, pack  # noqa: E402
from tests.training.helpers import COLOURS, tiny_comparator, view_of  # noqa: E402

pytestmark = pytest.mark.models
TOLERANCE = 1e-4


@pytest.fixture(scope="module")
def parts():
    model, tokenizer, encoder = tiny_comparator()
    return Loaded(model, tokenizer, "cpu", "float32", tokenizer.pad_token_id), encoder


def alone(loaded, prefix, suffix):
    """Last hidden state of one full prompt, the plainest way."""
    with torch.no_grad():
        return loaded.model.base_model(input_ids=torch.tensor([[*prefix, *suffix]])).last_hidden_state[0, -1]


def check(loaded, answer, prefix, suffixes):
    for hidden, suffix in zip(answer.hidden, suffixes, strict=True):
        assert (hidden - alone(loaded, prefix, suffix)).abs().max() < TOLERANCE


def suffixes_of(encoder, view, n=8):
    pairs = [(a, b) for a in COLOURS for b in COLOURS if a != b][:n]
    return [encoder.pair(view, f"click[{a}]", f"click[{b} and {b}]") for a, b in pairs]


def test_shared_prefix_equals_full_prompts_cold_and_kept(parts) -> None:
    loaded, encoder = parts
    engine = Engine(loaded)
    view = view_of("red", list(COLOURS), [])
    prefix, suffixes = encoder.prefix(view), suffixes_of(encoder, view)
    assert len({len(s) for s in suffixes}) == 1 or suffixes
    cold = engine.run(prefix, suffixes)
    assert (cold.run, cold.reused) == (len(prefix), 0)
    check(loaded, cold, prefix, suffixes)
    kept = engine.run(prefix, suffixes[:3])
    assert (kept.run, kept.reused) == (0, len(prefix))
    check(loaded, kept, prefix, suffixes[:3])


def test_growing_views_run_only_new_text_and_stay_exact(parts) -> None:
    loaded, encoder = parts
    engine = Engine(loaded)
    done: list[str] = []
    run = 0
    for colour in COLOURS:
        done.append(f"click[{colour}]")
        view = "\n".join(["Request: a lamp", *(f"{i}. {a} -> option chosen" for i, a in enumerate(done))])
        prefix, suffixes = encoder.prefix(view), suffixes_of(encoder, view, 3)
        answer = engine.run(prefix, suffixes)
        run += answer.run
        check(loaded, answer, prefix, suffixes)
    assert run < len(prefix) + 2 * len(COLOURS)  # the whole last view once, but for a token or two at each seam
    assert len(engine._kept) <= 2


def test_views_that_are_not_append_only_are_right_too(parts) -> None:
    loaded, encoder = parts
    engine = Engine(loaded)
    draw = random.Random(0)
    for _ in range(12):
        view = view_of(draw.choice(COLOURS), draw.sample(COLOURS, 5), draw.choices(COLOURS, k=draw.randint(0, 6)))
        prefix, suffixes = encoder.prefix(view), suffixes_of(encoder, view, draw.randint(1, 5))
        answer = engine.run(prefix, suffixes)
        check(loaded, answer, prefix, suffixes)


def test_uneven_suffixes_and_more_than_one_pass(parts) -> None:
    loaded, _ = parts
    draw = random.Random(1)
    prefix = [draw.randrange(10, 60) for _ in range(40)]
    suffixes = [[draw.randrange(10, 60) for _ in range(draw.randint(1, 9))] for _ in range(150)]
    for memory in (64.0, 0.0):
        engine = Engine(loaded, memory)
        answer = engine.run(prefix, suffixes)
        assert answer.hidden.shape == (150, 32)
        assert answer.reused == 0
        check(loaded, answer, prefix, suffixes)
        assert (engine.kept_bytes > 0) == (memory > 0)


def test_memory_is_bounded_and_least_recently_used_goes_first(parts) -> None:
    loaded, _ = parts
    one = 50 * 2 * 2 * 32 * 4  # tokens x layers x (keys, values) x width x bytes
    engine = Engine(loaded, 3.5 * one / 2**20)
    prefixes = [[seed * 10 + i % 7 for i in range(50)] for seed in range(1, 6)]
    for prefix in prefixes[:3]:
        engine.run(prefix, [[5]])
    assert engine.kept_bytes == 3 * one
    engine.run(prefixes[0], [[5]])  # used again: now the second is the oldest
    engine.run(prefixes[3], [[5]])
    assert engine.kept_bytes == 3 * one
    assert engine.run(prefixes[0], [[5]]).reused == 50
    assert engine.run(prefixes[1], [[5]]).reused == 0
    engine.forget()
    assert engine.kept_bytes == 0


def test_threads_share_an_engine(parts) -> None:
    loaded, encoder = parts
    engine = Engine(loaded, 0.2)
    failures: list[BaseException] = []

    def work(seed: int) -> None:
        draw = random.Random(seed)
        try:
            for _ in range(6):
                view = view_of(draw.choice(COLOURS), list(COLOURS), draw.choices(COLOURS, k=draw.randint(0, 4)))
                prefix, suffixes = encoder.prefix(view), suffixes_of(encoder, view, 4)
                check(loaded, engine.run(prefix, suffixes), prefix, suffixes)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert engine.kept_bytes <= 0.2 * 2**20


def test_packed_rows_of_different_length_do_not_see_their_padding(parts) -> None:
    loaded, _ = parts
    rows = [Row([11, 12, 13], [[14], [15, 16]]), Row(list(range(20, 40)), [[41, 42], [43], [44, 45, 46]])]
    batch = pack(rows, loaded.pad)
    with torch.no_grad():
        hidden = loaded.model.base_model(
            input_ids=batch.input_ids, position_ids=batch.position_ids, attention_mask=batch.mask, use_cache=False
        ).last_hidden_state[batch.rows, batch.columns]
    apart = [alone(loaded, row.prefix, suffix) for row in rows for suffix in row.suffixes]
    assert (hidden - torch.stack(apart)).abs().max() < TOLERANCE


def test_common_prefix() -> None:
    draw = random.Random(2)
    for _ in range(300):
        one = [draw.randrange(2) for _ in range(draw.randrange(12))]
        other = [draw.randrange(2) for _ in range(draw.randrange(12))]
        plain = next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
        assert _common(one, other) == plain
