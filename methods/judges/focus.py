"""Focused views: the few words of a view that bear on a decision, for judges too small to find them themselves.

A model of some million parameters, trained from scratch on some thousand pairs, does not learn to look a product up in
a page or a receptacle in a history: with full views it stays near chance.  So the look-up is done here, by rule: what
the goal asks for, which of it executed actions have touched, and for each candidate how often it was tried, which goal
words it names, and which stand next to where it was last seen.  Only the view is read, never latent state; nothing
here says what is good.  Large models read full views and need none of this.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import ModuleType

GOAL = re.compile(r"^(?:request|task|goal|instruction|customer|user)\s*:\s*(.*)$", re.IGNORECASE)
DONE = re.compile(
    r"^(?:\d+\.\s+(.*?)\s+->\s.*|>\s*(.*)|action\s*:\s*(.*)|agent calls\s+(.*)|agent\s*:\s*(.*))$",
    re.IGNORECASE,
)
LISTED = re.compile(r"^(?:possible actions|admissible commands|available actions|available|actions)\b", re.IGNORECASE)
WORD = re.compile(r"[a-z0-9$#][a-z0-9._\-]*[a-z0-9]|[a-z0-9]")
OPTIONS = re.compile(r"^option\b|^options\b", re.IGNORECASE)
MONEY = re.compile(r"(?:\$\s?(\d+(?:\.\d+)?))|(?:(\d+\.\d\d)\s+dollars)")
_STOP = """a an the of to in on at from with for and or is it you i me my your some find put look looking need want
please am are be that this than lower price dollar color size task click search go take move come into"""
STOP = frozenset(_STOP.split())
EXCERPT, NOW, LAST = 18, 24, 3  # words, words, actions


@dataclass(frozen=True, slots=True)
class Facts:
    """A view taken apart; `goal_words` by order of first mention, `lines` without goals, actions and listings."""

    goals: tuple[str, ...]
    goal_words: tuple[str, ...]
    done: tuple[str, ...]
    lines: tuple[str, ...]
    now: tuple[str, ...]


def words(text: str) -> list[str]:
    """Content words in order: lower case, without possessive and plural endings."""
    found = (_stem(word) for word in WORD.findall(text.lower().replace("'s", "")))
    return [word for word in found if word not in STOP]


def _stem(word: str) -> str:
    if len(word) > 4 and word.endswith(("ches", "shes", "sses", "xes")):
        return word[:-2]
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word


@lru_cache(maxsize=256)
def facts(view: str) -> Facts:
    """Take a view apart by the line labels that the environments' renderers use."""
    raw = [line.strip() for line in view.split("\n") if line.strip()]
    raw = [line for line in raw if not LISTED.match(line)]
    goals = tuple(found[1] for line in raw if (found := GOAL.match(line))) or tuple(raw[:1])
    done, last = [], 0
    for number, line in enumerate(raw):
        if found := DONE.match(line):
            done.append(next(part for part in found.groups() if part is not None))
            last = number + 1
    lines = tuple(line for line in raw if not GOAL.match(line) and not DONE.match(line))
    return Facts(goals, tuple(dict.fromkeys(words(" ".join(goals)))), tuple(done), lines, tuple(raw[last:]))


def _own(view: str) -> ModuleType | None:
    """The module that reads this kind of view, where one kind is worth a module."""
    from methods.judges import focus_alfworld, focus_retail

    return next((module for module in (focus_alfworld, focus_retail) if module.applies(view)), None)


def closed(view: str) -> bool:
    """Whether a view's focused form has closed words only, none that its own task alone would have."""
    return _own(view) is not None


def focus_state(view: str) -> str:
    """The state in a line: goal, what of it is untouched, what was done for it, last actions, what is seen now."""
    if own := _own(view):
        return str(own.focus_state(view))
    seen = facts(view)
    goal_words = set(seen.goal_words)
    touched = {word for action in seen.done for word in words(action)}
    untouched = [word for word in seen.goal_words if word not in touched]
    towards = [a for a in dict.fromkeys(seen.done) if goal_words & set(words(a))]
    now = " ".join(" ".join(seen.now).split()[:NOW])
    here = [word for word in seen.goal_words if word in set(words(" ".join(seen.now[:1])))]
    parts = [
        f"goal {_ends(seen.goals)}",
        f"open {min(len(untouched), 9)} {' '.join(untouched[:12])}",
        f"step {min(len(seen.done), 9)}",
        f"did {min(len(towards), 9)} {' ; '.join(_short(a) for a in towards[-LAST:])}",
        f"last {' ; '.join(_short(a) for a in seen.done[-LAST:])}",
        f"now {now}",
        f"here {min(len(here), 9)}{_cost(seen.goals, now)}",
    ]
    return " | ".join(part.strip() for part in parts)


