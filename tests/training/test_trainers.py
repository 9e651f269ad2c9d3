"""Training: our losses against the plain ones, learning, resuming, finding, refusing."""

from __future__ import annotations

import csv
import json

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("trl")

from harness.errors import UsageError  # noqa: E402
from methods.judges.comparator import LocalComparator  # noqa: E402
from methods.training import tiny  # noqa: E402
from methods.training.artefact import read  # noqa: E402
from methods.training.critic import train_critic  # noqa: E402
from methods.training.data import group_pairs, group_targets  # noqa: E402
from methods.training.diagnostics import evaluate_judge  # noqa: E402
from methods.training.examples import PairCollator, TargetCollator, pair_examples, target_examples  # noqa: E402
from methods.training.settings import critic_preset, preset  # noqa: E402
from methods.training.sft import train_comparator  # noqa: E402
from methods.training.trainers import answer_loss, value_loss  # noqa: E402
from tests.training.helpers import critic_rows, pair_rows, tiny_comparator  # noqa: E402

pytestmark = pytest.mark.models
SMALL = {"epochs": 4.0, "learning_rate": 5e-3, "rows": 4, "evaluations": 4}


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.set_num_threads(1)
    monkeypatch.setattr(tiny, "DEFAULT", tiny.Size(width=32, layers=2, heads=2, inner=64, vocabulary=300))


def rows_of(groups: int = 40) -> list:
    return pair_rows(groups, "train", 1) + pair_rows(12, "validation", 2) + pair_rows(20, "test", 3)


def test_shared_rows_give_the_loss_and_gradient_of_separate_prompts() -> None:
    model, tokenizer, encoder = tiny_comparator()
    groups = group_pairs(pair_rows(5, "train", 0))
    collator = PairCollator(tokenizer.pad_token_id)
    found = []
    for per_row in (1, 8):
        model.zero_grad()
        examples = pair_examples(groups, encoder, per_row, 4000)
        loss, _ = answer_loss(model, collator(examples))
        loss.backward()
        found.append((len(examples), float(loss.detach()), torch.cat([p.grad.flatten() for p in model.parameters()])))
    (many, one_loss, one_grad), (few, other_loss, other_grad) = found
    assert many > 3 * few
    assert abs(one_loss - other_loss) < 1e-5
    assert (one_grad - other_grad).abs().max() < 1e-4 * one_grad.abs().max().clamp(min=1)


def test_our_loss_is_the_one_that_the_model_itself_computes() -> None:
    model, tokenizer, encoder = tiny_comparator()
    batch = PairCollator(tokenizer.pad_token_id)(pair_examples(group_pairs(pair_rows(4, "train", 0)), encoder, 8, 4000))
    with torch.no_grad():
        ours, right = answer_loss(model, batch)
        theirs = model(**batch, use_cache=False).loss
    assert abs(float(ours) - float(theirs)) < 1e-5
    assert 0 <= float(right) <= 1


def test_critic_loss_is_the_mean_over_separate_actions() -> None:
    _, tokenizer, encoder = tiny_comparator()
    model = tiny.make_model(tokenizer, "classifier", 0)
    groups = group_targets(critic_rows(3, "train", 0))
    losses = []
    for per_row in (1, 4):
        with torch.no_grad():
            batch = TargetCollator(tokenizer.pad_token_id)(target_examples(groups, encoder, per_row, 4000))
            losses.append(float(value_loss(model, batch)))
    assert abs(losses[0] - losses[1]) < 1e-5


def test_comparator_learns_the_rule_and_is_found_again(tmp_path) -> None:
    rows, out = rows_of(150), tmp_path / "judge"
    settings = preset("tiny").changed(**SMALL)
    seen: list[int] = []
    made = train_comparator(rows, out, settings=settings, progress=lambda step, steps, numbers: seen.append(step))
    assert made.fresh
    assert seen == sorted(seen)
    found = evaluate_judge(out, rows, "test")["shelf"]
    assert found["decisive_accuracy"]["low"] > 0.8, found
    assert found["order_consistency"]["value"] > 0.7
    assert found["valid_outputs"]["value"] > 0.98
    assert json.loads((out / "diagnostics.json").read_text())["test"]["shelf"]["pairs"] == found["pairs"]
    again = train_comparator(rows, out, settings=settings)
    assert not again.fresh
    assert again.hash == made.hash
    with (out / "curves.csv").open() as file:
        names = {row["name"] for row in csv.DictReader(file)}
    assert {"loss", "eval_loss", "eval_accuracy"} <= names
    card = made.card
    assert card["data"]["train"]["rows"] == sum(row["split"] == "train" for row in rows)
    assert card["tokens_an_epoch"] < card["tokens_an_epoch_without_sharing"]
    assert not (out / "checkpoints").exists()
    with pytest.raises(UsageError, match=r"settings.learning_rate \(0.005 there, 0.1 now\)"):
        train_comparator(rows, out, settings=settings.changed(learning_rate=0.1))
    with pytest.raises(UsageError, match=r"data\.train"):
        train_comparator(rows[4:], out, settings=settings)


