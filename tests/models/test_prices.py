"""Prices: dates, unknowns, and what a response cache saves."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from harness.errors import UsageError
from harness.models.prices import Cost, load_prices
from harness.records import Usage

EARLY, LATE = date(2026, 8, 1), date(2026, 11, 1)


def test_the_price_of_the_day_counts() -> None:
    table = load_prices()
    usage = Usage(1, 1_000_000, 1_000_000, 500_000, 0)
    assert table.cost("deepseek-v4-flash", usage, EARLY).full == pytest.approx(0.07 + 0.0014 + 0.28)
    assert table.cost("deepseek-v4-flash", usage, LATE).full == pytest.approx(0.075 + 0.0015 + 0.60)
    assert table.cost("deepseek-v4-flash", usage, date(2020, 1, 1)) == Cost(None, None)
    assert table.version


def test_unknown_stays_unknown() -> None:
    table = load_prices()
    assert table.cost("smollm2", Usage(1, 5, 5), LATE) == Cost(None, None)
    assert table.cost("deepseek-flash", Usage(1, None, 5), LATE) == Cost(None, None)
    assert table.cost("deepseek-flash", Usage(1, 5, 5, None), LATE) == Cost(None, None)


def test_what_a_response_cache_saves_is_not_billed() -> None:
    usage = Usage(1, 1_000_000, 100_000, 0, 0, 0.0, 250_000, 100_000)
    cost = load_prices().cost("deepseek-flash", usage, LATE)
    assert cost.full == pytest.approx(0.15 + 0.06)
    assert cost.billed == pytest.approx(0.75 * 0.15)


@pytest.mark.parametrize("text", ["", "version: 1", "version: 1\nmodels: {m: [{from: someday}]}", "a: [", "[1]"])
def test_a_broken_table_is_a_message(tmp_path: Path, text: str) -> None:
    path = tmp_path / "prices.yaml"
    path.write_text(text)
    with pytest.raises(UsageError, match="price table"):
        load_prices(path)
    with pytest.raises(UsageError, match="Cannot read"):
        load_prices(tmp_path / "none.yaml")
