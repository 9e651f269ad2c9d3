"""The embedded catalogue: seeded products of a realistic shape, in the form of the official files.

Each kind of product has many makers, so a search finds rivals that differ in attributes, options and price; only some
products carry an instruction, as in the official files.  All words are this project's own (`words`).
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, NamedTuple

from harness.environments.webshop import words
from harness.seeds import stream

SIZE = 1200
VERSION = 1  # raise it when the same seed would give other products
_INSTRUCTED = 0.62  # share of products that an instruction asks for
_LETTERS = "0123456789ABCDEFGHJKLMNPQRSTUVWXYZ"


class _Kind(NamedTuple):
    department: str
    query: str
    path: str
    nouns: tuple[str, ...]
    options: tuple[str, ...]
    attributes: tuple[str, ...]


@cache
def _split(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(";"))


@cache
def _kinds() -> tuple[_Kind, ...]:
    kinds = []
    for department, lines in words.KINDS.items():
        for line in lines.strip().splitlines():
            query, path, nouns, options, attributes = (part.strip() for part in line.split("|"))
            whole = f"{words.DEPARTMENTS[department]} › {path}"
            named = _split(words.ATTRIBUTES[attributes])
            kinds.append(_Kind(department, query, whole, _split(nouns), tuple(options.split()), named))
    return tuple(kinds)


def records(seed: int, size: int) -> Iterator[tuple[Mapping[str, Any], Mapping[str, Any]]]:
    """(product record, attribute entry) of each product, in catalogue order.

    Args:
        seed: of the whole catalogue.
        size: number of products; the first ones are the same for every size.
    """
    draw = stream(part="webshop-catalogue", seed=seed, version=VERSION)
    used: set[str] = set()
    for _ in range(size):
        asin = "B0" + "".join(draw.choices(_LETTERS, k=8))
        while asin in used:
            asin = "B0" + "".join(draw.choices(_LETTERS, k=8))
        used.add(asin)
        yield _record(draw, asin, draw.choice(_kinds()))


def _record(draw: random.Random, asin: str, kind: _Kind) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    attributes = draw.sample(kind.attributes, draw.randint(3, min(6, len(kind.attributes))))
    title = _title(draw, kind, attributes)
    fillers = draw.sample(words.FILLERS, 3)
    told = [f"{text.capitalize()}: {draw.choice(words.FILLERS).lower()}" for text in attributes[1:]]
    draw.shuffle(told)
    record = {
        "asin": asin,
        "name": title,
        "full_description": f"{title}. {_sentence(draw, attributes)} {' '.join(fillers)}",
        "small_description": [*told, fillers[0]],
        "pricing": _pricing(draw, kind),
        "product_category": kind.path,
        "customization_options": _options(draw, kind) or "",
        "category": kind.department,
        "query": kind.query,
    }
    facts: dict[str, Any] = {"attributes": attributes}
    if draw.random() < _INSTRUCTED:
        asked = draw.sample(attributes, draw.randint(1, 3))
        facts |= {"instruction": _instruction(draw, kind.query, asked), "instruction_attributes": asked}
    return record, facts


def _brand(draw: random.Random) -> str:
    return "".join(draw.sample(_split(words.SYLLABLES), draw.choice((2, 2, 3)))).capitalize()


def _title(draw: random.Random, kind: _Kind, attributes: list[str]) -> str:
    who = kind.query.split()[0].capitalize() + " " if "'" in kind.query.split()[0] else ""
    head = f"{_brand(draw)} {draw.choice(_split(words.STYLES))} {who}{draw.choice(kind.nouns)}"
    shown = ", ".join(text.title() for text in attributes[: draw.choice((1, 1, 2))])
    end = f" for {draw.choice(_split(words.PLACES)).title()}" if draw.random() < 0.5 else ""
    return f"{head} - {shown}{end}"


def _sentence(draw: random.Random, attributes: list[str]) -> str:
    order = draw.sample(attributes, len(attributes))
    return f"What you get: {', '.join(order[:-1])} and {order[-1]}."


def _pricing(draw: random.Random, kind: _Kind) -> str:
    cheap = kind.department in ("grocery", "beauty")
    low = round(draw.uniform(4, 45) if cheap else draw.uniform(9, 160), 2)
    if draw.random() < 0.12:
        return ""
    if draw.random() < 0.25:
        return f"${low:,.2f} - ${low * draw.uniform(1.1, 1.8):,.2f}"
    if draw.random() < 0.03:
        return f"${low * 12:,.2f}"
    return f"${low:,.2f}"


def _options(draw: random.Random, kind: _Kind) -> dict[str, list[dict[str, Any]]]:
    options = {}
    for name in kind.options:
        if draw.random() < 0.12:
            continue
        label, _, values = words.OPTIONS[name].partition(" = ")
        known = _split(values)
        kept = draw.sample(range(len(known)), draw.randint(min(2, len(known)), min(6, len(known))))
        options[label.title()] = [{"value": known[i].title(), "image": None} for i in sorted(kept)]
    return options


def _instruction(draw: random.Random, query: str, asked: list[str]) -> str:
    first, rest = asked[0], asked[1:]
    tail = f" that come with {' and '.join(rest)}" if rest else ""
    shape = draw.choice(("I am looking for {0} {1}{2}", "Please find {0} {1}{2}", "I want {1} with {0}{3}"))
    more = f" and {' and '.join(rest)}" if rest else ""
    return shape.format(first, query, tail, more)