def test_an_interrupted_training_ends_like_an_undisturbed_one(tmp_path) -> None:
    rows, settings = rows_of(16), preset("tiny").changed(**SMALL)
    whole = train_comparator(rows, tmp_path / "whole", settings=settings)

    class Killed(Exception):
        pass

    def stop(step: int, steps: int, numbers) -> None:
        if "eval_loss" in numbers and step >= steps // 2:
            raise Killed

    out = tmp_path / "broken"
    with pytest.raises(Killed):
        train_comparator(rows, out, settings=settings, progress=stop)
    with pytest.raises(UsageError, match="holds no trained judge"):
        read(out)
    half = next(out.glob("checkpoints/checkpoint-*"))
    (half.parent / "checkpoint-9999").mkdir()  # what a kill in the middle of a checkpoint leaves
    resumed = train_comparator(rows, out, settings=settings)
    assert resumed.card["resumed"]
    assert resumed.hash == whole.hash
    one, other = (LocalComparator(str(tmp_path / name)) for name in ("whole", "broken"))
    row = rows[-1]
    pairs = [(row["first"], row["second"])]
    assert (one.logits(row["view"], pairs) - other.logits(row["view"], pairs)).abs().max() < 1e-4


def test_same_seed_same_weights(tmp_path) -> None:
    rows, settings = rows_of(8), preset("tiny").changed(**SMALL, most_steps=6)
    weights = []
    for name in ("one", "two"):
        train_comparator(rows, tmp_path / name, settings=settings)
        weights.append((tmp_path / name / "model.safetensors").read_bytes())
    assert weights[0] == weights[1]
    other = train_comparator(rows, tmp_path / "three", settings=settings.changed(seed=1))
    assert (other.folder / "model.safetensors").read_bytes() != weights[0]


def test_critic_learns_the_rule(tmp_path) -> None:
    rows = critic_rows(120, "train", 1) + critic_rows(12, "validation", 2) + critic_rows(20, "test", 3)
    made = train_critic(rows, tmp_path / "critic", settings=critic_preset("tiny").changed(**SMALL))
    found = evaluate_judge(made.folder, rows, "test")["shelf"]
    assert found["ranking_accuracy"]["low"] > 0.8, found
    assert found["bce"] < found["bce_of_the_mean"]
    assert found["spearman"] > 0.5


def test_no_data_is_a_message(tmp_path) -> None:
    with pytest.raises(UsageError, match="no training pairs"):
        train_comparator(rows_of(2), tmp_path, environments=["elsewhere"])
    with pytest.raises(UsageError, match="no records"):
        train_critic([], tmp_path)
    with pytest.raises(UsageError, match=r"holds no train.parquet"):
        train_comparator(tmp_path, tmp_path / "out")


def test_a_saved_judge_reads_text_as_it_did_in_training(tmp_path) -> None:
    from harness.models.weights import load

    made = train_comparator(rows_of(6), tmp_path / "judge", settings=preset("tiny").changed(**SMALL, most_steps=2))
    tokens = load(str(made.folder)).tokenizer.tokenize("Request: I want A lamp, a RED zebra!")
    assert tokens == ["request", ":", "i", "want", "A", "lamp", ",", "a", "red", "<unk>", "<unk>"]


def test_bf16_is_for_arithmetic_alone(tmp_path) -> None:
    from safetensors.torch import load_file

    settings = preset("tiny").changed(**SMALL, most_steps=8)
    cards = {}
    for autocast in ("none", "bf16"):
        made = train_comparator(rows_of(8), tmp_path / autocast, settings=settings.changed(autocast=autocast))
        weights = load_file(made.folder / "model.safetensors")
        assert {tensor.dtype for tensor in weights.values()} == {torch.float32}
        cards[autocast] = made.card["best_validation_loss"]
    assert cards["none"] != cards["bf16"], "nothing was computed in bf16"
    assert abs(cards["none"] - cards["bf16"]) < 0.2


@pytest.mark.slow
def test_smollm2_trains_by_supervised_fine_tuning(tmp_path) -> None:
    settings = preset("smollm2").changed(most_steps=3, evaluations=1, rows=2)
    rows = pair_rows(6, "train", 1) + pair_rows(2, "validation", 2)
    made = train_comparator(rows, tmp_path, "smollm2", settings=settings)
    assert made.card["steps"] == 3
    assert made.card["parameters"] == 134515008
    assert LocalComparator(str(tmp_path), strict=False).logits("a state", [("x", "y")]).isfinite().all()
