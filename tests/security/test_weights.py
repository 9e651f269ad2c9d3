"""A checkpoint is data: one that is a pickle is refused before any of it runs."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from harness.errors import UsageError

pytest.importorskip("transformers")


class Bomb:
    """Makes a folder when it is unpickled."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.mkdir, (self.path,)


@pytest.mark.models
def test_a_pickled_checkpoint_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    from harness.models import weights

    class Silent:
        chat_template = "x"

        @classmethod
        def from_pretrained(cls, *_: object, **__: object) -> Silent:
            return cls()

    monkeypatch.setattr(weights, "tokenizer_class", lambda _: Silent)
    monkeypatch.setattr(weights, "pad_id", lambda *_: 0)
    shape = {"hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1, "num_attention_heads": 1}
    model = LlamaForCausalLM(LlamaConfig(vocab_size=16, num_key_value_heads=1, **shape))
    good, evil = tmp_path / "good", tmp_path / "evil"
    model.save_pretrained(good)
    assert weights.load_parts(str(good), "lm", None, torch.float32)[0].config.vocab_size == 16
    evil.mkdir()
    (evil / "config.json").write_bytes((good / "config.json").read_bytes())
    torch.save({"x": Bomb(str(tmp_path / "ran"))}, evil / "pytorch_model.bin")
    with pytest.raises(UsageError):
        weights.load_parts(str(evil), "lm", None, torch.float32)
    assert not (tmp_path / "ran").exists()
