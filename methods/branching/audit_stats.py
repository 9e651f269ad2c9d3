"""Audit statistics: what interventions did to the value of the step, from Monte-Carlo returns (paper section 2).

Pure: items in, numbers out.  An item is one audited review.  Fired and quiet reviews are sampled at different rates,
so whatever mixes the two weighs each item by how many reviews of its kind it stands for.  Intervals resample tasks,
not items, because items of one task share their fate.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import fmean
from typing import Any

SLACK = 1e-9


@dataclass(frozen=True, slots=True)
class Item:
    """One audited review.

    Attributes:
        task: cluster for resampling.
        fired: whether the gate fired.
        r: how many winners the gate asks for.
        proposal: returns of the original proposal, one a continuation; paired with all others by position.
        candidates: returns of each candidate.
        advice: returns of the top recommendation; empty when nothing was recommended.
        after: returns of what came in the proposal's place; empty when nothing was asked for.
        response: adopt, keep, novel, or None.
        weight: how many reviews of its kind this one stands for.
    """

    task: str
    fired: bool
    r: int
    proposal: tuple[float, ...]
    candidates: tuple[tuple[float, ...], ...] = ()
    advice: tuple[float, ...] = ()
    after: tuple[float, ...] = ()
    response: str | None = None
    weight: float = 1.0

    def gain(self, returns: Sequence[float]) -> float | None:
        """Mean of the paired differences to the proposal; None without returns."""
        if not returns or len(returns) != len(self.proposal):
            return None
        return fmean(b - a for a, b in zip(self.proposal, returns, strict=True))

    def share_better(self, margin: float) -> float | None:
        """Estimated domination rate: share of candidates better than the proposal by more than `margin`."""
        gains = [gain for one in self.candidates if (gain := self.gain(one)) is not None]
        return sum(gain > margin + SLACK for gain in gains) / len(gains) if gains else None

    def dominated(self, margin: float) -> bool | None:
        """Whether at least R of the candidates are truly better, which is what the gate should detect."""
        share = self.share_better(margin)
        return None if share is None else round(share * len(self.candidates)) >= self.r


@dataclass(frozen=True, slots=True)
class Estimate:
    """A value with a 95 % interval; None where there is nothing to say (n = 0), no interval from a single task."""

    value: float | None
    low: float | None
    high: float | None
    n: int


Value = Callable[[Item], float | None]


def estimate(items: Sequence[Item], value: Value, seed: int = 0, draws: int = 1000) -> Estimate:
    """Weighted mean of a value over items, with a percentile bootstrap over tasks.

    Args:
        items: those that the value is about.
        value: a number (a truth value counts as 0 or 1); None leaves the item out.
        seed: of the resampling.
        draws: resamples.
    """
    sums: dict[str, tuple[float, float]] = {}
    n = 0
    for item in items:
        one = value(item)
        if one is not None:
            total, weight = sums.get(item.task, (0.0, 0.0))
            sums[item.task] = (total + item.weight * one, weight + item.weight)
            n += 1
    if not n:
        return Estimate(None, None, None, 0)
    parts = [sums[task] for task in sorted(sums)]
    middle = _ratio(parts)
    if len(parts) < 2:
        return Estimate(middle, None, None, n)
    chance = random.Random(seed)
    found = sorted(_ratio(chance.choices(parts, k=len(parts))) for _ in range(draws))
    return Estimate(middle, found[int(0.025 * draws)], found[min(draws - 1, int(0.975 * draws))], n)


def _ratio(parts: Sequence[tuple[float, float]]) -> float:
    return sum(total for total, _ in parts) / sum(weight for _, weight in parts)


def statistics(items: Sequence[Item], margin: float = 0.0, seed: int = 0, draws: int = 1000) -> dict[str, Any]:
    """Everything the audit reports, as JSON.

    Args:
        items: audited reviews of one method, actor and environment.
        margin: a difference of means up to this is neutral (0 for binary outcomes).
        seed: of the bootstrap.
        draws: resamples.
    """

    def mean(of: Sequence[Item], value: Value) -> dict[str, Any]:
        return asdict(estimate(of, value, seed, draws))

    def against(gain: Value) -> dict[str, Any]:
        """Better, worse and neutral against the proposal, and the mean gain."""

        def side(sign: int) -> dict[str, Any]:
            return mean(fired, lambda item: _is(gain(item), margin, sign))

        return {"helped": side(1), "hurt": side(-1), "neutral": side(0), "gain": mean(fired, gain)}

    fired = [item for item in items if item.fired]
    quiet = [item for item in items if not item.fired]
    answers = sorted({item.response for item in fired if item.response})
    return {
        "fired": len(fired),
        "quiet": len(quiet),
        "tasks": len({item.task for item in items}),
        "continuations": max((len(item.proposal) for item in items), default=0),
        "margin": margin,
        "advice": against(lambda item: item.gain(item.advice)),
        "replan": against(lambda item: item.gain(item.after)),
        "gain_by_response": {
            answer: mean([i for i in fired if i.response == answer], lambda item: item.gain(item.after))
            for answer in answers
        },
        "gate": {
            "precision": mean(fired, lambda item: item.dominated(margin)),
            "recall": mean([item for item in items if item.dominated(margin)], lambda item: item.fired),
            "firing_rate": mean(items, lambda item: item.fired),
            "dominated_rate": mean(items, lambda item: item.dominated(margin)),
            "domination_when_fired": mean(fired, lambda item: item.share_better(margin)),
            "domination_when_quiet": mean(quiet, lambda item: item.share_better(margin)),
        },
        "halves_disagree": mean(fired, lambda item: halves_disagree(item, item.advice)),
    }


def _is(gain: float | None, margin: float, sign: int) -> bool | None:
    """Whether a gain is above the margin (1), below it (-1) or within (0)."""
    if gain is None:
        return None
    side = 0 if abs(gain) <= margin + SLACK else (1 if gain > 0 else -1)
    return side == sign


def halves_disagree(item: Item, returns: Sequence[float]) -> bool | None:
    """Whether the two halves of the continuations contradict each other about which action is better.

    A measure of how far M is from enough; None when a half sees no difference or there are fewer than 2 continuations.
    """
    if len(returns) < 2 or len(returns) != len(item.proposal):
        return None
    gaps = [b - a for a, b in zip(item.proposal, returns, strict=True)]
    even, odd = fmean(gaps[::2]), fmean(gaps[1::2])
    return None if abs(even) <= SLACK or abs(odd) <= SLACK else (even > 0) != (odd > 0)


def markdown(found: Mapping[str, Mapping[str, Any]]) -> str:
    """Tables for people; `found` maps a label (method, actor, environment) to its `statistics`."""
    head = "| | advice better | replan better | helped / hurt / neutral | gain | precision | recall | n |"
    lines = [head, "| --- " * 8 + "|"]
    for label, one in found.items():
        after, gate = one["replan"], one["gate"]
        three = " / ".join(_short(after[word]) for word in ("helped", "hurt", "neutral"))
        cells = (one["advice"]["helped"], after["helped"], after["gain"], gate["precision"], gate["recall"])
        a, b, gain, precision, recall = (_cell(cell) for cell in cells)
        n = f"{one['fired']} fired, {one['quiet']} quiet"
        lines.append(f"| {label} | {a} | {b} | {three} | {gain} | {precision} | {recall} | {n} |")
    lines += ["", "95 % intervals: bootstrap over tasks. Better: the mean paired difference is above the margin."]
    return "\n".join(lines) + "\n"


def _short(cell: Mapping[str, Any]) -> str:
    return "–" if cell["value"] is None else f"{cell['value']:.2f}"


def _cell(cell: Mapping[str, Any]) -> str:
    if cell["value"] is None:
        return "–"
    interval = "" if cell["low"] is None else f" [{cell['low']:.2f}, {cell['high']:.2f}]"
    return f"{cell['value']:.2f}{interval}"