def focus_action(view: str, action: str) -> str:
    """A candidate in a line: its text, times tried, goal words it names, goal words beside where it was last seen."""
    if own := _own(view):
        return str(own.focus_action(view, action))
    mark = _mark(facts(view), action)
    parts = [_short(action)]
    parts += [f"tried {min(mark.tried, 3)}"] if mark.tried else []
    parts += [f"match {min(len(mark.named), 9)}"] if mark.named else []
    parts += [f"near {min(len(mark.beside), 9)}"] if mark.beside else []
    return " | ".join(parts) + (f" {mark.cost}" if mark.cost else "")


def focus_versus(view: str, first: str, second: str) -> str:
    """How two candidates differ, such as `match A | tried B`: which one has more of what `focus_action` counts."""
    if own := _own(view):
        return _unshared(own.focus_action(view, first), own.focus_action(view, second))
    seen = facts(view)
    one, other = _mark(seen, first), _mark(seen, second)
    counts = {
        "match": (len(one.named), len(other.named)),
        "near": (len(one.beside), len(other.beside)),
        "tried": (one.tried, other.tried),
        "dear": (one.cost == "dear", other.cost == "dear"),
        "cheap": (one.cost == "cheap", other.cost == "cheap"),
    }
    unequal = {name: "A" if left > right else "B" for name, (left, right) in counts.items() if left != right}
    return " | ".join(f"{name} {which}" for name, which in unequal.items())


def _unshared(first: str, second: str) -> str:
    """What holds of one candidate alone, each a single word: `goleavinga` says that A goes and would leave."""
    one, other = ({head, *(head + mark for mark in marks)} for head, *marks in (first.split(), second.split()))
    return " ".join([*(f"{word}a" for word in sorted(one - other)), *(f"{word}b" for word in sorted(other - one))])


@dataclass(frozen=True, slots=True)
class Mark:
    """What is counted for a candidate."""

    tried: int
    named: tuple[str, ...]
    beside: tuple[str, ...]
    cost: str


def _ends(goals: Sequence[str], size: int = 24) -> str:
    """The goal's first words; of a goal told bit by bit, the first and the last ones."""
    held = " ".join(goals).split()
    if len(goals) < 2 or len(held) <= size:
        return " ".join(held[:size])
    return " ".join([*held[: size // 2], "...", *held[-size // 2 :]])


def _mark(seen: Facts, action: str) -> Mark:
    excerpt = _excerpt(seen, action)
    own, near = set(words(action)), set(words(excerpt))
    return Mark(
        sum(_same(done.lower(), action.lower()) for done in seen.done),
        tuple(word for word in seen.goal_words if word in own),
        tuple(word for word in seen.goal_words if word in near and word not in own),
        _cost(seen.goals, excerpt).strip(),
    )


def _same(done: str, action: str) -> bool:
    """Whether an action was taken before; what was said to a customer stands in the view without its call."""
    return done == action or (len(done) > 12 and f'"{done}"' in action)


def _short(action: str, limit: int = 24) -> str:
    return " ".join(action.split()[:limit])


def _cost(goals: Sequence[str], excerpt: str) -> str:
    limits, prices = MONEY.findall(" ".join(goals)), MONEY.findall(excerpt)
    if not limits or not prices:
        return ""
    limit, price = (float(next(part for part in found if part)) for found in (limits[-1], prices[0]))
    return " cheap" if price <= limit else " dear"


def _excerpt(seen: Facts, action: str) -> str:
    """What stands where the longest run of the action's words was last mentioned near the start of a line."""
    parts = re.findall(r"[\w.\-#]+", action.lower())
    lines = [line.lower() for line in reversed(seen.lines) if not OPTIONS.match(line)]
    for size in range(min(4, len(parts)), 0, -1):
        runs = [" ".join(parts[i : i + size]) for i in range(len(parts) - size + 1)]
        runs = [run for run in runs if size > 1 or (len(run) > 2 and run not in STOP)]
        for line in lines:
            if any(_begins(line, run) for run in runs):
                return " ".join(line.split()[:EXCERPT])
    return ""


def _begins(line: str, run: str, within: int = 28) -> bool:
    at = line.find(run, 0, within + len(run))
    if at < 0:
        return False
    end = at + len(run)
    return (at == 0 or not line[at - 1].isalnum()) and (end == len(line) or not line[end].isalnum())
