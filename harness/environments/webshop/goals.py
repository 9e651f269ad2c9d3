"""Goals: what a shopper is asked to buy, in the official order, and the numbers that the original draws unseeded.

A product with an instruction gives one goal for each combination of its option values (option names sorted); the list
of all goals is then shuffled with seed 233.  A goal is stored as two numbers (product, combination) and expanded when
it is needed, so the goals of a million products cost a few megabytes.

Upstream draws two things without a seed: the price of a product that shows a range, and the upper price named in an
instruction.  Here both come from a named stream a product (`Draws`), or from a panel file that froze one draw.
"""

from __future__ import annotations

import gzip
import json
import math
import random
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.environments.webshop.catalogue import Product
from harness.errors import UsageError
from harness.seeds import digest, stream

ORDER_SEED = 233
NO_LIMIT = 1_000_000.0
LIMITS = tuple(10.0 * i for i in range(1, 100))


@dataclass(frozen=True, slots=True)
class Goal:
    """One task: `options` are (name, value) pairs, or values alone when a person wrote the instruction."""

    index: int
    number: int
    asin: str
    title: str
    query: str
    segments: frozenset[str]
    instruction: str
    attributes: tuple[str, ...]
    options: tuple[tuple[str, str], ...] | tuple[str, ...]
    limit: float


@dataclass(frozen=True)
class Panel:
    """One frozen draw of the original: product prices, the upper price of each goal, and what the goals are."""

    prices: dict[str, float]
    limits: list[float]
    asins: list[str]
    instructions: list[str]
    digest: str


@dataclass(frozen=True)
class Draws:
    """Prices and limits by seed, a stream for each product: no draw depends on another or on the order."""

    seed: int
    panel: Panel | None = None

    def price(self, product: Product) -> float:
        """What the product costs, in dollars."""
        if self.panel is not None and product.asin in self.panel.prices:
            return self.panel.prices[product.asin]
        if len(product.prices) == 1:
            return product.prices[0]
        return stream(part="webshop-price", seed=self.seed, asin=product.asin).uniform(*product.prices)

    def limit(self, product: Product, request: int = -1) -> float:
        """The upper price of a goal for this product (one for all its combinations), `NO_LIMIT` for none."""
        price = self.price(product)
        higher = [limit for limit in LIMITS if limit > price][:4]
        if len(higher) < 2:
            return NO_LIMIT
        draw = stream(part="webshop-limit", seed=self.seed, asin=product.asin, request=request)
        return max(draw.sample(higher, 2))

    def identity(self) -> list[object]:
        """What fixes all draws, for fingerprints."""
        return [self.seed, self.panel.digest if self.panel else None]


def combinations(product: Product) -> int:
    """How many synthetic goals a product gives; 0 without an instruction."""
    if product.instruction is None or not product.instruction_attributes:
        return 0
    return math.prod(len(values) for _, values in product.options)


def shuffled(count: int) -> array[int]:
    """The official order of `count` goals: position -> number in catalogue order."""
    order = array("i", range(count))
    random.Random(ORDER_SEED).shuffle(order)
    return order


def _combination(product: Product, number: int) -> tuple[tuple[str, str], ...]:
    """Combination `number` of the cartesian product of the option values, the last name running fastest."""
    chosen = []
    for name, values in sorted(product.options, reverse=True):
        number, i = divmod(number, len(values))
        chosen.append((name, values[i]))
    return tuple(reversed(chosen))


def limit_text(limit: float) -> str:
    """How an instruction names its upper price."""
    return "" if limit >= NO_LIMIT else f", and price lower than {limit:.2f} dollars"


def expand(index: int, number: int, product: Product, which: int, human: bool, draws: Draws) -> Goal:
    """The goal at a position of the official order; `which` is the combination, or the request of a person."""
    limit = draws.panel.limits[index] if draws.panel else draws.limit(product, which if human else -1)
    options: tuple[tuple[str, str], ...] | tuple[str, ...]
    if human:
        request = product.requests[which]
        attributes, options = request.attributes, request.options
        text = request.text.strip(".")
    else:
        options = _combination(product, which)
        attributes = product.instruction_attributes
        named = ", and ".join(f"{name}: {value}" for name, value in options)
        text = f"{product.instruction}{' with ' + named if named else ''}"
    return Goal(
        index,
        number,
        product.asin,
        product.title,
        product.query,
        product.segments(),
        text + limit_text(limit),
        attributes,
        options,
        limit,
    )


def load_panel(path: Path) -> Panel:
    """Read a panel file (JSON, may be gzipped). Raises `UsageError` naming the file and what is wrong."""
    expected = "a JSON object with prices, price_upper, goal_asins and instructions"
    try:
        raw = path.read_bytes()
        data: Any = json.loads(gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw)
        prices = {str(asin): float(value) for asin, value in data["prices"].items()}
        limits = [float(value) for value in data["price_upper"]]
        asins, instructions = list(data["goal_asins"]), list(data["instructions"])
    except (OSError, EOFError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise UsageError(f"The price panel {path} cannot be read ({error}). Expected: {expected}.") from error
    if not len(limits) == len(asins) == len(instructions):
        raise UsageError(
            f"The price panel {path} is inconsistent: {len(limits)} price_upper, {len(asins)} goal_asins, "
            f"{len(instructions)} instructions."
        )
    return Panel(prices, limits, asins, instructions, digest(data))


def check_panel(panel: Panel, asins: Sequence[str], path: Path) -> None:
    """Raises `UsageError` when the panel was drawn for other goals or another order."""
    if list(asins) != panel.asins:
        at = next((i for i, pair in enumerate(zip(asins, panel.asins, strict=False)) if pair[0] != pair[1]), None)
        where = f"they differ first at goal {at}" if at is not None else "their numbers differ"
        raise UsageError(
            f"The price panel {path} ({len(panel.asins)} goals) belongs to another catalogue or kind of goals "
            f"({len(asins)} goals here): {where}. Give the catalogue, `goals` and `products` it was drawn for."
        )
