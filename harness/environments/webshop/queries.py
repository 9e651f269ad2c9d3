"""What an instruction asks for, read from its text alone: keywords for a search and the options it names.

Nothing here knows the target, so candidates may use it; the instruction's official shape is
`<request> with <name>: <value>, and <name>: <value>, and price lower than <x> dollars`.
"""

from __future__ import annotations

import re
from functools import lru_cache

_PRICE = re.compile(r",?\s*(?:and\s+)?(?:with a\s+)?price (?:lower|less|cheaper)?\s*than\s.*$", re.IGNORECASE)
_OPTIONS = re.compile(r" with (?=(?:(?! with )[^:,]){1,40}: )")
_LEAD = re.compile(
    r"^(?:please\s+)?(?:(?:can you\s+)?(?:find|get|show)(?: me)?|i(?:'m| am| would| want| need| like|'d like)"
    r"(?: looking| interested| like| to buy| to find)?(?: for| in| to)?)\s+(?:(?:a|an|the|some)\s+)?",
    re.IGNORECASE,
)
_SPLIT = re.compile(r"\s+(?:with|for|that|which|in)\s+|,\s*")
_KEEP = re.compile(r"[\[\]\s]+")


def tidy(keywords: str) -> str:
    """Keywords as one lower-case line without the brackets that would end an action."""
    return _KEEP.sub(" ", keywords).strip().lower()


@lru_cache(maxsize=4096)
def parts(instruction: str) -> tuple[str, tuple[str, ...]]:
    """(request without lead and price, named option values) of an instruction."""
    text = _PRICE.sub("", instruction.strip()).strip(" .")
    request, *named = _OPTIONS.split(text, maxsplit=1)
    values = tuple(piece.partition(": ")[2].strip() for piece in named[0].split(", and ")) if named else ()
    return _LEAD.sub("", request).strip(), tuple(value for value in values if value)


@lru_cache(maxsize=4096)
def suggestions(instruction: str) -> tuple[str, ...]:
    """Keywords one might search for, most complete first; distinct, none empty."""
    request, values = parts(instruction)
    pieces = [piece for piece in _SPLIT.split(request) if piece]
    drafts = [request, " ".join((request, *values)), " ".join(pieces[:1]), " ".join((*pieces[:1], *values[:1]))]
    return tuple(dict.fromkeys(text for text in map(tidy, drafts) if text))


@lru_cache(maxsize=4096)
def careless(instruction: str) -> tuple[str, ...]:
    """Poor keywords that people do try: one word, one property, the options without the thing."""
    request, values = parts(instruction)
    pieces = [piece for piece in _SPLIT.split(request) if piece]
    first = pieces[0].split() if pieces else []
    drafts = [" ".join(values), pieces[-1] if len(pieces) > 1 else "", first[0] if first else "", " ".join(first[-1:])]
    return tuple(dict.fromkeys(text for text in map(tidy, drafts) if text))
