"""Loading: rules of the official files, streaming, broken files, and the embedded catalogue."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from harness.environments.webshop import WebShop, catalogue, goals, reader, store
from harness.environments.webshop.build import Source, ensure
from harness.errors import UsageError
from tests.environments.webshop_data import PEOPLE, RECORDS, folder, record, write

__all__ = ["folder"]


def test_records_load_by_the_originals_rules(folder: Path) -> None:
    shop = store.load(str(folder), None, 0)
    products = list(shop.products())
    assert [p.asin[-1] for p in products] == ["A", "B", "C", "D", "E"]
    assert products[0].title == "Blue Wooden Garden Chair"
    assert products[0].options == (("color", ("red", "navy blue")), ("size", ("s", "m | l")))
    assert [p.tag for p in products] == ["$19.99", "$8.5", "$100.0", "$10.0 to $30.0", "$1019.99"]
    assert products[2].attributes == ("DUMMY_ATTR",)
    assert products[1].attributes == ()
    assert products[0].query == "chairs"
    expected = "blue wooden garden chair all about the blue wooden garden chair. first point color: red, navy blue"
    assert products[0].document() == f"{expected}, and size: s, m | l"
    assert catalogue.from_json(catalogue.to_json(products[0])) == products[0]


def test_head_takes_records_before_they_are_filtered(folder: Path) -> None:
    assert store.load(str(folder), 6, 0).size == 4


def test_large_and_small_catalogues_answer_alike(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small = store.load(str(folder), None, 0)
    monkeypatch.setattr(store, "IN_MEMORY", 0)
    large = store.Store(small._folder)
    assert list(large.products()) == list(small.products()) == [large.product(n) for n in range(5)]
    assert large.index.search("garden chair") == small.index.search("garden chair")
    assert large.goal_asins("synthetic") == small.goal_asins("synthetic")
    assert large.nouns("Wooden Garden Chair") == small.nouns("Wooden Garden Chair")


@pytest.mark.parametrize("block", [1, 7, 64])
def test_streaming_gives_what_json_gives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: int) -> None:
    monkeypatch.setattr(reader, "_BLOCK", block)
    values: list[Any] = [{"a": 'ü\\"]}, {'}, [1, [2]], 1234567, "x", {}, None]
    path = tmp_path / "x.json"
    path.write_text(json.dumps(values, indent=2), encoding="utf-8")
    assert [value for _, value in reader.array(path)] == values
    path.write_text(json.dumps({"k": values, "l": 5}), encoding="utf-8")
    assert dict(reader.members(path)) == {"k": values, "l": 5}
    path.write_text(" [ ] ", encoding="utf-8")
    assert list(reader.array(path)) == []


BROKEN = {
    "not an object": ([*RECORDS, "oops"], "record 8 is broken: it is str"),
    "keys": ([RECORDS[0], {"asin": "B000000009"}], "record 1 (B000000009) is broken: it lacks name"),
    "price": ([record("B000000001", "X", pricing="free")], "no dollar sign"),
    "bad price": ([record("B000000001", "X", pricing="$a - $b")], "no readable price"),
    "options": ([record("B000000001", "X", customization_options={"Size": [{"no": 1}]})], "option 'Size'"),
    "text": ([record("B000000001", 5)], "name is int"),  # type: ignore[arg-type]
    "no array": ({"a": 1}, "a JSON array of products is expected"),
    "cut off": (json.dumps(RECORDS)[:900], "broken JSON in record 2"),
    "garbage": ("[{}, nonsense]", "record 0 is broken"),
    "comma": (json.dumps(RECORDS[:2])[:-1] + " x", "after record 1"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_record_names_file_and_record(folder: Path, case: str) -> None:
    records, message = BROKEN[case]
    write(folder, records)
    with pytest.raises(UsageError) as caught:
        WebShop(catalogue=str(folder)).reset("webshop-0", 0)
    assert message in str(caught.value)
    assert "items_shuffle.json" in str(caught.value)


def test_a_broken_entry_of_the_side_files_is_named(folder: Path) -> None:
    write(folder, facts={"B00000000A": {"attributes": "solid"}})
    with pytest.raises(UsageError, match=r"record 0 \(B00000000A\).*attributes is not a list"):
        store.load(str(folder), None, 0)
    write(folder, people={**PEOPLE, "B00000000B": [{"instruction": "x"}]})
    with pytest.raises(UsageError, match="human instructions are broken"):
        store.load(str(folder), None, 0)


def test_missing_folders_and_files_say_what_is_expected(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="does not exist"):
        store.load(str(tmp_path / "nowhere"), None, 0)
    (folder / "items_ins_v2.json").unlink()
    with pytest.raises(UsageError, match=r"items_ins_v2\.json nor items_ins_v2_1000\.json"):
        store.load(str(folder), None, 0)
    with pytest.raises(UsageError, match="products=0"):
        store.load("synthetic", 0, 0)


def test_a_changed_file_makes_another_catalogue(folder: Path) -> None:
    before = store.load(str(folder), None, 0)
    write(folder, [*RECORDS, record("B000000099", "New Chair")])
    after = store.load(str(folder), None, 0)
    assert (before.size, after.size) == (5, 6)
    assert before.digest != after.digest


def test_the_embedded_catalogue_is_seeded_and_large_enough(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COTA_BENCH_CACHE", str(tmp_path))
    shop, other = store.load("synthetic", None, 0), store.load("synthetic", None, 1)
    assert shop.size >= 1000
    assert shop.count("synthetic") >= 6000
    assert other.digest != shop.digest
    again = store.Store(ensure(tmp_path, Source()))
    assert again.digest == shop.digest
    products = list(shop.products())
    assert {p.category for p in products} == {"fashion", "garden", "electronics", "beauty", "grocery"}
    assert sum(len(p.prices) == 2 for p in products) > 100
    assert any(p.prices == (100.0,) for p in products)
    assert sum(goals.combinations(p) == 0 for p in products) > 200
    assert len({p.title for p in products}) > 0.95 * len(products)


def test_several_processes_may_make_the_same_catalogue(tmp_path: Path) -> None:
    import subprocess
    import sys

    code = "from harness.environments.webshop import store; s = store.load('synthetic', 60, 3); print(s.digest, s.size)"
    jobs = [
        subprocess.Popen(
            [sys.executable, "-c", code],
            stdout=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).parents[2],
            env={**__import__("os").environ, "COTA_BENCH_CACHE": str(tmp_path), "PYTHONPATH": "."},
        )
        for _ in range(3)
    ]
    found = {job.communicate()[0] for job in jobs}
    assert len(found) == 1
    assert found.pop().endswith(" 60\n")
    assert not list((tmp_path / "webshop").glob("making-*"))
