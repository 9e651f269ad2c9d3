"""Text analysis as the original shop's search engine does it (Anserini's default English analyser on Lucene).

Word breaking after Unicode annex 29, possessive 's removed, lower case, 33 stop words, Porter stems.  Breaking works
on a *class string*: each character is translated to one letter that names its word-break class, one expression finds
the tokens there, and the spans are cut from the text.  The translation table fills itself as characters turn up.
"""

from __future__ import annotations

import re
import unicodedata

from harness.environments.webshop.porter import stem

_STOP = (
    "a an and are as at be but by for if in into is it no not of on or such that the their then there these they this "
    "to was will with"
)
STOPWORDS = frozenset(_STOP.split())
MAX_TOKEN = 255

_MID_LETTER = frozenset(":·\u0387\u05f4\u2027\ufe13\ufe55\uff1a")
_MID_NUMBER = frozenset(",;\u037e\u0589\u060c\u060d\u066c\u07f8\u2044\ufe10\ufe14\ufe50\ufe54\uff0c\uff1b")
_MID_BOTH = frozenset(".'\u2018\u2019\u2024\ufe52\uff07\uff0e")
# Symbols that Lucene indexes as words: Extended_Pictographic of Unicode's emoji data, letters left out.
_PICTURES_SMALL = (
    "A9 AE 203C 2049 2122 2194-2199 21A9-21AA 231A-231B 2328 2388 23CF 23E9-23F3 23F8-23FA 25AA-25AB 25B6 25C0 "
    "25FB-25FE 2600-2605 2607-2612 2614-2685 2690-2705 2708-2712 2714 2716 271D 2721 2728 2733-2734 2744 2747 274C "
    "274E 2753-2755 2757 2763-2767 2795-2797 27A1 27B0 27BF 2934-2935 2B05-2B07 2B1B-2B1C 2B50 2B55 3030 303D 3297 "
    "3299"
)
_PICTURES_LARGE = (
    "1F000-1F0FF 1F10D-1F10F 1F12F 1F16C-1F171 1F17E-1F17F 1F18E 1F191-1F19A 1F1AD-1F1E5 1F201-1F20F 1F21A 1F22F "
    "1F232-1F23A 1F23C-1F23F 1F249-1F3FA 1F400-1F53D 1F546-1F64F 1F680-1F6FF 1F774-1F77F 1F7D5-1F7FF 1F80C-1F80F "
    "1F848-1F84F 1F85A-1F85F 1F888-1F88F 1F8AE-1F8FF 1F90C-1F93A 1F93C-1F945 1F947-1FAFF 1FC00-1FFFD"
)
_PICTURES = [
    (int(low, 16), int(high or low, 16))
    for low, _, high in (part.partition("-") for part in f"{_PICTURES_SMALL} {_PICTURES_LARGE}".split())
]
_SOUTH_EAST_ASIAN = ((0x0E00, 0x0EFF), (0x1000, 0x109F), (0x1780, 0x17FF), (0x1950, 0x19DF), (0x1A20, 0x1AAF))


def _class_of(code: int) -> str:
    """Word-break class: A letter, N digit, X connector, K katakana, I ideograph, S run, M D Q middle, E extend,
    J emoji, T emoji modifier, F regional indicator, Z joiner, - anything else."""
    char = chr(code)
    if code == 0x200D:
        return "Z"
    if 0x1F3FB <= code <= 0x1F3FF:
        return "T"
    if 0x1F1E6 <= code <= 0x1F1FF:
        return "F"
    if any(low <= code <= high for low, high in _PICTURES):
        return "J"
    if char in _MID_LETTER:
        return "M"
    if char in _MID_NUMBER:
        return "D"
    if char in _MID_BOTH:
        return "Q"
    category = unicodedata.category(char)
    if category in ("Mn", "Me", "Mc") or (category == "Cf" and code != 0x200B):
        return "E"
    if any(low <= code <= high for low, high in _SOUTH_EAST_ASIAN) and category[0] == "L":
        return "S"
    if category == "Nd" and not 0xFF10 <= code <= 0xFF19:
        return "N"
    if category == "Pc" or code == 0x202F:
        return "X"
    return _letter_class(char, code, category)


def _letter_class(char: str, code: int, category: str) -> str:
    name = unicodedata.name(char, "")
    if name.startswith(("CJK UNIFIED", "CJK COMPATIBILITY IDEOGRAPH", "HIRAGANA")):
        return "I"
    if "KATAKANA" in name:
        return "K" if category[0] == "L" or code in (0x30FC, 0xFF70) else "-"
    if category[0] == "L" or category == "Nl" or 0x24B6 <= code <= 0x24E9:
        return "A"
    return "N" if 0xFF10 <= code <= 0xFF19 else "-"


class _Classes(dict[int, str]):
    """Translation table that learns each character at its first use."""

    def __missing__(self, code: int) -> str:
        value = self[code] = _class_of(code)
        return value


_CLASSES = _Classes()
_LETTERS = "A[EZ]*+(?:(?:[MQ][EZ]*+|(?:X[EZ]*+)*+)A[EZ]*+)*+"
_NUMBER = "N[EZ]*+(?:(?:[DQ][EZ]*+|(?:X[EZ]*+)*+)N[EZ]*+)*+"
_KATAKANA = "K[EZ]*+(?:(?:X[EZ]*+)*+K[EZ]*+)*+"
_CORE = f"(?:{_KATAKANA}|(?:{_LETTERS}|{_NUMBER})++)"
_EMOJI_PART = "[JT](?:[EZ](?!J)|E|T)*+"
_PICTURE = f"FF[EZ]*+|{_EMOJI_PART}(?:Z{_EMOJI_PART})*+"
_TOKEN = re.compile(f"(?:X[EZ]*+)*+{_CORE}(?:(?:X[EZ]*+)++{_CORE})*+(?:X[EZ]*+)*+|I[EZ]*+|(?:S[EZ]*+)++|{_PICTURE}")


def tokens(text: str) -> list[str]:
    """Words of a text in order, as written; a token longer than 255 characters is cut into pieces."""
    found = [text[m.start() : m.end()] for m in _TOKEN.finditer(text.translate(_CLASSES))]
    if any(len(token) > MAX_TOKEN for token in found):
        found = [token[i : i + MAX_TOKEN] for token in found for i in range(0, len(token), MAX_TOKEN)]
    return found


def term(token: str) -> str | None:
    """The index term of one token, or None for a stop word."""
    if len(token) > 2 and token[-1] in "sS" and token[-2] in "'\u2019\uff07":
        token = token[:-2]
    token = token.lower()
    return None if token in STOPWORDS else stem(token)


def terms(text: str) -> list[str]:
    """Index terms of a text in order."""
    return [found for found in map(term, tokens(text)) if found is not None]
