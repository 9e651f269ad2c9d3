"""Tiny: a small Qwen2-architecture model with its own tokenizer, from scratch, for runs without any download.

Words are tokens, and only words that many tasks share are known: `buy`, `take`, `drawer`, not the colour that one
request wants.  A model that can read every word of some hundred tasks learns these tasks by heart (on WebShop pairs it
went from 0.68 down to 0.46 on held-out tasks while its training loss fell); what matters about the other words, that
they match the goal, focused views say in words that are known.
"""

from __future__ import annotations

from collections import Counter
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


@dataclass(frozen=True, slots=True)
class Size:
    """Architecture: 0.11 M parameters with some hundred known words; wider or deeper gained nothing on held-out tasks.

    Attributes:
        vocabulary: at most so many words are known.
        share: of the tasks that must have a word for it to be known.
        spread: standard deviation of fresh weights, about 1 / sqrt(width). With Qwen2's 0.02, meant for widths of a
            thousand, attention starts flat and the model is still at chance after the few hundred steps there are.
    """

    width: int = 64
    layers: int = 2
    heads: int = 2
    inner: int = 192
    vocabulary: int = 3000
    share: float = 0.3
    spread: float = 0.1


DEFAULT = Size()


def make_tokenizer(documents: Iterable[tuple[str, str]], size: Size | None = None, closed: Iterable[str] = ()) -> Any:
    """A word tokenizer from (task, text) documents, with one token for each of A, B and T.

    A word is known when a good share of the tasks (`size.share`) have it; all others are one unknown word.  Words of
    the texts in `closed`, views that name nothing of their own task, are known however rare.
    """
    from tokenizers import AddedToken, Tokenizer, models, normalizers, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    size = size or DEFAULT
    normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Lowercase()])
    splitter = pre_tokenizers.Sequence([pre_tokenizers.Whitespace(), pre_tokenizers.Punctuation()])
    tasks: dict[str, set[str]] = {}
    for task, text in documents:
        pieces = splitter.pre_tokenize_str(normalizer.normalize_str(text))
        tasks.setdefault(task, set()).update(piece for piece, _ in pieces)
    counts = Counter(word for found in tasks.values() for word in found)
    needed = max(size.share * len(tasks), 2 if len(tasks) > 1 else 1)
    common = sorted((word for word, n in counts.items() if n >= needed), key=lambda word: (-counts[word], word))
    rare = sorted({piece for text in closed for piece, _ in splitter.pre_tokenize_str(normalizer.normalize_str(text))})
    digits = [str(n) for n in range(30 if rare else 10)]  # closed views count steps
    known = list(dict.fromkeys([*SPECIAL, *digits, *common, *rare]))[: size.vocabulary]
    core = Tokenizer(models.WordLevel({word: i for i, word in enumerate(known)}, unk_token=UNKNOWN))
    core.normalizer, core.pre_tokenizer = normalizer, splitter
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
