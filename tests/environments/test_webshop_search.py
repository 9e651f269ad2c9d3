"""Search: stems, tokens, lengths in a byte, ranking; and the original engine's rankings where they are at hand."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness.environments.webshop import analysis, store
from harness.environments.webshop.index import Index, IndexWriter, byte_length, length_byte
from harness.environments.webshop.porter import stem
from tests.environments.webshop_data import SHARED, needs_shared


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("caresses", "caress"), ("ponies", "poni"), ("cats", "cat"), ("feed", "feed"), ("agreed", "agre"),
        ("plastered", "plaster"), ("bled", "bled"), ("motoring", "motor"), ("sing", "sing"), ("conflated", "conflat"),
        ("hopping", "hop"), ("falling", "fall"), ("filing", "file"), ("happy", "happi"), ("sky", "sky"),
        ("relational", "relat"), ("conditional", "condit"), ("digitizer", "digit"), ("possibly", "possibl"),
        ("analogousli", "analog"), ("vietnamization", "vietnam"), ("triplicate", "triplic"), ("electrical", "electr"),
        ("adjustment", "adjust"), ("adoption", "adopt"), ("homologous", "homolog"), ("probate", "probat"),
        ("cease", "ceas"), ("controll", "control"), ("is", "is"), ("archaeology", "archaeolog"),
    ],
)  # fmt: skip
def test_stems_follow_porter(word: str, expected: str) -> None:
    assert stem(word) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Wi-Fi 2.4GHz router", ["Wi", "Fi", "2.4GHz", "router"]),
        ("men's size:small 1,000.50 a.b x_y _ __", ["men's", "size:small", "1,000.50", "a.b", "x_y"]),
        ("3.5mm, 10' end.", ["3.5mm", "10", "end"]),
        ("café™ ★☆ ✔️ok", ["café", "™", "★", "✔️", "ok"]),
        ("你好 カタカナ ひら", ["你", "好", "カタカナ", "ひ", "ら"]),
        ("👩‍👩‍👧 🇩🇪x", ["👩‍👩‍👧", "🇩🇪", "x"]),
    ],
)
def test_words_break_as_in_lucene(text: str, expected: list[str]) -> None:
    assert analysis.tokens(text) == expected


def test_terms_drop_possessive_and_stop_words() -> None:
    assert analysis.terms("The women's shoes and the sole") == ["women", "shoe", "sole"]
    assert [len(token) for token in analysis.tokens("a" * 300)] == [255, 45]


def test_lengths_survive_as_one_byte() -> None:
    assert [byte_length(length_byte(n)) for n in (0, 1, 23, 39, 40, 41, 42, 67, 68, 1000)] == [
        0, 1, 23, 39, 40, 40, 42, 64, 68, 984,
    ]  # fmt: skip
    decoded = [byte_length(length_byte(n)) for n in range(5000)]
    assert decoded == sorted(decoded)
    assert all(0 <= n - d <= n // 8 for n, d in enumerate(decoded))


def _index(tmp_path: Path, texts: list[str], ids: list[str]) -> Index:
    writer = IndexWriter(tmp_path)
    for text in texts:
        writer.add(text)
    writer.finish(ids)
    return Index(tmp_path, mapped=True)


def test_ranking_prefers_rare_words_and_short_texts_and_breaks_ties_by_id(tmp_path: Path) -> None:
    texts = ["red chair", "red chair", "red chair with many other words that dilute everything here", "blue table"]
    index = _index(tmp_path, texts, ["b", "a", "c", "d"])
    assert index.search("red chairs") == (1, 0, 2)
    assert index.search("the of and") == ()
    assert index.search("unheard") == ()
    assert index.search("table table red")[0] == 3


def test_only_fifty_are_found_and_the_cut_respects_ties(tmp_path: Path) -> None:
    index = _index(tmp_path, ["same words"] * 80, [f"{99 - i:02d}" for i in range(80)])
    assert index.search("words") == tuple(range(79, 29, -1))


def test_a_chunked_build_is_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [f"word{i % 7} word{i % 3} common" for i in range(50)]
    ids = [str(i) for i in range(50)]
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    whole = _index(tmp_path / "one", texts, ids)
    monkeypatch.setattr("harness.environments.webshop.index._CHUNK", 8)
    monkeypatch.setattr("harness.environments.webshop.index._CACHED_TOKENS", 2)
    pieces = _index(tmp_path / "two", texts, ids)
    for query in ("word1", "word6 word2 common", "common"):
        assert whole.search(query) == pieces.search(query)


@needs_shared
def test_first_pages_agree_with_the_original_engine() -> None:
    shop = store.load(str(SHARED), 1000, 0)
    rows = [json.loads(line) for line in (SHARED / "lucene_reference.jsonl").open(encoding="utf-8")]
    found = [[shop.product(n).asin for n in shop.index.search(row["query"])] for row in rows]
    pages = sum(mine[:10] == row["ranking"][:10] for mine, row in zip(found, rows, strict=True))
    assert pages / len(rows) >= 0.99
    assert sum(mine == row["ranking"] for mine, row in zip(found, rows, strict=True)) / len(rows) >= 0.98
