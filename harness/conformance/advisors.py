"""What every method, candidate source and judge must do; tried on the mock corridor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from harness import intake
from harness.conformance.base import NotApplicable, require
from harness.desk import ReviewDesk, Tools
from harness.environments.mock import MockEnvironment
from harness.protocols import CandidateSource, Desk, Execute, Mind, Question, Verdict
from harness.records import Action, Advice, Ballot, Candidate, DecisionState, Proposal, Score, Usage

NEEDS = frozenset({"comparator", "critic", "adviser", "candidates"})


class _Pool:
    def draw(self, desk: Desk, k: int) -> Sequence[Candidate]:
        return [Candidate(action, "pool") for action in desk.pool()][: k + 1]


class _Prefers:
    """Prefers `right`; with an error it raises it instead."""

    needs_oracle = False

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error

    def compare(self, question: Question, pairs: Sequence[tuple[Action, Action]]) -> Sequence[Ballot]:
        if self.error:
            raise self.error
        return [Ballot("A" if a.text == "right" else "B" if b.text == "right" else "T") for a, b in pairs]

    def score(self, question: Question, actions: Sequence[Action]) -> Sequence[Score]:
        if self.error:
            raise self.error
        return [Score(1.0 if action.text == "right" else 0.2) for action in actions]

    def feedback(self, system: str, user: str, seed: int, deadline: float | None) -> tuple[str, Usage]:
        if self.error:
            raise self.error
        return "It goes the wrong way.", Usage(calls=1)


class _BrokenSource:
    def draw(self, desk: Desk, k: int) -> Sequence[Candidate]:
        raise ConnectionError("no generator")


def mock_desk(proposal: str = "left", tools: Tools | None = None, seed: int = 1) -> ReviewDesk:
    """A desk at the start of the mock corridor, with judges that prefer `right`."""
    environment = MockEnvironment()
    task, opening = environment.reset("test-0", 0)
    state = DecisionState("mock", "test-0", task, opening)
    judge = _Prefers()

    def ask(_: Advice) -> Proposal:
        return Proposal(Action("wait", "wait"))

    return ReviewDesk(
        state=state,
        proposal=Proposal(Action(proposal, proposal), "a private thought"),
        environment=environment,
        tools=tools or Tools(judge, judge, judge, _Pool()),
        seed=seed,
        attempt=0,
        ask_actor=ask,
        view=lambda: environment.render(state),
    )


def states_its_source(method: Any) -> None:
    """It states its paper, section and where its defaults come from, and what it needs."""
    for key in ("title", "section", "defaults"):
        require(bool(method.paper.get(key)), f"paper[{key!r}] is missing")
    unknown = set(method.needs) - NEEDS
    require(not unknown, f"needs holds {sorted(unknown)}; valid: {sorted(NEEDS)}")


def reviews_purely(method: Any) -> None:
    """The same review gives the same verdict, with evidence about this proposal."""
    verdicts: list[Verdict] = []
    for _ in range(2):
        desk = mock_desk()
        verdicts.append(intake.verdict(method.review(desk.state, desk.proposal, desk)))
    require(verdicts[0] == verdicts[1], "two reviews of one proposal differ")
    require(verdicts[0].review.proposal == mock_desk().proposal.action, "the evidence names another proposal")


def verdicts_are_sound(method: Any) -> None:
    """It executes a legal action or withholds with a message; its evidence can be stored."""
    for proposal in ("left", "right", "wait"):
        desk = mock_desk(proposal)
        verdict = intake.verdict(method.review(desk.state, desk.proposal, desk))
        if isinstance(verdict, Execute):
            require(desk.legal(verdict.action), f"it executes the illegal {verdict.action.text!r}")
        else:
            require(bool(verdict.advice.message), "it withholds without a message")


def fails_open(method: Any) -> None:
    """When anything it needs fails, it executes the proposal and counts the cause."""
    if not method.needs:
        raise NotApplicable("it uses no advisor")
    good = _Prefers()
    for error in (TimeoutError(), ConnectionError("gone"), ValueError("malformed")):
        for broken in sorted(method.needs):
            failing: Any = _BrokenSource() if broken == "candidates" else _Prefers(error)
            desk = mock_desk(tools=replace(Tools(good, good, good, _Pool()), **{broken: failing}))
            verdict = intake.verdict(method.review(desk.state, desk.proposal, desk))
            trouble = f"when its {broken} fails with {error!r}"
            require(isinstance(verdict, Execute), f"it withholds {trouble}")
            if isinstance(verdict, Execute):
                require(verdict.action == desk.proposal.action, f"it does not execute the proposal {trouble}")
            require(bool(verdict.review.fail_open), f"it does not count the cause in review.fail_open {trouble}")


METHOD_CHECKS = (states_its_source, reviews_purely, verdicts_are_sound, fails_open)


@dataclass
class SourceSubject:
    """A candidate source under test."""

    source: CandidateSource


def draws_by_seed(s: SourceSubject) -> None:
    """The same seed draws the same candidates; at most k; each names its source."""
    first, second = (list(s.source.draw(mock_desk(), 2)) for _ in range(2))
    require(first == second, "two draws with one seed differ")
    require(all(c.source for c in first), "a candidate does not name its source")
    kept = mock_desk(tools=Tools(candidates=s.source)).candidates(2)
    require(len(kept) <= 2, "more than k candidates")
    require("left" not in {c.action.canonical for c in kept}, "the proposal is among its alternatives")


SOURCE_CHECKS = (draws_by_seed,)


def answers_each_pair(judge: Any) -> None:
    """One valid answer for each pair or action, or words for an adviser; the same when asked again."""
    desk = mock_desk()
    if hasattr(judge, "feedback"):
        said = [judge.feedback("Be brief.", desk.question().view, 0, None) for _ in range(2)]
        require(all(isinstance(text, str) and isinstance(usage, Usage) for text, usage in said), "not (words, usage)")
        require(said[0][0] == said[1][0], "two calls with one seed differ")
        return
    environment = MockEnvironment()
    environment.reset("test-0", 0)
    question = Question(desk.state, desk.question().view, environment.oracle() if judge.needs_oracle else None)
    left, right = Action("left", "left"), Action("right", "right")
    if hasattr(judge, "compare"):
        ballots = [list(judge.compare(question, [(left, right), (right, left)])) for _ in range(2)]
        require(len(ballots[0]) == 2, "not one ballot for each pair")
        require([b.label for b in ballots[0]] == [b.label for b in ballots[1]], "two calls differ")
        require(all(b.label in ("A", "B", "T", None) for b in ballots[0]), "a label is not A, B, T or None")
        require(all(b.cause for b in ballots[0] if b.label is None), "a missing label needs a cause")
        require(list(judge.compare(question, [])) == [], "no pairs, no ballots")
    else:
        scores = list(judge.score(question, [left, right]))
        require(len(scores) == 2, "not one score for each action")
        require(all(s.value is None or 0 <= s.value <= 1 for s in scores), "a score is outside [0, 1]")


JUDGE_CHECKS = (answers_each_pair,)


def _answers(actor: Any) -> tuple[Proposal, Proposal]:
    desk, environment = mock_desk(), MockEnvironment()
    environment.reset("test-0", 0)
    mind = Mind(3, (), environment.briefing(), environment.canonical, 4, environment.legal, None, environment.oracle())
    advice = Advice("try", (Action("right", "right"),))
    proposed = intake.proposal(actor.propose(desk.state, mind))
    return proposed, intake.proposal(actor.replan(desk.state, desk.proposal, advice, mind), "replan")


def proposals_can_be_stored(actor: Any) -> None:
    """It says whether it is simulated, and proposes actions that a record can hold."""
    require(isinstance(getattr(actor, "simulated", None), bool), "`simulated` must be True or False")
    if not actor.simulated:
        raise NotApplicable("a real model; it is not called here")
    require(all(bool(p.action.canonical) for p in _answers(actor)), "no action in the proposal")


def acts_by_seed(actor: Any) -> None:
    """The same state and seed give the same proposal and the same answer to advice."""
    if not actor.simulated:
        raise NotApplicable("a real model; determinism is the endpoint's")
    require(_answers(actor) == _answers(actor), "two calls with one seed differ")


ACTOR_CHECKS = (proposals_can_be_stored, acts_by_seed)
