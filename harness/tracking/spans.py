"""Spans: a finished episode as a tree of what happened, for the trace view of the tracking store.

Made from the record alone, so a trace can be made again at any time and says nothing that the ledger does not.  One
root, one span a step, and in it the actor, each review (with its candidates and its judge), the environment and, where
there is one, its user.  What the record keeps by step stays by step: an actor that answered more than once has one span
with all its answers, its time and its tokens, those that a review asked for included; the advisor's own time is shared
out among the reviews as long as each took.  Spans of a step follow each other.

Texts are visible (control characters written out) and cut; of a long episode `STEPS` steps are shown.  Whatever tokens
are in none of the shown steps stand on a last span, so that a trace's tokens are the episode's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import reduce
from typing import Any, Final

from harness.records import Episode, Review, Step, Usage
from harness.rows import ERRORS, TOKEN_ROLES
from harness.show import cut

CHARS: Final = 2_000  # of one text
SHORT: Final = 200  # of a name, an action
STEPS: Final = 60  # of one episode
LISTED: Final = 16  # candidates, votes, recommendations of one review
NANO: Final = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Span:
    """One node; `parent` is the position of its parent in the list (None: the root), times are nanoseconds."""

    name: str
    kind: str
    begin: int
    end: int
    parent: int | None
    inputs: Mapping[str, Any] = field(default_factory=dict)
    outputs: Mapping[str, Any] = field(default_factory=dict)
    attributes: Mapping[str, Any] = field(default_factory=dict)
    usage: Usage | None = None
    error: str = ""


def spans_of(episode: Episode) -> list[Span]:
    """All spans of an episode, parents before children, the root first."""
    begin = int(episode.started_at * NANO)
    tree = _Tree([_root(episode, begin)], begin)
    after = [step.observation for step in episode.steps[1:]] + [episode.final_observation]
    for step, observation in zip(episode.steps[:STEPS], after, strict=False):
        tree.step(step, observation)
    tree.rest(episode)
    return tree.spans


def _root(episode: Episode, begin: int) -> Span:
    outputs = {
        "status": episode.status,
        "reason": _text(episode.reason),
        "reward": episode.reward,
        "success": episode.success,
        "steps": len(episode.steps),
        "final_observation": _text(episode.final_observation),
    }
    known: dict[str, Any] = {
        "cell": episode.cell,
        "actor": episode.actor,
        "seed": episode.seed,
        "attempt": episode.attempt,
        "simulated": ", ".join(episode.simulated) or "nothing",
        "boundary": episode.boundary or "none",
    }
    return Span(
        name=f"{episode.method} | {episode.environment} | {_short(episode.task_id)}",
        kind="AGENT",
        begin=begin,
        end=begin + _ns(episode.wall_s),
        parent=None,
        inputs={"task_id": _short(episode.task_id), "task": _text(episode.task)},
        outputs=outputs,
        attributes=known,
        error=_text(episode.reason) if episode.status in ERRORS else "",
    )


@dataclass
class _Tree:
    """The spans so far, and the time up to which they reach."""

    spans: list[Span]
    now: int

    def add(self, span: Span) -> int:
        """Append; gives the position."""
        self.spans.append(span)
        return len(self.spans) - 1

    def step(self, step: Step, after: str) -> None:
        """One executed step, its parts one after the other."""
        begin, executed = self.now, _short(step.executed.text)
        outputs = {"executed": executed, "reward": step.reward, "done": step.done}
        seen = {"observation": _text(step.observation)}
        legal = {"legal_actions": step.legal_actions}
        here = self.add(Span(f"step {step.index + 1}", "CHAIN", begin, begin, 0, seen, outputs, legal))
        self._part("actor", "LLM", here, step.seconds.get("actor", 0.0), seen, _said(step), step.usage.get("actor"))
        whole_s = sum(review.seconds for review in step.reviews)
        share = step.seconds.get("advisor", 0.0) / whole_s if whole_s > 0 else 0.0
        for review in step.reviews:
            self._review(review, here, share)
        user_s, usage = step.seconds.get("simulator", 0.0), step.usage.get("simulator")
        outside = step.seconds.get("environment", 0.0) + user_s
        answer = {"observation": _text(after), "reward": step.reward, "done": step.done}
        place = self._part("environment", "TOOL", here, outside, {"action": executed}, answer)
        if user_s or usage is not None:
            self.add(Span("user", "LLM", self.now - _ns(user_s), self.now, place, usage=usage))
        whole = self.spans[here]
        self.now = max(self.now, begin + _ns(sum(step.seconds.values())))
        self.spans[here] = Span(whole.name, whole.kind, begin, self.now, 0, seen, outputs, legal)

    def _part(
        self,
        name: str,
        kind: str,
        parent: int,
        seconds: float,
        inputs: Mapping[str, Any],
        outputs: Mapping[str, Any],
        usage: Usage | None = None,
    ) -> int:
        begin, self.now = self.now, self.now + _ns(seconds)
        return self.add(Span(name, kind, begin, self.now, parent, inputs, outputs, usage=usage))

    def _review(self, review: Review, parent: int, share: float) -> None:
        """A review and its evidence; its tokens stand on it as a whole, as the record has them."""
        begin = self.now
        outputs = {
            "fired": review.fired,
            "message": _text(review.message),
            "recommended": [_short(action.text) for action in review.recommended[:LISTED]],
            "answer_of_the_actor": review.response or "none",
            "fail_open": list(review.fail_open[:LISTED]),
        }
        inputs = {"proposal": _short(review.proposal.text), "thought": _text(review.thought)}
        usage = review.usage if review.usage != Usage() else None
        kind, seconds = "LLM" if usage else "GUARDRAIL", review.seconds * share
        here = self._part("review", kind, parent, seconds, inputs, outputs, usage)
        drawn = [{"action": _short(c.action.text), "source": c.source} for c in review.candidates[:LISTED]]
        if drawn:
            self.add(Span("candidates", "RETRIEVER", begin, begin, here, outputs={"candidates": drawn}))
        votes = [
            {"candidate": vote.candidate, "forward": vote.forward, "backward": vote.backward, "won": vote.won}
            for vote in review.votes[:LISTED]
        ]
        if votes or review.scores:
            asked = {"votes": votes, "scores": list(review.scores[:LISTED]), "comparisons": review.comparisons}
            self.add(Span("judge", "EVALUATOR", begin, self.now, here, outputs=asked))

    def rest(self, episode: Episode) -> None:
        """What the shown steps do not hold: steps beyond `STEPS`, and a step that failed before it was executed."""
        shown = episode.steps[:STEPS]
        left = {role: _less(episode.usage.get(role), [step.usage.get(role) for step in shown]) for role in TOKEN_ROLES}
        left = {role: usage for role, usage in left.items() if usage is not None}
        hidden = len(episode.steps) - len(shown)
        if not left and not hidden:
            return
        end = max(self.now, self.spans[0].end)
        said = {"steps_not_shown": hidden}
        here = self.add(Span("not shown" if hidden else "unfinished step", "CHAIN", self.now, end, 0, outputs=said))
        for role, usage in left.items():
            self.add(Span("user" if role == "simulator" else role, "LLM", self.now, end, here, usage=usage))


def _said(step: Step) -> dict[str, Any]:
    proposals = [_short(review.proposal.text) for review in step.reviews[:LISTED]]
    return {"thought": _text(step.thought), "executed": _short(step.executed.text), "proposals": proposals}


def _less(whole: Usage | None, parts: Iterable[Usage | None]) -> Usage | None:
    """What is left of usage after its parts, None when nothing is; unknown stays unknown."""
    if whole is None:
        return None
    gone = reduce(Usage.__add__, (part for part in parts if part is not None), Usage())
    if whole == gone or whole.calls == gone.calls:
        return None

    def minus(a: int | None, b: int | None) -> int | None:
        return None if a is None or b is None else a - b

    return Usage(
        whole.calls - gone.calls,
        minus(whole.prompt, gone.prompt),
        minus(whole.completion, gone.completion),
        minus(whole.cached, gone.cached),
        minus(whole.reasoning, gone.reasoning),
    )


def _ns(seconds: float) -> int:
    return int(max(0.0, seconds) * NANO)


def _text(text: str) -> str:
    return cut(text, CHARS, newlines=True).replace("\n        ", "\n")


def _short(text: str) -> str:
    return cut(text, SHORT, newlines=False)
