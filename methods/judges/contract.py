"""Contract of the comparator's prompt: state first, two actions last, one letter back (paper appendix B.4).

The state stands before the actions and is the same text for all pairs of a step, so that a server's prefix cache (or a
kept key-value cache) does the state once.  Trained, local and served comparators read the same two texts.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from string import Template

from harness.errors import UsageError

SYSTEM = """\
You judge the next step of an interactive agent. You see its task, what it has done and observed, where it stands now, \
and two actions that it could take next. Decide which action makes it more likely that the task is completed \
correctly, if the same agent goes on afterwards. Answer A or B if one is clearly better, and T otherwise."""
USER = """\
# Task and what was observed
$view

# Next actions to compare
A: $first
B: $second

# Answer
Reply with one letter: A, B or T."""


def messages(view: str, first: str, second: str, folder: str | None = None) -> list[dict[str, str]]:
    """Chat messages of one comparison."""
    texts = load(folder)
    user = Template(texts["user"]).substitute(view=view, first=_line(first), second=_line(second))
    return [{"role": "system", "content": texts["system"]}, {"role": "user", "content": user}]


def _line(action: str) -> str:
    """An action on one line, so that it cannot pass for more of the prompt."""
    return " ".join(action.split())


@cache
def load(folder: str | None) -> Mapping[str, str]:
    """System and user text: the built-in ones, or `comparator-system.txt` and `comparator-user.txt` of a folder.

    Raises:
        UsageError: a file that cannot be read or lacks a placeholder.
    """
    texts = {"system": SYSTEM, "user": USER}
    if folder is None:
        return texts
    for name in texts:
        path = Path(folder).expanduser() / f"comparator-{name}.txt"
        try:
            texts[name] = path.read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"prompts: cannot read {path}: {error}") from error
    missing = {"view", "first", "second"} ^ set(Template(texts["user"]).get_identifiers())
    if missing or not Template(texts["user"]).is_valid():
        raise UsageError("prompts: comparator-user.txt must hold $view, $first and $second, each, and no other $.")
    return texts
