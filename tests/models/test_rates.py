"""Rates: what is priced, what is free, what is unknown."""

from __future__ import annotations

import pytest

from harness.models.rates import FREE, Rate, rate_of

HERE = {"base_url": "http://127.0.0.1:8000/v1", "model": "x"}
SOLD = {"base_url": "https://api.deepseek.com", "model": "deepseek-flash"}


def test_endpoints_here_and_parts_without_one_are_free() -> None:
    assert rate_of({}) == rate_of(HERE) == rate_of({"user": HERE}) == FREE
    assert FREE.of(None, 5) == 0.0


def test_the_dearest_counts_and_one_unknown_makes_it_unknown() -> None:
    rate = rate_of({"a": HERE, "b": [SOLD]})
    assert rate is not None
    assert rate.completion > 0
    assert rate_of({"a": SOLD, "b": {"base_url": "https://other", "model": "y"}}) is None
    assert Rate(1.0, 2.0).of(1_000_000, 500_000) == pytest.approx(2.0)
    assert Rate(1.0, 2.0).of(1_000_000, None) is None
