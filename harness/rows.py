"""Rows: an episode as one flat row of numbers; the one place where a record is read for counting.

The tracker, the tables and the summaries all start from these rows, so that no two of them can count a failure, an
intervention or a second differently.  `FIELDS` is the whole schema: name, kind and meaning, in column order.  Unknown
stays None; a None never becomes a zero.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final, Literal

from harness.records import Episode, Review, Usage

ROW_VERSION: Final = 1
Kind = Literal["str", "int", "float", "bool"]
Scalar = str | int | float | bool | None
Row = dict[str, Scalar]

ROLES: Final = ("actor", "advisor", "environment", "simulator", "harness")
TOKEN_ROLES: Final = ("actor", "advisor", "simulator")
FINISHED: Final = ("done", "truncated")
ERRORS: Final = ("failed", "timeout", "unparsed")

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
    *((f"{role}_s", "float", f"seconds of work of the {role}") for role in ROLES),
    *((f"{role}_calls", "int", f"model calls of the {role}") for role in TOKEN_ROLES),
    *((f"{role}_prompt", "int", f"prompt tokens of the {role}; empty when not reported") for role in TOKEN_ROLES),
    *((f"{role}_completion", "int", f"completion tokens of the {role}; empty when unknown") for role in TOKEN_ROLES),
    ("simulated", "str", "simulated parts, comma separated"),
    ("unscored_why", "str", "why the episode cannot be scored here"),
)


def episode_row(episode: Episode) -> Row:
    """The row of one episode: exactly the names of `FIELDS`, in their order."""
    reviews = [review for step in episode.steps for review in step.reviews]
    causes = Counter(cause for review in reviews for cause in review.fail_open)
    waited = sum((usage.waited_s for usage in episode.usage.values()), 0.0)
    row: Row = {
        "cell": episode.cell,
        "study": episode.study,
        "method": episode.method,
        "actor": episode.actor,
        "environment": episode.environment,
        "seed": episode.seed,
        "split": episode.split,
        "task_id": episode.task_id,
        "status": episode.status,
        "outcome": outcome(episode),
        "reason": episode.reason,
        "boundary": episode.boundary,
        "reward": episode.reward,
        "success": episode.success,
        "best_reward": _best(episode),
        "attempt": episode.attempt,
        "started_at": float(episode.started_at),
        "wall_s": float(episode.wall_s),
        "waited_s": float(waited),
        "work_s": max(0.0, episode.wall_s - waited),
        "steps": len(episode.steps),
        **_review_counts(reviews),
        "fail_opens": sum(map(failed_open, reviews)),
        "fail_open_causes": json.dumps(dict(sorted(causes.items()))),
    }
    row |= {f"{role}_s": _seconds(episode, role) for role in ROLES}
    usages = {role: episode.usage.get(role, Usage()) for role in TOKEN_ROLES}
    row |= {f"{role}_calls": usage.calls for role, usage in usages.items()}
    row |= {f"{role}_prompt": usage.prompt for role, usage in usages.items()}
    row |= {f"{role}_completion": usage.completion for role, usage in usages.items()}
    row["simulated"] = ",".join(sorted(episode.simulated))
    row["unscored_why"] = str(episode.info.get("unscored", "")) if episode.reward is None else ""
    return row


def outcome(episode: Episode) -> str:
    """How an episode counts: see the field `outcome`."""
    if episode.status == "skipped":
        return "skipped"
    if episode.status in ERRORS:
        return "error"
    return "unscored" if episode.reward is None else "scored"


def replans(episode: Episode) -> Iterator[tuple[int, Review]]:
    """Every (step index, review) that the actor answered again, in order."""
    for step in episode.steps:
        for review in step.reviews:
            if review.response is not None:
                yield step.index, review


def failed_open(review: Review) -> bool:
    """Whether the proposal passed for want of a valid or decided answer, or because no replan was left."""
    return bool(review.fail_open) and (not review.fired or "replan_limit" in review.fail_open)


def winners(review: Review) -> int:
    """Candidates that beat the proposal: by votes, or by a score above the proposal's, which stands first."""
    base = review.scores[0] if review.scores else None
    better = sum(1 for value in review.scores[1:] if base is not None and value is not None and value > base)
    return sum(vote.won for vote in review.votes) + better


def _review_counts(reviews: list[Review]) -> Row:
    answers = Counter(review.response for review in reviews)
    return {
        "reviews": len(reviews),
        "fired": sum(review.fired for review in reviews),
        "candidates": sum(len(review.candidates) for review in reviews),
        "winners": sum(map(winners, reviews)),
        "comparisons": sum(review.comparisons for review in reviews),
        "replans": sum(n for response, n in answers.items() if response is not None),
        "adopt": answers["adopt"],
        "keep": answers["keep"],
        "novel": answers["novel"],
    }


def _seconds(episode: Episode, role: str) -> float:
    return float(dict(episode.seconds).get(role, 0.0))


def _best(episode: Episode) -> float | None:
    seen: Iterable[float | None] = [*(step.reward for step in episode.steps), episode.reward]
    return max((value for value in seen if value is not None), default=None)
