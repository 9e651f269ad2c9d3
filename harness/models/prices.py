"""Prices: what usage costs by a dated table; unknown usage or an unlisted model gives an unknown price, never zero.

`billed` leaves out what a response cache gave, `full` is what the same usage would have cost without it.  The table's
version goes next to every figure made from it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from importlib import resources
from pathlib import Path
from typing import Any

import yaml

from harness.errors import UsageError
from harness.records import Usage

MILLION = 1_000_000


@dataclass(frozen=True, slots=True)
class Price:
    """Dollars for a million tokens, from a day on."""

    since: date
    prompt: float
    cached: float
    completion: float
    note: str = ""


@dataclass(frozen=True, slots=True)
class Cost:
    """What usage costs; None is unknown."""

    billed: float | None
    full: float | None


@dataclass(frozen=True, slots=True)
class PriceTable:
    """All prices of one version."""

    version: str
    currency: str
    models: Mapping[str, Sequence[Price]]

    def price(self, model: str, day: date | None = None) -> Price | None:
        """The price in force on a day (today), or None for a model that is not listed or was not sold yet."""
        when = day or date.today()
        began = [price for price in self.models.get(model, ()) if price.since <= when]
        return began[-1] if began else None

    def cost(self, model: str, usage: Usage, day: date | None = None) -> Cost:
        """Cost of usage of one model."""
        price = self.price(model, day)
        if price is None:
            return Cost(None, None)
        prompt, completion, cached = usage.prompt, usage.completion, usage.cached
        if prompt is None or completion is None or cached is None:
            return Cost(None, None)
        full = ((prompt - cached) * price.prompt + cached * price.cached + completion * price.completion) / MILLION
        if usage.saved_prompt is None or usage.saved_completion is None:
            return Cost(None, full)
        # How much of what was saved would have hit the provider's cache is taken in proportion.
        share = usage.saved_prompt / prompt if prompt else 0.0
        rest = (prompt - cached) * price.prompt + cached * price.cached
        billed = rest * (1 - share) + (completion - usage.saved_completion) * price.completion
        return Cost(billed / MILLION, full)


def load_prices(path: str | Path | None = None) -> PriceTable:
    """The table that comes with the package, or one of your own.

    Raises:
        UsageError: a file that cannot be read or is no price table.
    """
    place = Path(path) if path is not None else resources.files("harness.models") / "prices.yaml"
    try:
        text = place.read_text(encoding="utf-8")
        data = yaml.safe_load(text)
        models = {str(name): _entries(entries) for name, entries in data["models"].items()}
        return PriceTable(str(data["version"]), str(data.get("currency", "USD")), models)
    except OSError as error:
        raise UsageError(f"Cannot read the price table {path}: {error.strerror or error}.") from error
    except (yaml.YAMLError, KeyError, TypeError, ValueError, AttributeError) as error:
        raise UsageError(
            f"{path or 'prices.yaml'} is no price table ({type(error).__name__}: {error}). It holds `version` and "
            "`models`; each entry has `from` (a day), `prompt`, `cached` and `completion`."
        ) from error


def _entries(entries: Sequence[Mapping[str, Any]]) -> list[Price]:
    prices = [
        Price(
            date.fromisoformat(str(entry["from"])),
            float(entry["prompt"]),
            float(entry["cached"]),
            float(entry["completion"]),
            str(entry.get("note", "")),
        )
        for entry in entries
    ]
    return sorted(prices, key=lambda price: price.since)
