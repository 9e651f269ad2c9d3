"""Rows: an episode as one flat row of numbers; the one place where a record is read for counting.

The tracker, the tables and the summaries all start from these rows, so that no two of them can count a failure, an
intervention or a second differently.  `FIELDS` is the whole schema: name, kind and meaning, in column order.  Unknown
stays None; a None never becomes a zero.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Literal

from harness.codec import to_json
from harness.records import Episode

ROW_VERSION: Final = 2
Kind = Literal["str", "int", "float", "bool"]
Scalar = str | int | float | bool | None
Row = dict[str, Scalar]

ROLES: Final = ("actor", "advisor", "environment", "simulator", "harness")
TOKEN_ROLES: Final = ("actor", "advisor", "simulator")
ERRORS: Final = ("failed", "timeout", "unparsed")

_LABELS: Final = ("cell", "study", "method", "actor", "environment", "seed", "split", "task_id", "status")

FIELDS: Final[tuple[tuple[str, Kind, str], ...]] = (
    ("cell", "str", "hash of everything that decides the outcome of this cell"),
    ("study", "str", "study name"),
    ("method", "str", "method label of the study"),
    ("actor", "str", "actor label of the study"),
    ("environment", "str", "environment label of the study"),
    ("seed", "int", "seed of the cell"),
    ("split", "str", "task split"),
    ("task_id", "str", "task within the split"),
    ("status", "str", "done, truncated, timeout, unparsed, failed or skipped"),
    ("outcome", "str", "scored, unscored (ended, but cannot be scored here), error or skipped"),
    ("reason", "str", "why the episode ended as it did"),
    ("boundary", "str", "who broke when it failed: actor, advisor, environment, simulator, harness"),
    ("reward", "float", "score of the episode in [0, 1]; empty when it cannot be scored here"),
    ("success", "bool", "goal reached; empty when it cannot be scored here"),
    ("best_reward", "float", "highest score seen at any step"),
    ("attempt", "int", "attempt that produced this row"),
    ("started_at", "float", "start, seconds since the epoch"),
    ("wall_s", "float", "wall time of the episode in seconds"),
    ("waited_s", "float", "part of the wall time spent queued (rate limits, batching, locks)"),
    ("work_s", "float", "wall_s less waited_s: the time that Avg. T compares"),
    ("steps", "int", "executed steps"),
    ("reviews", "int", "proposals reviewed before execution"),
    ("fired", "int", "reviews whose gate fired"),
    ("candidates", "int", "candidates drawn"),
    ("winners", "int", "candidates that beat the proposal"),
    ("comparisons", "int", "comparator questions asked"),
    ("replans", "int", "answers of the actor to advice"),
    ("adopt", "int", "replans equal to a recommended action"),
    ("keep", "int", "replans equal to the original proposal"),
    ("novel", "int", "replans equal to neither"),
    ("fail_opens", "int", "reviews that let the proposal pass with at least one cause to fail open, ties included"),
    ("fail_open_causes", "str", "JSON object: every cause to fail open, counted over candidates"),
    ("reviews_by_step", "str", "JSON object: step to [reviews, firings] at it"),
    (
        "reviews_by_winners",
        "str",
        "JSON object: winning candidates to reviews with so many, of those with candidates",
    ),
    *((f"{role}_s", "float", f"seconds of work of the {role}") for role in ROLES),
    *((f"{role}_calls", "int", f"model calls of the {role}") for role in TOKEN_ROLES),
    *((f"{role}_prompt", "int", f"prompt tokens of the {role}; empty when not reported") for role in TOKEN_ROLES),
    *((f"{role}_completion", "int", f"completion tokens of the {role}; empty when unknown") for role in TOKEN_ROLES),
    *(
        (f"{role}_cached", "int", f"prompt tokens of the {role} that a provider's prefix cache held")
        for role in TOKEN_ROLES
    ),
    *((f"{role}_reasoning", "int", f"completion tokens of the {role} that were thoughts") for role in TOKEN_ROLES),
    *(
        (f"{role}_saved_{kind}", "int", f"{kind} tokens of the {role} that the response cache gave: not billed")
        for role in TOKEN_ROLES
        for kind in ("prompt", "completion")
    ),
    ("simulated", "str", "simulated parts, comma separated"),
    ("unscored_why", "str", "why the episode cannot be scored here"),
)


def episode_row(episode: Episode) -> Row:
    """The row of one episode: exactly the names of `FIELDS`, in their order."""
    return record_row(to_json(episode))


def record_row(data: Mapping[str, Any]) -> Row:
    """The row of a record as `harness.codec` writes it; building the episode itself would cost five times as much."""
    usage = {role: data["usage"].get(role, {}) for role in ROLES}
    wall, waited = float(data.get("wall_s", 0.0)), sum(float(spent.get("waited_s", 0.0)) for spent in usage.values())
    row: Row = {name: data[name] for name in _LABELS}
    row |= {
        "outcome": outcome(data["status"], data["reward"]),
        "reason": data["reason"],
        "boundary": data.get("boundary"),
        "reward": data["reward"],
        "success": data["success"],
        "best_reward": _best(data),
        "attempt": data.get("attempt", 1),
        "started_at": float(data.get("started_at", 0.0)),
        "wall_s": wall,
        "waited_s": waited,
        "work_s": max(0.0, wall - waited),
        "steps": len(data["steps"]),
        **_review_counts(data["steps"]),
    }
    row |= {f"{role}_s": float(data["seconds"].get(role, 0.0)) for role in ROLES}
    for kind in ("calls", "prompt", "completion", "cached", "reasoning"):
        row |= {f"{role}_{kind}": usage[role].get(kind, 0) for role in TOKEN_ROLES}
    saved = ("saved_prompt", "saved_completion")
    row |= {f"{role}_{kind}": usage[role].get(kind, 0) for role in TOKEN_ROLES for kind in saved}
    row["simulated"] = ",".join(sorted(data.get("simulated", ())))
    row["unscored_why"] = str(data.get("info", {}).get("unscored", "")) if data["reward"] is None else ""
    return row


def outcome(status: str, reward: float | None) -> str:
    """How an episode counts: see the field `outcome`."""
    if status == "skipped":
        return "skipped"
    if status in ERRORS:
        return "error"
    return "unscored" if reward is None else "scored"


def failed_open(causes: Sequence[str], fired: bool) -> bool:
    """Whether the proposal passed for want of a valid or decided answer, or because no replan was left."""
    return bool(causes) and (not fired or "replan_limit" in causes)


def winners(won: Iterable[bool], scores: Sequence[float | None]) -> int:
    """Candidates that beat the proposal: by votes, or by a score above the proposal's, which stands first."""
    base = scores[0] if scores else None
    better = 0 if base is None else sum(1 for value in scores[1:] if value is not None and value > base)
    return sum(won) + better


