"""Commands as text: one spelling for each, whatever an actor writes.

Normalising is safe because no name in a game holds an article, a digit other than its number, or capital letters.
The old spelling `put X in/on Y` means today's `move X to Y`; agents written for the old one fail without that.
"""

from __future__ import annotations

import re

from harness.errors import IllegalAction
from harness.records import Action

FORMS = (
    "go to R",
    "open R",
    "close R",
    "take O from R",
    "move O to R",
    "examine O or R",
    "use O",
    "heat O with R",
    "clean O with R",
    "cool O with R",
    "slice O with O",
    "look",
    "inventory",
    "help",
)
VERBS = frozenset(form.split()[0] for form in FORMS)
LIMIT = 200  # characters; no command is half as long
_PUT = re.compile(r"(?:put|place|move) (?:down )?(.+?) (?:in/on|in / on|into|onto|inside|in|on|to) (.+)")
_TAKE = re.compile(r"(?:take|pick up|grab) (.+?) (?:from|off|out of) (.+)")


def normal(text: str) -> str:
    """The one spelling of a command; a text that is no command comes back tidied.

    Each rewriting may make room for another (`put down down x in y`), so they are repeated until nothing changes: the
    spelling of a spelling is itself.
    """
    line = _once(text)
    for _ in range(LIMIT):
        after = _once(line)
        if after == line:
            break
        line = after
    return line


def _once(text: str) -> str:
    line = " ".join(text.lower().split()).strip(" .!`'\"*>")
    line = re.sub(r"\b(?:the|an|a|some) (?=[a-z])", "", line)
    line = re.sub(r"(?<=[a-z])\s*#?(?=\d+\b)", " ", line)
    line = re.sub(r"^(?:goto|walk to|move to|head to)\b", "go to", line)
    line = re.sub(r"^(?:turn on|toggle|switch on) ", "use ", line)
    line = re.sub(r"^(?:look around|look at room)$", "look", line)
    for pattern, form in ((_PUT, "move {} to {}"), (_TAKE, "take {} from {}")):
        match = pattern.fullmatch(line)
        if match is not None:
            return form.format(*match.groups())
    return line


def parse(text: str) -> Action:
    """One action. Raises `IllegalAction` for what no reading makes a command."""
    stripped = text.strip()
    line = "" if len(stripped) > LIMIT or "\n" in stripped else normal(stripped)
    if not line or line.split()[0] not in VERBS:
        shown = stripped.replace("\n", " ")[:60]
        raise IllegalAction(f"{shown!r} is no command here. Forms: {'; '.join(FORMS)} (O an object, R a receptacle).")
    return Action(line, line)


def parts(command: str) -> tuple[str, str, str]:
    """A command's verb, first and second thing ("" where there is none): ("move", "mug 1", "desk 2")."""
    for verb, joint in (("take", " from "), ("move", " to "), ("heat", " with "), ("clean", " with ")):
        if command.startswith(verb + " ") and joint in command:
            first, _, second = command[len(verb) + 1 :].partition(joint)
            return verb, first, second
    for verb in ("cool", "slice"):
        if command.startswith(verb + " ") and " with " in command:
            first, _, second = command[len(verb) + 1 :].partition(" with ")
            return verb, first, second
    if command.startswith("go to "):
        return "go", command[len("go to ") :], ""
    verb, _, rest = command.partition(" ")
    return verb, rest, ""
