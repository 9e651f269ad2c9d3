"""The gate: bidirectional rule, lazy against eager on random vote tables, ties, and every way to fail open."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import pytest

from harness.desk import Tools
from harness.errors import IllegalAction
from harness.loop import Limits
from harness.protocols import Question
from harness.records import Action, Ballot, Candidate, Proposal, Score
from methods.agentprm import AgentPRM
from methods.candidates.environment import EnvironmentCandidates
from methods.cota import Cota
from methods.judges.oracle import OracleComparator, OracleCritic
from methods.pairwise_forced import PairwiseForced
from methods.panel import absolute, pairwise
from methods.self_reflection import SelfReflection
from tests.harness.helpers import Fickle, episode

A0 = Action("a0", "a0")


class TableJudge:
    """Answers from a table of labels, counting what it is asked."""

    needs_oracle = False

    def __init__(self, table: dict[tuple[str, str], str | None]) -> None:
        self.table = table
        self.asked = 0

    def compare(self, question: Question, pairs: Sequence[tuple[Action, Action]]) -> Sequence[Ballot]:
        self.asked += len(pairs)
        return [Ballot(self.table[a.text, b.text]) for a, b in pairs]  # type: ignore[arg-type]


class StubDesk:
    def __init__(self, k: int, comparator: Any = None, critic: Any = None) -> None:
        self.proposal = Proposal(A0)
        self._k = k
        self._comparator, self._critic = comparator, critic

    def candidates(self, k: int) -> tuple[Candidate, ...]:
        return tuple(Candidate(Action(f"c{i}", f"c{i}"), "stub") for i in range(self._k))

    def question(self) -> None:
        return None

    def comparator(self) -> Any:
        return self._comparator

    def critic(self) -> Any:
        return self._critic


def random_table(chance: random.Random, k: int) -> dict[tuple[str, str], str | None]:
    """Labels of all ordered pairs: noise alone, or preferences that are mostly consistent."""
    names = ["a0", *(f"c{i}" for i in range(k))]
    pairs = [(a, b) for a in names for b in names if a != b]
    weights = chance.choice([(4, 1, 1, 0), (1, 1, 1, 1), (5, 5, 1, 0), (1, 4, 1, 0)])
    noise = chance.choice([1.0, 0.1, 0.3])
    worth = {name: chance.randint(0, 3) for name in names}

    def label(a: str, b: str) -> str | None:
        if chance.random() < noise:
            return chance.choices(["A", "B", "T", None], weights)[0]
        return "T" if worth[a] == worth[b] else "A" if worth[a] > worth[b] else "B"

    return {pair: label(*pair) for pair in pairs}


def test_lazy_gate_equals_eager_on_random_tables() -> None:
    chance = random.Random(7)
    saved = total = fired = ranked = 0
    for _ in range(12_000):
        k = chance.randint(1, 8)
        r = chance.randint(1, k)
        table = random_table(chance, k)
        lazy_judge, eager_judge = TableJudge(table), TableJudge(table)
        lazy = pairwise(StubDesk(k, lazy_judge), k, r, lazy=True)  # type: ignore[arg-type]
        eager = pairwise(StubDesk(k, eager_judge), k, r, lazy=False)  # type: ignore[arg-type]
        assert (lazy.fired, lazy.winners, lazy.recommended) == (eager.fired, eager.winners, eager.recommended)
        assert lazy_judge.asked <= eager_judge.asked
        assert lazy.comparisons == lazy_judge.asked
        fired += lazy.fired
        ranked += lazy.winners != tuple(sorted(lazy.winners))
        saved += eager_judge.asked - lazy_judge.asked
        total += eager_judge.asked
    assert 1_000 < fired < 11_000
    assert ranked > 500  # the order of winners was at stake, not only who they are
    print(f"lazy gate: {saved / total:.1%} of {total} comparisons saved, {fired} fired, {ranked} ranked anew")
    assert saved / total > 0.15


@pytest.mark.parametrize(
    ("forward", "backward", "won"),
    [("A", "B", True), ("A", "A", False), ("A", "T", False), ("B", "B", False), ("T", "T", False), (None, "B", False)],
)
def test_bidirectional_rule(forward: str | None, backward: str | None, won: bool) -> None:
    table = {("c0", "a0"): forward, ("a0", "c0"): backward}
    panel = pairwise(StubDesk(1, TableJudge(table)), 1, 1, lazy=False)  # type: ignore[arg-type]
    assert panel.fired is won
    assert panel.recommended == ((Action("c0", "c0"),) if won else ())


def test_soft_causes_are_counted() -> None:
    table = {("c0", "a0"): "T", ("a0", "c0"): "T", ("c1", "a0"): "A", ("a0", "c1"): "A"}
    table |= {("c0", "c1"): "T", ("c1", "c0"): "T"}
    panel = pairwise(StubDesk(2, TableJudge(table)), 2, 1, lazy=False)  # type: ignore[arg-type]
    assert sorted(panel.causes) == ["inconsistent", "tie"]


def test_winners_rank_by_wins_among_winners_then_drawn_order() -> None:
    names = ["c0", "c1", "c2"]
    table = {(c, "a0"): "A" for c in names} | {("a0", c): "B" for c in names}
    table |= {("c2", "c0"): "A", ("c0", "c2"): "B", ("c2", "c1"): "A", ("c1", "c2"): "B"}
    table |= {("c0", "c1"): "T", ("c1", "c0"): "T"}
    assert pairwise(StubDesk(3, TableJudge(table)), 3, 1).winners == (2, 0, 1)  # type: ignore[arg-type]


class TableCritic:
    needs_oracle = False

    def __init__(self, *values: float | None) -> None:
        self.values = values

    def score(self, question: Question, actions: Sequence[Action]) -> Sequence[Score]:
        return [Score(v, None if v is not None else "nan") for v in self.values]


@pytest.mark.parametrize(
    ("values", "winners"),
    [
        ((0.5, 0.5, 0.5), ()),
        ((0.5, 0.6, 0.6), (0, 1)),
        ((0.5, 0.6, 0.7), (1, 0)),
        ((0.5, None, 0.7), (1,)),
        ((None, 0.9, 0.9), ()),
    ],
)
def test_argmax_ties_keep_the_proposal(values: tuple[float | None, ...], winners: tuple[int, ...]) -> None:
    assert absolute(StubDesk(2, critic=TableCritic(*values)), 2, 1).winners == winners  # type: ignore[arg-type]


def test_cota_with_an_oracle_judge_saves_a_lost_actor() -> None:
    tools = Tools(comparator=OracleComparator(), candidates=EnvironmentCandidates())
    result = episode(Cota(), Fickle("left", "right"), tools=tools)
    assert result.success
    assert result.steps[0].reviews[0].response == "adopt"
    assert "left" in result.steps[0].reviews[0].message
    assert not result.steps[0].reviews[1].fired


def test_forced_executes_the_winner_without_asking_the_actor() -> None:
    tools = Tools(comparator=OracleComparator(), critic=OracleCritic(), candidates=EnvironmentCandidates())
    for method in (PairwiseForced(), AgentPRM()):
        result = episode(method, Fickle("left", "left"), tools=tools)
        assert result.success
        assert [step.executed.text for step in result.steps] == ["right"] * 5
        assert all(len(step.reviews) == 1 for step in result.steps)


@pytest.mark.parametrize(
    ("answer", "executed", "causes"),
    [("right", "right", ()), ("fly", "left", ("revision:illegal",)), ("", "left", ("revision:malformed",))],
)
def test_self_reflection_fails_open(answer: str, executed: str, causes: tuple[str, ...]) -> None:
    result = episode(SelfReflection(), Fickle("left", answer), limits=Limits(max_steps=1))
    assert result.steps[0].executed.text == executed
    assert result.steps[0].reviews[0].fail_open == causes


def test_self_reflection_time_is_the_actors() -> None:
    result = episode(SelfReflection(), Fickle("left", "right"))
    assert result.status == "done"
    assert isinstance(IllegalAction("x"), Exception)
