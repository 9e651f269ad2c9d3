"""Tiny: a small Qwen2-architecture model with its own tokenizer, from scratch, for runs without any download.

Words are tokens wherever they stand: text is lower-cased and split at blanks and punctuation before byte pairs are
merged, so `[red]`, `Red,` and `red` are one token and the model can compare them.  It reads focused views.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

TEMPLATE = (
    "{% for m in messages %}{{ '<s>' if loop.first else '' }}{{ m['content'] }}{% endfor %}"
    "{% if add_generation_prompt %}<ans>{% endif %}"
)
UNKNOWN, PAD, END, START, ANSWER = SPECIAL = ("<unk>", "<pad>", "</s>", "<s>", "<ans>")
LETTERS = ("A", "B", "T")
ALPHABET = [chr(code) for code in range(33, 127)]


@dataclass(frozen=True, slots=True)
class Size:
    """Architecture: 0.3 M parameters with a vocabulary of 3,000.

    `spread` is the standard deviation of fresh weights, about 1 / sqrt(width): with Qwen2's 0.02, meant for widths of a
    thousand and more, attention starts flat and the model stays at chance for the few hundred steps there are.
    """

    width: int = 64
    layers: int = 2
    heads: int = 2
    inner: int = 192
    vocabulary: int = 3000
    spread: float = 0.1


DEFAULT = Size()


def make_tokenizer(texts: Iterable[str], size: Size | None = None) -> Any:
    """A byte-pair tokenizer trained on `texts`, with one token for each of A, B and T."""
    from tokenizers import AddedToken, Tokenizer, models, normalizers, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    size = size or DEFAULT
    core = Tokenizer(models.BPE(unk_token=UNKNOWN))
    core.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Lowercase()])
    core.pre_tokenizer = pre_tokenizers.Whitespace()
    trainer = trainers.BpeTrainer(
        vocab_size=size.vocabulary, special_tokens=list(SPECIAL), initial_alphabet=ALPHABET, show_progress=False
    )
    core.train_from_iterator(texts, trainer)
    core.add_tokens([AddedToken(letter, single_word=True, normalized=False) for letter in LETTERS])
    return PreTrainedTokenizerFast(
        tokenizer_object=core,
        unk_token=UNKNOWN,
        pad_token=PAD,
        eos_token=END,
        bos_token=START,
        chat_template=TEMPLATE,
    )


def make_config(tokenizer: Any, size: Size | None = None) -> Any:
    """The model's configuration."""
    from transformers import Qwen2Config

    size = size or DEFAULT
    return Qwen2Config(
        vocab_size=len(tokenizer),
        hidden_size=size.width,
        num_hidden_layers=size.layers,
        num_attention_heads=size.heads,
        num_key_value_heads=size.heads,
        intermediate_size=size.inner,
        max_position_embeddings=8192,
        initializer_range=size.spread,
        tie_word_embeddings=True,
        pad_token_id=tokenizer.pad_token_id,
        eos_token_id=tokenizer.eos_token_id,
        bos_token_id=tokenizer.bos_token_id,
        attn_implementation="sdpa",
    )


def make_model(tokenizer: Any, kind: str, seed: int, size: Size | None = None) -> Any:
    """Fresh weights: a language model (`lm`) or a classifier with one output."""
    import torch
    from transformers import Qwen2ForCausalLM, Qwen2ForSequenceClassification

    config = make_config(tokenizer, size)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        if kind == "lm":
            return Qwen2ForCausalLM(config)
        config.num_labels = 1
        return Qwen2ForSequenceClassification(config)


def describe(size: Size | None = None) -> dict[str, Any]:
    """The architecture, for identities and cards."""
    return {"architecture": "qwen2", **asdict(size or DEFAULT)}


def save(tokenizer: Any, model: Any, folder: Path) -> None:
    """Write both in the Hugging Face layout."""
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
