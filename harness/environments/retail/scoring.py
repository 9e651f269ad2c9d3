"""The score of a finished conversation, from its task alone: database, communicated information, assertions.

The task is the original one and the database is compared with the replayed golden actions, so a score after a restore
is the score of the whole conversation.  Assertions in natural language need a judge.  Without one the score is None
whatever the database says: scoring only the failures would bend every mean.  A judge that answers nothing, or not one
yes/no for each assertion, gives None as well, never a pass.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from harness.environments.retail.data import Golden, Task
from harness.environments.retail.database import Database
from harness.environments.retail.reading import tells
from harness.records import Usage

Message = tuple[str, str]  # (role, text): role is "assistant", "user", "call" or "tool"
UNSCORED = "needs a judge"
NO_ANSWER = "the judge gave no usable answer"
Info = Mapping[str, str | float | bool]
NOTHING: Info = {}
JUDGED: Info = {"unscored": UNSCORED, "needs_judge": True}


@dataclass(frozen=True, slots=True)
class Ruling:
    """A judge's answer: one yes/no for each assertion, in order; `usage` None-fields are unknown."""

    met: tuple[bool, ...]
    usage: Usage = field(default_factory=Usage)
    seconds: float = 0.0


class Judge(Protocol):
    """Decides whether a conversation fulfils assertions in natural language."""

    label: str

    def rule(self, messages: Sequence[Message], assertions: Sequence[str]) -> Ruling:
        """One yes/no for each assertion. Fewer or none means that it could not decide."""


@dataclass(frozen=True, slots=True)
class Score:
    """`reward` in {0, 1} or None (cannot be scored here); `info` says what it rests on."""

    reward: float | None
    info: Mapping[str, str | float | bool] = field(default_factory=dict)
    usage: Usage = field(default_factory=Usage)
    seconds: float = 0.0


def running(task: Task, judge: Judge | None) -> float | None:
    """The score of a conversation that has not been ended by its user: 0, or None where a judge is needed."""
    return None if task.needs_judge and judge is None else 0.0


def communicated(task: Task, messages: Sequence[Message]) -> bool:
    """Whether each required piece of information is in some message of the agent (upstream's rule)."""
    said = [text for role, text in messages if role == "assistant"]
    return all(any(tells(text, info) for text in said) for info in task.communicate)


def score(
    task: Task, golden: Golden, database: Database, messages: Sequence[Message], judge: Judge | None = None
) -> Score:
    """Score a conversation that its user (or agent) ended.

    Returns: the product of the task's bases (tau2 `DB x COMMUNICATE`, tau3 `DB x NL_ASSERTION`), as upstream's
    evaluator multiplies them.
    """
    matched = database.changes() == golden.changes
    info: dict[str, str | float | bool] = {"db_match": matched}
    passed = matched if "DB" in task.basis else True
    if "COMMUNICATE" in task.basis:
        info["communicated"] = communicated(task, messages)
        passed = passed and bool(info["communicated"])
    if not task.needs_judge:
        return Score(float(passed), info)
    if judge is None:
        return Score(None, {**info, "unscored": UNSCORED})
    if not passed:
        return Score(0.0, info)
    ruling = judge.rule(messages, task.assertions)
    if len(ruling.met) != len(task.assertions):
        return Score(None, {**info, "unscored": NO_ANSWER}, ruling.usage, ruling.seconds)
    info["assertions_met"] = all(ruling.met)
    return Score(float(all(ruling.met)), info, ruling.usage, ruling.seconds)
