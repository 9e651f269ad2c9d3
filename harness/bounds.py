"""Bounds: how much of what a model or a data set wrote is kept.

Text from outside may be of any size.  It is bounded once, where it enters (an endpoint's answer, a proposal, an
observation), so that memory, ledger and every later reader have an upper limit.  What is left out is said in the text
itself, because a record that was cut in silence would be a lie.
"""

from __future__ import annotations

from typing import Final

MAX_ANSWER: Final = 100_000  # characters of an answer's text, of its thinking, of a tool call's arguments
MAX_CALLS: Final = 64  # tool calls of one answer; the first counts, the others are only shown to the model again
MAX_ACTION: Final = 100_000  # characters of a proposed action; every built-in grammar has a much lower limit
MAX_OBSERVATION: Final = 1_000_000  # characters of an observation
MAX_COUNT: Final = 2**53  # tokens that a server may claim; above, a float column could not hold the number


def bounded(text: str, limit: int) -> str:
    """`text`, or its beginning and end with a notice between them when it is longer than `limit` characters.

    Thinking stands at the beginning and actions at the end, so both are kept.  The result may be longer than `limit`
    by the notice (under 80 characters), and is not cut again by the same limit.
    """
    if len(text) <= limit + 80:
        return text
    half = limit // 2
    return f"{text[:half]}\n[... {len(text) - 2 * half} characters left out here: over the limit ...]\n{text[-half:]}"