def _review_counts(steps: Sequence[Mapping[str, Any]]) -> Row:
    """All counts over reviews, in one pass: this is where most of the time of reading a ledger goes."""
    names = ("fired", "candidates", "winners", "comparisons", "replans", "adopt", "keep", "novel", "fail_opens")
    counts = dict.fromkeys(names, 0)
    causes: dict[str, int] = {}
    by_step: dict[int, list[int]] = {}
    by_winners: dict[int, int] = {}
    for step in steps:
        for review in step["reviews"]:
            fired, opened, answer = review.get("fired", False), review.get("fail_open", ()), review.get("response")
            drawn = len(review.get("candidates", ()))
            won = winners([vote["won"] for vote in review.get("votes", ())], review.get("scores", ()))
            counts["fired"] += fired
            counts["candidates"] += drawn
            counts["winners"] += won
            counts["comparisons"] += review.get("comparisons", 0)
            counts["fail_opens"] += failed_open(opened, fired)
            if answer is not None:
                counts["replans"] += 1
                counts[answer] += 1
            for cause in opened:
                causes[cause] = causes.get(cause, 0) + 1
            at = by_step.setdefault(step["index"], [0, 0])
            at[0] += 1
            at[1] += fired
            if drawn:
                by_winners[won] = by_winners.get(won, 0) + 1
    objects = {"fail_open_causes": causes, "reviews_by_step": by_step, "reviews_by_winners": by_winners}
    texts = {name: json.dumps(found, sort_keys=True) if found else "{}" for name, found in objects.items()}
    return {"reviews": sum(reviews for reviews, _ in by_step.values()), **counts, **texts}


def _best(data: Mapping[str, Any]) -> float | None:
    seen = [*(step["reward"] for step in data["steps"]), data["reward"]]
    return max((float(value) for value in seen if value is not None), default=None)
