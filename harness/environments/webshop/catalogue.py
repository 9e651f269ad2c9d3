"""Products: what is kept of a record of the official files, and how it is read.

The same rules make the embedded synthetic catalogue, whose records have the official shape.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any

NO_PRICE = 100.0  # the price of a product that states none
NO_ATTRIBUTES = ("DUMMY_ATTR",)
REQUIRED = ("asin", "name", "full_description", "small_description", "product_category", "category", "query")

Options = tuple[tuple[str, tuple[str, ...]], ...]


@dataclass(frozen=True, slots=True)
class Request:
    """One instruction written by a person for a product; `options` are values without names."""

    text: str
    attributes: tuple[str, ...]
    options: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Product:
    """One product: `prices` has one or two numbers in dollars (two: a range), `tag` is what the pages show."""

    asin: str
    title: str
    description: str
    bullets: tuple[str, ...]
    tag: str
    prices: tuple[float, ...]
    category: str
    query: str
    path: str
    options: Options
    attributes: tuple[str, ...]
    instruction: str | None = None
    instruction_attributes: tuple[str, ...] = ()
    requests: tuple[Request, ...] = ()

    def document(self) -> str:
        """The text that search sees."""
        options = ", and ".join(f"{name}: {', '.join(values)}" for name, values in self.options)
        first = self.bullets[0] if self.bullets else ""
        return " ".join((self.title, self.description, first, options)).lower()

    def segments(self) -> frozenset[str]:
        """The parts of the category path."""
        return frozenset(part.strip() for part in self.path.split("›"))


def to_json(product: Product) -> str:
    """One line of JSON, the same for the same product."""
    fields = [getattr(product, name) for name in Product.__slots__]
    fields[-1] = [[request.text, request.attributes, request.options] for request in product.requests]
    return json.dumps(fields, ensure_ascii=False, separators=(",", ":"))


def from_json(text: str) -> Product:
    """The product of `to_json`."""
    row: list[Any] = json.loads(text)
    row[3], row[5], row[10], row[12] = tuple(row[3]), tuple(row[5]), tuple(row[10]), tuple(row[12])
    row[9] = tuple((name, tuple(values)) for name, values in row[9])
    row[13] = tuple(Request(text, tuple(attributes), tuple(options)) for text, attributes, options in row[13])
    return Product(*row)


def usable(record: Mapping[str, Any]) -> bool:
    """Whether the original keeps a record (it drops ids that are not a number or too long)."""
    return record["asin"] != "nan" and len(record["asin"]) <= 10


def check(record: object) -> dict[str, Any]:
    """A record as a dict with all that is needed. Raises ValueError saying what is wrong."""
    if not isinstance(record, dict):
        raise ValueError(f"it is {type(record).__name__}, not an object")
    missing = [key for key in (*REQUIRED, "customization_options") if key not in record]
    if missing:
        raise ValueError(f"it lacks {', '.join(missing)}")
    for key in REQUIRED:
        value = record[key]
        if not (isinstance(value, str) or value is None or (key == "small_description" and isinstance(value, list))):
            raise ValueError(f"{key} is {type(value).__name__}, not text")
    if not record["asin"]:
        raise ValueError("asin is empty")
    return record


def product(record: Mapping[str, Any], facts: Mapping[str, Any] | None, requests: object = ()) -> Product:
    """A product from a checked record, its attribute entry and its human instructions.

    Raises:
        ValueError: saying what is wrong with the record.
    """
    tag, prices = price(record.get("pricing"))
    bullets = record["small_description"]
    bullets = bullets if isinstance(bullets, list) else [bullets]
    facts = facts if facts is not None else {}
    if not isinstance(facts, Mapping):
        raise ValueError("its attribute entry is not an object")
    return Product(
        asin=record["asin"],
        title=record["name"] or "",
        description=record["full_description"] or "",
        bullets=tuple("" if bullet is None else str(bullet) for bullet in bullets),
        tag=tag,
        prices=prices,
        category=record["category"] or "",
        query=(record["query"] or "").lower().strip(),
        path=record["product_category"] or "",
        options=_options(record["customization_options"]),
        attributes=_texts(facts.get("attributes"), "attributes") if "attributes" in facts else NO_ATTRIBUTES,
        instruction=facts.get("instruction"),
        instruction_attributes=_texts(facts.get("instruction_attributes"), "instruction_attributes"),
        requests=_requests(requests),
    )


def price(text: object) -> tuple[str, tuple[float, ...]]:
    """(tag, prices) from a price text such as "", "$19.99" or "$1,019.99 - $1,100.00". Raises ValueError."""
    if not text:
        return f"${NO_PRICE}", (NO_PRICE,)
    if not isinstance(text, str):
        raise ValueError(f"pricing is {type(text).__name__}, not text")
    try:
        found = tuple(float(Decimal(re.sub(r"[^\d.]", "", part))) for part in text.split("$")[1:])
    except InvalidOperation as error:
        raise ValueError(f"pricing {text!r} has no readable price") from error
    if not found:
        raise ValueError(f"pricing {text!r} has no dollar sign")
    if len(found) == 1:
        return f"${found[0]}", found
    return f"${found[0]} to ${found[1]}", found[:2]


def _options(found: object) -> Options:
    if not found:
        return ()
    if not isinstance(found, Mapping):
        raise ValueError("customization_options is not an object")
    options: dict[str, tuple[str, ...]] = {}
    for name, contents in found.items():
        if contents is None:
            continue
        try:
            values = tuple(entry["value"].strip().replace("/", " | ").lower() for entry in contents)
        except (TypeError, KeyError, AttributeError) as error:
            raise ValueError(f"option {name!r} is not a list of objects with a text `value`") from error
        options[name.lower()] = values
    return tuple(options.items())


def _texts(found: object, key: str) -> tuple[str, ...]:
    if found is None:
        return ()
    if not isinstance(found, list | tuple) or not all(isinstance(text, str) for text in found):
        raise ValueError(f"{key} is not a list of texts")
    return tuple(found)


def _requests(found: object) -> tuple[Request, ...]:
    try:
        return tuple(
            Request(
                entry["instruction"],
                _texts(entry["instruction_attributes"], "instruction_attributes"),
                _texts(entry["instruction_options"], "instruction_options"),
            )
            for entry in found  # type: ignore[attr-defined]
        )
    except (TypeError, KeyError) as error:
        raise ValueError(f"its human instructions are broken ({error})") from error
