"""Diagnostics of trained judges on held-out pairs (paper tables 7 and 9), with n and intervals by task.

Comparator: accuracy over all labels and over decisive pairs (label A or B; chance 0.5), the same by the
bidirectional rule, order consistency (the paper's preference consistency: swapping the two swaps the answer), valid
outputs, calibration.
Critic: pairwise ranking accuracy inside a state, Spearman and soft cross-entropy against discounted outcomes.
Labels are Monte-Carlo estimates from few continuations, so no judge reaches 1; `ceiling` is not known here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

from harness.cache import read_json
from methods.judges.comparator import LocalComparator
from methods.judges.critic import LocalCritic
from methods.training.artefact import read, write_json
from methods.training.data import GAMMA, Group, Source, critic_rows, group_pairs, group_targets, pair_rows
from methods.training.scores import by_environment, calibration_error, cross_entropy, resampled, share, spearman

FLIPPED: Mapping[str | None, str | None] = {"A": "B", "B": "A", "T": "T", None: None}
FILE = "diagnostics.json"
FORMAT = 2  # raised when the same judge would get other numbers, so that kept ones are made again
Seen = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Answered:
    """One ordered pair with what the comparator answered."""

    environment: str
    task_id: str
    pair_id: str
    label: str
    answer: str | None
    confidence: float


@dataclass(frozen=True, slots=True)
class Ranked:
    """One action with its score and target; `state` names the view it was scored in."""

    environment: str
    task_id: str
    state: int
    score: float
    target: float


def evaluate_judge(
    artefact: Path,
    data: Source,
    split: str = "test",
    *,
    environments: Sequence[str] | None = None,
    device: str = "auto",
    dtype: str = "auto",
    progress: Seen | None = None,
    name: str | None = None,
) -> dict[str, Any]:
    """Diagnose a trained judge on one split; the numbers are also kept in the artefact's `diagnostics.json`.

    They are kept under `name` (default: the split); `progress` is called with (states done, states).

    Returns:
        Numbers by environment (and `all` when there are several); shares are {value, n, low, high}.

    Raises:
        UsageError: no such artefact or data.
    """
    kind = read(artefact).card["kind"]
    if kind == "comparator":
        judge = LocalComparator(str(artefact), device=device, dtype=dtype)
        found = by_environment(ask_comparator(judge, data, split, environments, progress), comparator_scores)
    else:
        critic = LocalCritic(str(artefact), device=device, dtype=dtype)
        asked = ask_critic(critic, data, split, environments, progress=progress)
        found = by_environment(asked, critic_scores)
    _remember(artefact, name or split, found)
    return found


def ask_comparator(
    judge: LocalComparator,
    data: Source,
    split: str,
    environments: Sequence[str] | None = None,
    progress: Seen | None = None,
) -> list[Answered]:
    """Every ordered pair of a split, answered."""
    found = []
    for group in _seen(group_pairs(pair_rows(data, split, environments)), progress):
        ballots = judge.compare_texts(group.view, [(pair.first, pair.second) for pair in group.items])
        for pair, ballot in zip(group.items, ballots, strict=True):
            sure = float(ballot.text.split()[0].removeprefix("p=")) if ballot.text else 0.0
            found.append(Answered(group.environment, group.task_id, pair.pair_id, pair.label, ballot.label, sure))
    return found


def ask_critic(
    critic: LocalCritic,
    data: Source,
    split: str,
    environments: Sequence[str] | None = None,
    gamma: float = GAMMA,
    progress: Seen | None = None,
) -> list[Ranked]:
    """Every (state, action) of a split, scored."""
    found = []
    groups = group_targets(critic_rows(data, split, environments), gamma)
    for number, group in enumerate(_seen(groups, progress)):
        scores = critic.score_texts(group.view, [target.action for target in group.items])
        for target, score in zip(group.items, scores, strict=True):
            value = 0.5 if score.value is None else score.value
            found.append(Ranked(group.environment, group.task_id, number, value, target.value))
    return found


def _seen(groups: Sequence[Group], progress: Seen | None) -> Iterator[Group]:
    for number, group in enumerate(groups, 1):
        yield group
        if progress is not None:
            progress(number, len(groups))


def comparator_scores(answers: Sequence[Answered]) -> dict[str, Any]:
    """All numbers of a comparator over ordered pairs; an invalid answer is a wrong one."""
    decisive = [a for a in answers if a.label != "T"]
    valid = [a for a in answers if a.answer is not None]
    both = _both_orders(answers)
    sides = [(one, other) for one, other in both if one.label != "T"]
    counts = {label: sum(a.answer == label for a in answers) for label in "ABT"}
    return {
        "accuracy": share([a.answer == a.label for a in answers], _tasks(answers)),
        "decisive_accuracy": share([a.answer == a.label for a in decisive], _tasks(decisive)),
        "decisive_accuracy_when_decided": _when_decided(decisive),
        "bidirectional_accuracy": share(
            [one.answer == one.label and other.answer == other.label for one, other in sides],
            _tasks([one for one, _ in sides]),
        ),
        "order_consistency": share(
            [one.answer is not None and one.answer == FLIPPED[other.answer] for one, other in both],
            _tasks([one for one, _ in both]),
        ),
        "valid_outputs": share([a.answer is not None for a in answers]),
        "calibration_error": calibration_error([a.confidence for a in valid], [a.answer == a.label for a in valid]),
        "calibration_interval": resampled(
            lambda some: calibration_error(
                [valid[i].confidence for i in some], [valid[i].answer == valid[i].label for i in some]
            ),
            _tasks(valid),
        ),
        "answers": {label: count / max(len(answers), 1) for label, count in counts.items()},
        "majority": max((sum(a.label == x for a in answers) for x in "ABT"), default=0) / max(len(answers), 1),
        "pairs": len(both),
        "tasks": len(set(_tasks(answers))),
    }


def _when_decided(decisive: Sequence[Answered]) -> dict[str, Any]:
    """Accuracy over decisive pairs that the judge did not call a tie: how far its preferences can be trusted."""
    decided = [a for a in decisive if a.answer in ("A", "B")]
    return share([a.answer == a.label for a in decided], _tasks(decided))


def _tasks(items: Sequence[Any]) -> list[tuple[str, str]]:
    return [(item.environment, item.task_id) for item in items]


def _both_orders(answers: Sequence[Answered]) -> list[tuple[Answered, Answered]]:
    held: dict[str, list[Answered]] = {}
    for answer in answers:
        held.setdefault(answer.pair_id, []).append(answer)
    return [(pair[0], pair[1]) for pair in held.values() if len(pair) == 2]


def critic_scores(items: Sequence[Ranked]) -> dict[str, Any]:
    """Table 7: ranking accuracy over pairs inside a state whose targets differ (equal scores count half)."""
    states: dict[int, list[Ranked]] = {}
    for item in items:
        states.setdefault(item.state, []).append(item)
    points: list[float] = []
    tasks: list[Any] = []
    for held in states.values():
        for one, other in combinations(held, 2):
            if one.target != other.target:
                better = (one.score - other.score) * (1 if one.target > other.target else -1)
                points.append(0.5 if better == 0 else float(better > 0))
                tasks.append((one.environment, one.task_id))
    return {
        "ranking_accuracy": _mean(points, tasks),
        "spearman": spearman([i.score for i in items], [i.target for i in items]),
        "spearman_interval": _interval(spearman, items),
        "bce": cross_entropy([i.score for i in items], [i.target for i in items]),
        "bce_interval": _interval(cross_entropy, items),
        "bce_of_the_mean": _constant([i.target for i in items]),
        "states": len(states),
        "actions": len(items),
    }


def _interval(
    measure: Callable[[Sequence[float], Sequence[float]], float | None], items: Sequence[Ranked]
) -> tuple[float | None, float | None]:
    def of(some: Sequence[int]) -> float | None:
        return measure([items[i].score for i in some], [items[i].target for i in some])

    return resampled(of, _tasks(items))


def _mean(points: Sequence[float], tasks: Sequence[Any]) -> dict[str, Any]:
    from methods.training.scores import bootstrap

    if not points:
        return {"value": None, "n": 0, "low": None, "high": None}
    low, high = bootstrap(points, tasks) if len(set(tasks)) > 1 else (None, None)
    return {"value": sum(points) / len(points), "n": len(points), "low": low, "high": high}


def _constant(targets: Sequence[float]) -> float | None:
    """Cross-entropy of the best constant score: what a critic that knows nothing reaches."""
    return cross_entropy([sum(targets) / len(targets)] * len(targets), targets) if targets else None


def remembered(artefact: Path, name: str) -> dict[str, Any] | None:
    """What `evaluate_judge` found before under this name, when it would find the same today."""
    path = artefact / FILE
    held = read_json(path) if path.exists() else {}
    found: dict[str, Any] | None = held.get(name) if held.get("format") == FORMAT else None
    return found


def _remember(artefact: Path, name: str, found: Mapping[str, Any]) -> None:
    path = artefact / FILE
    held = read_json(path) if path.exists() else {}
    kept = held if held.get("format") == FORMAT else {}
    write_json(path, {**kept, "format": FORMAT, name: found})
