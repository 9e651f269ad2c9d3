"""Rates: what a million tokens of a study's part cost, by where the part asks for them.

A part without an address, and one whose address is this machine, costs nothing by the token.  Anything else costs what
the price table says, or is unknown.  The provider's prefix cache is left out, so a price made from rates is a ceiling.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any
from urllib.parse import urlsplit

from harness.models.prices import MILLION, PriceTable, load_prices

HERE = ("localhost", "127.0.0.1", "::1", "0.0.0.0")  # noqa: S104  compared with, never bound to


@dataclass(frozen=True, slots=True)
class Rate:
    """Dollars for a million prompt and completion tokens."""

    prompt: float = 0.0
    completion: float = 0.0

    def of(self, prompt: float | None, completion: float | None) -> float | None:
        """Dollars for so many tokens; nothing to pay is known even where the tokens are not."""
        if self == FREE:
            return 0.0
        if prompt is None or completion is None:
            return None
        return (prompt * self.prompt + completion * self.completion) / MILLION


FREE = Rate()


@cache
def table() -> PriceTable:
    """The price table that comes with the package."""
    return load_prices()


def rate_of(params: Mapping[str, Any]) -> Rate | None:
    """The dearest rate among the endpoints in a part's parameters; None when one of them has no known price."""
    rates = [_rate(url, model) for url, model in _endpoints(params)]
    if any(rate is None for rate in rates):
        return None
    known = [rate for rate in rates if rate is not None]
    return max(known, key=lambda rate: (rate.completion, rate.prompt), default=FREE)


def _rate(url: str, model: str) -> Rate | None:
    if urlsplit(url).hostname in HERE:
        return FREE
    price = table().price(model)
    return None if price is None else Rate(price.prompt, price.completion)


def _endpoints(value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping):
        if isinstance(value.get("base_url"), str) and isinstance(value.get("model"), str):
            yield value["base_url"], value["model"]
        for inner in value.values():
            yield from _endpoints(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _endpoints(inner)
