"""View: an episode's record as the page's viewer shows it, small and harmless.

Everything is text that the page only ever sets as text.  Control characters are made visible, a long text keeps its
beginning and says how much was left out; the whole is in `cota-bench show STUDY EPISODE --full`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from harness.rows import winners
from harness.show import visible

LONG: Final = 2400  # observations, tasks
MIDDLE: Final = 900  # thoughts, messages
SHORT: Final = 240  # actions, causes
STEPS: Final = 80
View = dict[str, Any]


def view_of(record: Mapping[str, Any]) -> View:
    """What the viewer needs of an episode as `harness.codec` writes it."""
    steps = record["steps"]
    return {
        "status": record["status"],
        "reason": clip(record["reason"], MIDDLE),
        "boundary": record.get("boundary"),
        "reward": record["reward"],
        "success": record["success"],
        "task": clip(record.get("task", ""), LONG),
        "final": clip(record.get("final_observation", ""), LONG),
        "spent": _spent(record),
        "simulated": ", ".join(clip(part, SHORT) for part in record.get("simulated", ())),
        "steps": [_step(step) for step in steps[:STEPS]],
        "more": max(0, len(steps) - STEPS),
    }


def clip(text: object, limit: int) -> str:
    """Visible text of at most `limit` characters and a notice of what was left out."""
    whole = str(text)
    shown = visible(whole[:limit].replace("\r\n", "\n"))
    return shown if len(whole) <= limit else f"{shown} … ({len(whole) - limit:,} more characters)"


def _step(step: Mapping[str, Any]) -> View:
    reviews = step["reviews"]
    executed = step["executed"]
    return {
        "i": step["index"],
        "sees": clip(step["observation"], LONG),
        "legal": step.get("legal_actions", 0),
        "thought": "" if reviews else clip(step.get("thought", ""), MIDDLE),
        "does": clip(executed["text"], SHORT),
        "replaced": bool(reviews) and executed["canonical"] != reviews[0]["proposal"]["canonical"],
        "reward": step["reward"],
        "done": step["done"],
        "seconds": round(sum(step["seconds"].values()), 4),
        "reviews": [_review(review) for review in reviews],
    }


def _review(review: Mapping[str, Any]) -> View:
    candidates, votes = review.get("candidates", ()), review.get("votes", ())
    scores: Sequence[float | None] = review.get("scores", ())
    return {
        "says": clip(review["proposal"]["text"], SHORT),
        "thought": clip(review.get("thought", ""), MIDDLE),
        "candidates": [_candidate(at, found, votes, scores) for at, found in enumerate(candidates)],
        "q": scores[0] if scores else None,
        "fired": review.get("fired", False),
        "wins": winners([vote["won"] for vote in votes], scores),
        "asked": review.get("comparisons", 0),
        "seconds": review.get("seconds", 0.0),
        "advice": [clip(action["text"], SHORT) for action in review.get("recommended", ())],
        "told": clip(review.get("message", ""), MIDDLE),
        "open": [clip(cause, SHORT) for cause in review.get("fail_open", ())],
        "answer": review.get("response"),
    }


def _candidate(
    at: int, found: Mapping[str, Any], votes: Sequence[Mapping[str, Any]], scores: Sequence[float | None]
) -> View:
    mine = [vote for vote in votes if vote["candidate"] == at]
    score = scores[at + 1] if at + 1 < len(scores) else None
    base = scores[0] if scores else None
    beats = score is not None and base is not None and score > base
    return {
        "text": clip(found["action"]["text"], SHORT),
        "source": clip(found["source"], SHORT),
        "votes": [f"{vote['forward'] or '·'}/{vote['backward'] or '·'}" for vote in mine],
        "q": score,
        "won": beats or any(vote["won"] for vote in mine),
    }


def _time(seconds: float) -> str:
    return f"{seconds:.2f} s" if seconds >= 0.1 else f"{1000 * seconds:.1f} ms"


def _spent(record: Mapping[str, Any]) -> list[str]:
    """Seconds, calls and tokens by role, in words."""
    lines = []
    for role in dict.fromkeys([*record["seconds"], *record["usage"]]):
        usage = record["usage"].get(role, {})
        line = f"{role} {_time(record['seconds'].get(role, 0.0))}"
        if usage.get("calls"):
            prompt, completion = usage.get("prompt", 0), usage.get("completion", 0)
            known = [("unknown" if count is None else f"{count:,}") for count in (prompt, completion)]
            line += f", {usage['calls']} calls, {known[0]} + {known[1]} tokens"
        lines.append(line)
    return lines
