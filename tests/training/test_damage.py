"""Damage in the cache: one message that says what to delete, never a judge that fails at each review without a word."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness.cache import cache_dir
from harness.errors import UsageError
from methods.commands import audit
from methods.training.artefact import find, refuse_damaged
from methods.training.diagnostics import FILE, remembered


@pytest.fixture
def judge(tmp_path: Path) -> Path:
    numpy = pytest.importorskip("numpy")
    save = pytest.importorskip("safetensors.numpy").save_file
    save({"w": numpy.zeros((64, 64))}, tmp_path / "model.safetensors")
    (tmp_path / "identity.json").write_text(json.dumps({"hash": "0" * 64}))
    (tmp_path / "card.json").write_text("{}")
    (tmp_path / FILE).write_text("{}")
    return tmp_path


def test_weights_that_were_cut_are_refused(judge: Path) -> None:
    refuse_damaged(judge)
    weights = judge / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-100])
    with pytest.raises(UsageError, match=r"model\.safetensors is damaged .* Delete .* run the same command again"):
        refuse_damaged(judge)


@pytest.mark.parametrize("text", ["{", "[]", "\x00"])
@pytest.mark.parametrize("name", ["identity.json", "card.json", FILE])
def test_a_damaged_file_names_itself(judge: Path, name: str, text: str) -> None:
    (judge / name).write_text(text)
    reader = (lambda: remembered(judge, "test")) if name == FILE else (lambda: find(judge, {"hash": "0" * 64}))
    with pytest.raises(UsageError, match=rf"{name} is damaged .* Delete {judge}"):
        reader()


def test_a_cache_that_cannot_be_made_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("COTA_BENCH_CACHE", str(tmp_path / "file"))
    with pytest.raises(UsageError, match="COTA_BENCH_CACHE"):
        cache_dir("trained")


def test_an_audit_of_nothing_or_into_a_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="nothing would be audited"):
        audit("quickstart", tmp_path, fired=0, quiet=0)
    (tmp_path / "file").write_text("mine")
    with pytest.raises(UsageError, match="a file is there already"):
        audit("quickstart", tmp_path, fired=1, quiet=1, out=tmp_path / "file")
