"""Porter's stemmer as Lucene runs it.

The rules are those of M.F. Porter's paper of 1980 with the two departures of his own later program (`bli` -> `ble`
instead of `abli` -> `able`, and `logi` -> `log`), and words of one or two letters are left alone.  Search results of
the original shop depend on it letter by letter, so no other stemmer will do.
"""

from __future__ import annotations

_VOWELS = frozenset("aeiou")

# Steps 2 to 4: ending -> replacement, applied when the measure of what remains is large enough.
_STEP2 = (
    ("ational", "ate"),
    ("tional", "tion"),
    ("enci", "ence"),
    ("anci", "ance"),
    ("izer", "ize"),
    ("bli", "ble"),
    ("alli", "al"),
    ("entli", "ent"),
    ("eli", "e"),
    ("ousli", "ous"),
    ("ization", "ize"),
    ("ation", "ate"),
    ("ator", "ate"),
    ("alism", "al"),
    ("iveness", "ive"),
    ("fulness", "ful"),
    ("ousness", "ous"),
    ("aliti", "al"),
    ("iviti", "ive"),
    ("biliti", "ble"),
    ("logi", "log"),
)
_STEP3 = (
    ("icate", "ic"),
    ("ative", ""),
    ("alize", "al"),
    ("iciti", "ic"),
    ("ical", "ic"),
    ("ful", ""),
    ("ness", ""),
)
_STEP4 = (
    "al",
    "ance",
    "ence",
    "er",
    "ic",
    "able",
    "ible",
    "ant",
    "ement",
    "ment",
    "ent",
    "sion",
    "tion",
    "ou",
    "ism",
    "ate",
    "iti",
    "ous",
    "ive",
    "ize",
)


def _kinds(word: str) -> str:
    """`c` or `v` for each letter; `y` is a vowel after a consonant."""
    kinds: list[str] = []
    for i, letter in enumerate(word):
        vowel = letter in _VOWELS or (letter == "y" and i > 0 and kinds[-1] == "c")
        kinds.append("v" if vowel else "c")
    return "".join(kinds)


def _measure(stem: str) -> int:
    """Number of vowel-consonant sequences."""
    return _kinds(stem).count("vc")


def _short_end(stem: str) -> bool:
    """Ends consonant-vowel-consonant, the last not w, x or y."""
    return len(stem) > 2 and _kinds(stem)[-3:] == "cvc" and stem[-1] not in "wxy"


def _double(stem: str) -> bool:
    return len(stem) > 1 and stem[-1] == stem[-2] and _kinds(stem)[-1] == "c"


def _plurals(word: str) -> str:
    if not word.endswith("s"):
        return word
    if word.endswith(("sses", "ies")):
        return word[:-2]
    return word if word.endswith("ss") else word[:-1]


def _past(word: str) -> str:
    if word.endswith("eed"):
        return word[:-1] if _measure(word[:-3]) > 0 else word
    for ending in ("ed", "ing"):
        stem = word[: -len(ending)]
        if word.endswith(ending) and "v" in _kinds(stem):
            return _repair(stem)
    return word


def _repair(stem: str) -> str:
    if stem.endswith(("at", "bl", "iz")):
        return stem + "e"
    if _double(stem):
        return stem if stem[-1] in "lsz" else stem[:-1]
    return stem + "e" if _measure(stem) == 1 and _short_end(stem) else stem


def _replace(word: str, rules: tuple[tuple[str, str], ...]) -> str:
    """The longest matching rule decides, whether or not its condition holds."""
    found = [(old, new) for old, new in rules if word.endswith(old)]
    if not found:
        return word
    old, new = max(found, key=lambda rule: len(rule[0]))
    stem = word[: len(word) - len(old)]
    return stem + new if _measure(stem) > 0 else word


def _suffix(word: str) -> str:
    found = [ending for ending in _STEP4 if word.endswith(ending)]
    if not found:
        return word
    ending = max(found, key=len)
    stem = word[: len(word) - (3 if ending in ("sion", "tion") else len(ending))]
    return stem if _measure(stem) > 1 else word


def _tidy(word: str) -> str:
    if word.endswith("e"):
        measure = _measure(word[:-1])
        if measure > 1 or (measure == 1 and not _short_end(word[:-1])):
            word = word[:-1]
    return word[:-1] if word.endswith("l") and _double(word) and _measure(word[:-1]) > 1 else word


def stem(word: str) -> str:
    """The stem of a lower-case word."""
    if len(word) < 3:
        return word
    word = _past(_plurals(word))
    if word.endswith("y") and "v" in _kinds(word[:-1]):
        word = word[:-1] + "i"
    return _tidy(_suffix(_replace(_replace(word, _STEP2), _STEP3)))
