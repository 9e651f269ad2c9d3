"""Catalogues for the WebShop tests: the shared official files (skipped when absent) and a hand-made shop of six."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from harness.environments.webshop import WebShop

SHARED = Path(os.environ.get("COTA_BENCH_SHARED") or Path(__file__).parents[2] / "../shared/data") / "webshop"
needs_shared = pytest.mark.skipif(not SHARED.is_dir(), reason=f"no official WebShop files at {SHARED}")


def record(asin: str, name: str, **changes: Any) -> dict[str, Any]:
    """A product record in the official shape."""
    return {
        "asin": asin,
        "name": name,
        "full_description": f"All about the {name}.",
        "small_description": ["First point", "", "Second point"],
        "pricing": "$19.99",
        "images": ["x"],
        "product_category": "Home › Furniture › Chairs",
        "customization_options": "",
        "category": "garden",
        "query": " Chairs ",
        "page": 1,
        **changes,
    }


def options(**named: list[str]) -> dict[str, Any]:
    """Options in the official shape."""
    return {name: [{"value": value, "image": None} for value in values] for name, values in named.items()}


RECORDS = [
    record(
        "B00000000A",
        "Blue Wooden Garden Chair",
        customization_options=options(Color=["Red", "Navy Blue"], Size=["S", "M/L"]),
    ),
    record("B00000000B", "Wooden Garden Table", query="tables", pricing="$8.50"),
    record(
        "B00000000C", "Green Tea Bags", product_category="Grocery › Tea", query="tea", category="grocery", pricing=""
    ),
    record("B00000000D", "Folding Garden Chair", pricing="$10.00 - $30.00", full_description=""),
    record("B00000000A", "A second record with the first one's id"),
    record("nan", "No id"),
    record("B00000000EXTRALONG", "Id too long"),
    record(
        "B00000000E",
        "Garden Chair Cushion",
        pricing="$1,019.99",
        customization_options=options(Pattern=['9" x 9"', "café", "plain"]),
    ),
]
FACTS: dict[str, Any] = {
    "B00000000A": {
        "attributes": ["solid wood", "easy clean"],
        "instruction": "Find me solid wood, easy clean chairs",
        "instruction_attributes": ["solid wood", "easy clean"],
    },
    "B00000000B": {"attributes": []},
    "B00000000D": {"attributes": ["light"], "instruction": "Find me light chairs", "instruction_attributes": ["light"]},
    "B00000000E": {"attributes": ["soft"], "instruction": "Find me soft cushions", "instruction_attributes": ["soft"]},
}
PEOPLE: dict[str, Any] = {
    "B00000000A": [
        {
            "instruction": "i want a blue chair.",
            "instruction_attributes": ["solid wood"],
            "instruction_options": ["navy blue"],
        },
        {"instruction": "no attributes, so no goal", "instruction_attributes": [], "instruction_options": []},
    ]
}


def write(folder: Path, records: Any = None, facts: Any = None, people: Any = None) -> Path:
    """A catalogue folder with these contents (text is written as it is)."""
    folder.mkdir(exist_ok=True)
    for name, value in (
        ("items_shuffle.json", RECORDS if records is None else records),
        ("items_ins_v2.json", FACTS if facts is None else facts),
        ("items_human_ins.json", PEOPLE if people is None else people),
    ):
        (folder / name).write_text(value if isinstance(value, str) else json.dumps(value), encoding="utf-8")
    return folder


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The hand-made catalogue, with a cache of its own."""
    monkeypatch.setenv("COTA_BENCH_CACHE", str(tmp_path / "cache"))
    return write(tmp_path / "shop")


@pytest.fixture(scope="module")
def shop() -> WebShop:
    """The embedded synthetic catalogue."""
    return WebShop()
