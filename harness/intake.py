"""Intake: what a plugin hands in is checked where it enters the loop, so that a mistake stays with its owner.

A part that no record can hold (NaN, a wrong type, nothing at all) ends its episode as failed, with the owner as the
boundary and a sentence for the plugin's author.  Nothing is converted: a NumPy integer in a count is refused with the
hint how to convert it, because a harness that guesses hides the mistake.  The only things mended are text that UTF-8
cannot hold (lone surrogates) and text without an end (`harness.bounds`), since both come from models and data, not from
the author.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from harness.bounds import MAX_ACTION, MAX_ANSWER, MAX_OBSERVATION, bounded
from harness.codec import CodecError, clean, verify
from harness.errors import EpisodeError
from harness.protocols import Execute, Verdict, Withhold
from harness.records import Action, Advice, Observation, Outcome, Proposal, Review, Role, Usage


def _verify(role: Role, call: str, kind: type, value: Any) -> None:
    try:
        verify(kind, value)
    except CodecError as error:
        raise EpisodeError(role, f"{call}: {error}") from error


def proposal(value: Any, call: str = "propose") -> Proposal:
    """What an actor proposed. Raises `EpisodeError` (actor)."""
    if not isinstance(value, Proposal):
        raise EpisodeError("actor", f"{call}() returned {_kind(value)} where a Proposal belongs")
    _verify("actor", f"{call}() returned a Proposal that cannot be stored", Proposal, value)
    if max(len(value.action.text), len(value.action.canonical)) > MAX_ACTION:
        said = f"{call}() gave an action of {len(value.action.text)} characters; the limit is {MAX_ACTION}"
        raise EpisodeError("actor", said, "unparsed")
    thought = clean(bounded(value.thought, MAX_ANSWER))
    return value if thought is value.thought else replace(value, thought=thought)


def verdict(value: Any) -> Verdict:
    """What a method decided. Raises `EpisodeError` (advisor)."""
    if not isinstance(value, Execute | Withhold):
        raise EpisodeError("advisor", f"review() returned {_kind(value)} where Execute or Withhold belongs")
    call = f"review() returned {type(value).__name__}"
    if isinstance(value, Execute):
        _verify("advisor", f"{call} with an action that is none", Action, value.action)
    else:
        _verify("advisor", f"{call} with advice that is none", Advice, value.advice)
    _verify("advisor", f"{call} with a review that cannot be stored", Review, value.review)
    return value


def usage(role: Role, value: Any) -> None:
    """Counts that were added up outside a verdict. Raises `EpisodeError`."""
    _verify(role, "usage that cannot be stored", Usage, value)


def opening(value: Any) -> tuple[str, Observation]:
    """What `reset` returned. Raises `EpisodeError` (environment)."""
    if not isinstance(value, tuple) or len(value) != 2 or not isinstance(value[0], str):
        raise EpisodeError("environment", f"reset() returned {_kind(value)} where (task text, Observation) belongs")
    _verify("environment", "reset() returned an observation that is none", Observation, value[1])
    return clean(bounded(value[0], MAX_OBSERVATION)), _clean(value[1])


def outcome(value: Any) -> Outcome:
    """What `step` returned. Raises `EpisodeError` (environment)."""
    if not isinstance(value, Outcome):
        raise EpisodeError("environment", f"step() returned {_kind(value)} where an Outcome belongs")
    _verify("environment", "step() returned an Outcome that cannot be stored", Outcome, value)
    if value.reward is not None and not 0.0 <= value.reward <= 1.0:
        said = f"step() returned a reward of {value.reward!r}, outside [0, 1]; unknown is None"
        raise EpisodeError("environment", said)
    seen = _clean(value.observation)
    return value if seen is value.observation else replace(value, observation=seen)


def _clean(seen: Observation) -> Observation:
    text = clean(bounded(seen.text, MAX_OBSERVATION))
    return seen if text is seen.text else replace(seen, text=text)


def _kind(value: Any) -> str:
    return "None" if value is None else f"{type(value).__name__} {value!r:.60}"
