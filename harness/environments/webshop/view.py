"""The advisor's view of an episode: what was done, one line a step; the page as it is now; what can be done.

Only the decision state is read, so it can be made at any prefix.  History comes first and only grows; what changes with
every step comes last.  Every part is cut to a fixed size.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from harness.environments.webshop.engine import SUB_PAGES
from harness.records import DecisionState, Observation

_TITLE, _VALUES, _TEXT, _STEPS = 140, 60, 1500, 40
_MARK = re.compile(r"^\s*\[(?:clicked )?button\] (.*?) \[(?:clicked )?button_\]$")
_FOUND = re.compile(r"^Page (\d+) \(Total results: (\d+)\)$")
_FIXED = {"back to search", "< prev", "next >", "buy now", *SUB_PAGES}


@dataclass
class Seen:
    """What an observation shows; `groups` are option names with their values."""

    kind: str
    lines: list[str] = field(default_factory=list)
    page: str = ""
    total: str = ""
    title: str = ""
    price: str = ""
    groups: dict[str, list[str]] = field(default_factory=dict)


def cut(text: str, limit: int) -> str:
    """At most `limit` characters, one line."""
    text = " ".join(text.split())
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def plain(text: str) -> str:
    """Lower case with single blanks, as action arguments are compared."""
    return " ".join(text.lower().split())


def names(observation: Observation) -> list[str]:
    """Arguments of the click actions."""
    return [text[6:-1] for text in observation.actions]


def read(observation: Observation) -> Seen:
    """Take an observation of either text mode apart."""
    text, clicks = observation.text, names(observation)
    raw = text.split(" [SEP] ") if " [SEP] " in text else text.split("\n")
    lines = [found[1] if (found := _MARK.match(line)) else line.strip() for line in raw]
    lines = [line for line in lines if line and not line.startswith("You have clicked ")]
    if not clicks:
        return Seen("search page" if observation.schemas else "end", lines)
    body = lines[2:]  # without "Instruction:" and the instruction
    if "next >" in clicks:
        found = next((match for line in body if (match := _FOUND.match(line))), None)
        return Seen("results", body, found[1] if found else "", found[2] if found else "")
    if "buy now" not in clicks:
        return Seen("details", [line for line in body if line.lower() not in _FIXED])
    return _item(body, {plain(name) for name in clicks})


def _item(body: list[str], clicks: set[str]) -> Seen:
    at = next((i for i in reversed(range(len(body))) if body[i].startswith("Price: ")), len(body))
    seen = Seen("product", body, title=body[at - 1] if at else "", price=body[at] if at < len(body) else "")
    group = ""
    for line in body[: max(at - 1, 0)]:
        if line.lower() in ("back to search", "< prev"):
            continue
        if group and plain(line) in clicks:
            seen.groups[group].append(line)
        else:
            group = line
            seen.groups[group] = []
    return seen


def chosen(state: DecisionState) -> dict[str, str]:
    """Options chosen on the product page now, by option name."""
    options: dict[str, str] = {}
    before = read(state.opening)
    for turn in state.turns:
        after = read(turn.observation)
        value = plain(turn.action.text[6:-1])
        group = next((g for g, values in before.groups.items() if value in map(plain, values)), None)
        if before.kind == "product" and after.kind == "product" and group is not None:
            options[group] = value
        elif after.kind not in ("product", "details") or before.kind not in ("product", "details"):
            options = {}
        before = after
    return options


def _step(number: int, text: str, seen: Seen, before: Seen) -> str:
    action = cut(text, _TITLE)
    if seen.kind == "results":
        result = f"results page {seen.page}, {seen.total} found"
    elif seen.kind == "product" and before.kind == "product":
        result = "option chosen"
    elif seen.kind == "product":
        result = f"product page: {cut(seen.title, _TITLE)} | {seen.price}"
    else:
        result = {"details": "product details", "end": "the episode ended"}.get(seen.kind, seen.kind)
    return f"{number}. {action} -> {result}"


def history(state: DecisionState) -> list[str]:
    """One line for each executed action."""
    lines, before = [], read(state.opening)
    for number, turn in enumerate(state.turns, 1):
        after = read(turn.observation)
        lines.append(_step(number, turn.action.text, after, before))
        before = after
    hidden = len(lines) - _STEPS
    return lines if hidden <= 0 else [f"({hidden} earlier steps)", *lines[hidden:]]


def _now(seen: Seen, options: dict[str, str]) -> list[str]:
    if seen.kind == "results":
        rows = [line for line in seen.lines[1:] if not _FOUND.match(line) and line.lower() not in _FIXED]
        rows = [cut(" | ".join(rows[i : i + 3]), 2 * _TITLE) for i in range(0, len(rows), 3)]
        return [f"Page now: results page {seen.page}, {seen.total} found", *rows]
    if seen.kind == "product":
        lines = [f"Page now: product page: {cut(seen.title, 2 * _TITLE)} | {seen.price}"]
        for group, values in seen.groups.items():
            more = f", and {len(values) - _VALUES} more" if len(values) > _VALUES else ""
            lines.append(f"Option {group}: {', '.join(cut(value, 60) for value in values[:_VALUES])}{more}")
        picked = "; ".join(f"{group} = {value}" for group, value in options.items()) or "none yet"
        return [*lines, f"Options chosen: {picked}"]
    if seen.kind == "details":
        return ["Page now: product details", cut(" / ".join(seen.lines), _TEXT) or "(nothing written here)"]
    return [f"Page now: {seen.kind}"]


def render(state: DecisionState) -> str:
    """The whole view of a state."""
    seen = read(state.observation)
    done = history(state)
    clicks = names(state.observation)
    values = {plain(value) for group in seen.groups.values() for value in group}
    listed = [f"click[{name}]" for name in clicks if plain(name) not in values]
    if values:
        listed.append("click[<an option value above>]")
    lines = [f"Request: {state.task}", "Steps so far:", *(done or ["none"]), *_now(seen, chosen(state))]
    return "\n".join([*lines, f"Possible actions: {', '.join([*state.observation.schemas, *listed]) or 'none'}"])
