"""Failing open: whatever an advisor does wrong, the actor's proposal is executed, and the cause is counted."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from harness.codec import from_json, to_json
from harness.desk import Tools
from harness.errors import UsageError
from harness.loop import Limits
from harness.protocols import Question
from harness.records import Action, Ballot, Score, Usage
from methods.absq_constructive import AbsQConstructive
from methods.agentprm import AgentPRM
from methods.asym_ac import AsymAC
from methods.candidates.environment import EnvironmentCandidates
from methods.cota import Cota
from methods.pairwise_forced import PairwiseForced
from tests.harness.helpers import Fickle, episode

NAN = float("nan")
PAIRWISE, ABSOLUTE = (Cota, PairwiseForced), (AgentPRM, AbsQConstructive)
Answer = Callable[[int], Any]


class Judge:
    """Comparator, critic and adviser that answers `answer(how many were asked)`."""

    needs_oracle = False

    def __init__(self, answer: Answer) -> None:
        self.answer = answer

    def compare(self, question: Question, pairs: Sequence[tuple[Action, Action]]) -> Any:
        return self.answer(len(pairs))

    def score(self, question: Question, actions: Sequence[Action]) -> Any:
        return self.answer(len(actions))

    def feedback(self, system: str, user: str, seed: int, deadline: float | None) -> Any:
        return self.answer(1)


def raising(error: Exception) -> Answer:
    def answer(_: int) -> Any:
        raise error

    return answer


def slow(_: int) -> Any:
    time.sleep(0.6)


SHARED: list[tuple[Answer, str]] = [
    (raising(TimeoutError()), "judge:timeout"),
    (raising(ConnectionError("gone")), "judge:ConnectionError"),
    (raising(MemoryError()), "judge:MemoryError"),
    (lambda n: None, "judge:TypeError"),
    (lambda n: [], "judge:wrong_count"),
    (lambda n: ["A"] * n, "judge:malformed"),
    (slow, "timeout"),
]
BALLOTS: list[tuple[Answer, str]] = [
    *SHARED,
    (lambda n: [Ballot("A")] * (n + 1), "judge:wrong_count"),
    (lambda n: [Ballot("C")] * n, "judge:invalid_output"),  # type: ignore[arg-type]
    (lambda n: [Ballot(["A"])] * n, "judge:invalid_output"),  # type: ignore[arg-type]
    (lambda n: [Ballot(None)] * n, "judge:invalid_output"),
    (lambda n: [Ballot(None, "not_finite")] * n, "judge:not_finite"),
    (lambda n: [Ballot("T")] * n, "tie"),
    (lambda n: [Ballot("A")] * n, "inconsistent"),  # the first of any two, in either order
]
SCORES: list[tuple[Answer, str]] = [
    *SHARED,
    (lambda n: [Score(NAN)] * n, "judge:not_finite"),
    (lambda n: [Score(0.1), *[Score(float("inf"))] * (n - 1)], "judge:not_finite"),
    (lambda n: [Score("high")] * n, "judge:not_finite"),  # type: ignore[arg-type]
    (lambda n: [Score(None, "not_finite")] * n, "judge:not_finite"),
    (lambda n: [Score(NAN), *[Score(1.0)] * (n - 1)], "judge:not_finite"),  # the proposal's own score is missing
]
FEEDBACK: list[tuple[Answer, str]] = [
    (raising(TimeoutError()), "critic:timeout"),
    (raising(ConnectionError("gone")), "critic:ConnectionError"),
    (lambda _: None, "critic:TypeError"),
    (lambda _: (None, Usage()), "critic:malformed"),
    (lambda _: (" \n", Usage()), "critic:empty"),
    (slow, "timeout"),
]
CASES = [(method, *case) for method in PAIRWISE for case in BALLOTS]
CASES += [(method, *case) for method in ABSOLUTE for case in SCORES]
CASES += [(AsymAC, *case) for case in FEEDBACK]


@pytest.mark.parametrize(("method", "answer", "cause"), CASES)
def test_trouble_executes_the_proposal_and_is_counted(method: Any, answer: Answer, cause: str) -> None:
    judge = Judge(answer)
    tools = Tools(comparator=judge, critic=judge, adviser=judge, candidates=EnvironmentCandidates())
    limits = Limits(max_steps=1, call_s=0.15 if answer is slow else None)
    result = episode(method(), Fickle("left", "right"), tools=tools, limits=limits)
    assert result.status == "truncated", result.reason
    assert [step.executed.text for step in result.steps] == ["left"]
    review = result.steps[0].reviews[0]
    assert cause in review.fail_open
    assert not review.fired
    assert from_json(to_json(result)) == result  # nothing that a ledger would refuse


def test_a_judge_out_of_order_sides_is_harmless_but_one_good_candidate_still_counts() -> None:
    def score(n: int) -> list[Score]:
        return [Score(0.2), Score(NAN), *[Score(0.9)] * (n - 2)]

    tools = Tools(critic=Judge(score), candidates=EnvironmentCandidates())
    result = episode(AgentPRM(k=2), Fickle("left", "left"), tools=tools, limits=Limits(max_steps=1))
    review = result.steps[0].reviews[0]
    assert review.fired
    assert review.scores == (0.2, None, 0.9)
    assert result.steps[0].executed == review.candidates[1].action


@pytest.mark.parametrize("method", [*PAIRWISE, *ABSOLUTE])
def test_a_mistake_of_the_users_is_not_hidden(method: Any) -> None:
    judge = Judge(raising(UsageError("no such model")))
    tools = Tools(comparator=judge, critic=judge, candidates=EnvironmentCandidates())
    result = episode(method(), Fickle("left", "right"), tools=tools)
    assert (result.status, result.reason) == ("failed", "no such model")
