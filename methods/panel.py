"""Panels: candidates judged against the proposal, by either kind of judge.

A panel is what an intervention acts on, so any judge goes with any intervention (paper table 2).  The pairwise gate is
lazy but exact: the second order is asked only where the first was a win, and only while R can still be reached; what
fires, who wins and how winners rank is what the eager gate gives (`tests/methods/test_gate.py` holds the proof).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from math import isfinite
from typing import Any

from harness.protocols import Comparator, Critic, Desk, Question
from harness.records import Action, Ballot, Candidate, Score, Usage, Vote
from methods.failopen import cause_of


@dataclass(frozen=True, slots=True)
class Panel:
    """Evidence of one review; `winners` are indices of candidates, best first, empty unless the gate fired."""

    candidates: tuple[Candidate, ...] = ()
    votes: tuple[Vote, ...] = ()
    scores: tuple[float | None, ...] = ()
    fired: bool = False
    winners: tuple[int, ...] = ()
    causes: tuple[str, ...] = ()
    comparisons: int = 0
    usage: Usage = field(default_factory=Usage)

    @property
    def recommended(self) -> tuple[Action, ...]:
        """Winning actions, best first."""
        return tuple(self.candidates[i].action for i in self.winners)


class Asker:
    """Asks a comparator, counting comparisons, usage and trouble."""

    def __init__(self, comparator: Comparator, question: Question) -> None:
        self.comparator = comparator
        self.question = question
        self.causes: list[str] = []
        self.comparisons = 0
        self.usage = Usage()

    def ask(self, pairs: Sequence[tuple[Action, Action]]) -> list[Ballot]:
        """One ballot a pair; trouble with the call gives empty ballots."""
        if not pairs:
            return []
        self.comparisons += len(pairs)
        try:
            ballots = list(self.comparator.compare(self.question, pairs))
        except Exception as error:  # noqa: BLE001  fails open, counted by cause
            self.causes.append(cause_of(error, "judge"))
            return [Ballot(None, "failed")] * len(pairs)
        if len(ballots) != len(pairs):
            self.causes.append("judge:wrong_count")
            return [Ballot(None, "failed")] * len(pairs)
        ballots = [_valid(ballot) for ballot in ballots]
        for ballot in ballots:
            self.usage = self.usage + ballot.usage
            if ballot.label is None:
                self.causes.append(f"judge:{ballot.cause or 'invalid_output'}")
        return ballots


def _valid(ballot: Any) -> Ballot:
    """A judge's ballot, or an empty one with the cause where it is none."""
    if not isinstance(ballot, Ballot):
        return Ballot(None, "malformed")
    if ballot.label in ("A", "B", "T", None):
        return ballot
    return replace(ballot, label=None, cause=ballot.cause or "invalid_output")


def _sound(score: Any) -> Score:
    """A critic's score, or an empty one with the cause where it is none; what is no number never reaches a record."""
    if not isinstance(score, Score):
        return Score(None, "malformed")
    value = score.value
    if value is None or (isinstance(value, int | float) and isfinite(value)):
        return score
    return replace(score, value=None, cause=score.cause or "not_finite")


def draw(desk: Desk, k: int) -> tuple[tuple[Candidate, ...], tuple[str, ...]]:
    """Candidates and the causes for there being none."""
    try:
        found = desk.candidates(k)
    except Exception as error:  # noqa: BLE001  fails open, counted by cause
        return (), (cause_of(error, "candidates"),)
    return found, () if found else ("candidates:none",)


def pairwise(desk: Desk, k: int, r: int, lazy: bool = True) -> Panel:
    """Candidates against the proposal by the bidirectional rule (paper eq. 5, 6, 33); fires at r winners."""
    candidates, causes = draw(desk, k)
    if not candidates:
        return Panel(causes=causes)
    asker = Asker(desk.comparator(), desk.question())
    votes = _votes(asker, [c.action for c in candidates], desk.proposal.action, r, lazy)
    won = [vote.candidate for vote in votes if vote.won]
    fired = len(won) >= r
    winners = _rank(asker, candidates, won) if fired else ()
    troubles = tuple(asker.causes) + tuple(_soft_causes(votes))
    return Panel(candidates, votes, (), fired, winners, troubles, asker.comparisons, asker.usage)


def _votes(asker: Asker, actions: list[Action], proposal: Action, r: int, lazy: bool) -> tuple[Vote, ...]:
    forward = asker.ask([(action, proposal) for action in actions])
    open_ = [i for i, ballot in enumerate(forward) if ballot.label == "A" or not lazy]
    if lazy and len(open_) < r:
        open_ = []  # R is out of reach, and nothing will be ranked
    backward: dict[int, Ballot] = dict(
        zip(open_, asker.ask([(proposal, actions[i]) for i in open_]), strict=True),
    )
    votes = []
    for i, first in enumerate(forward):
        second = backward.get(i)
        won = first.label == "A" and second is not None and second.label == "B"
        votes.append(Vote(i, first.label, second.label if second else None, won))
    return tuple(votes)


def _soft_causes(votes: Sequence[Vote]) -> list[str]:
    """Valid answers that leave the proposal standing: ties, and orders that contradict each other."""
    causes = []
    for vote in votes:
        if "T" in (vote.forward, vote.backward):
            causes.append("tie")
        elif vote.forward is not None and vote.forward == vote.backward:
            causes.append("inconsistent")
    return causes


def _rank(asker: Asker, candidates: Sequence[Candidate], won: Sequence[int]) -> tuple[int, ...]:
    """Winners by wins among winners (same bidirectional rule), ties in drawn order."""
    pairs = list(combinations(won, 2))
    acts = {i: candidates[i].action for i in won}
    forward = asker.ask([(acts[i], acts[j]) for i, j in pairs])
    decided = [(pair, ballot) for pair, ballot in zip(pairs, forward, strict=True) if ballot.label in ("A", "B")]
    backward = asker.ask([(acts[j], acts[i]) for (i, j), _ in decided])
    wins = dict.fromkeys(won, 0)
    for ((i, j), first), second in zip(decided, backward, strict=True):
        if first.label == "A" and second.label == "B":
            wins[i] += 1
        elif first.label == "B" and second.label == "A":
            wins[j] += 1
    return tuple(sorted(won, key=lambda i: (-wins[i], i)))


def absolute(desk: Desk, k: int, r: int) -> Panel:
    """Candidates against the proposal by estimated Q (paper appendix B.7); an exact tie is no win."""
    candidates, causes = draw(desk, k)
    if not candidates:
        return Panel(causes=causes)
    critic: Critic = desk.critic()
    actions = [desk.proposal.action, *(c.action for c in candidates)]
    try:
        answers = [_sound(score) for score in critic.score(desk.question(), actions)]
    except Exception as error:  # noqa: BLE001  fails open, counted by cause
        return Panel(candidates, causes=(cause_of(error, "judge"),))
    if len(answers) != len(actions):
        return Panel(candidates, causes=("judge:wrong_count",))
    usage = Usage()
    for answer in answers:
        usage = usage + answer.usage
    scores = tuple(answer.value for answer in answers)
    troubles = tuple(f"judge:{a.cause or 'invalid_output'}" for a in answers if a.value is None)
    base = scores[0]
    better = [] if base is None else [i for i, q in enumerate(scores[1:]) if q is not None and q > base]
    fired = len(better) >= r
    ranked = sorted(better, key=lambda i: (-(scores[i + 1] or 0.0), i)) if fired else []
    return Panel(candidates, (), scores, fired, tuple(ranked), troubles, len(actions), usage)
