"""Pairing rules: from the branch returns of one prefix group to labelled pairs (paper appendices A.3 and B.3).

Pure functions over small values; `pairs.py` reads and writes.  A physical pair is unordered and named by its group and
its two canonical actions, so the same branches give the same pairs whatever order they were read in.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from harness.records import Label
from harness.seeds import digest, seed_of

# WebShop's reward moves in steps of 1 / (attributes + options + 1), mostly 0.14 to 0.33: a tenth is below one matched
# attribute of one continuation and above the differences that title overlap or an averaged lucky purchase make.
MARGINS: Mapping[str, float] = {"mean_reward": 0.1, "success_rate": 0.0}  # by the environment's metric
TIE_SHARE = 0.2  # paper appendix B.3: "approximately 20%"
# A margin must not turn on the last bit of a mean: 0.1 apart is within a margin of 0.1 however it was summed.
SLACK = 1e-9


@dataclass(frozen=True, slots=True)
class Branch:
    """One action at a verified prefix and its Monte-Carlo value; `base` is the actor's own proposal."""

    action: str
    canonical: str
    q: float
    base: bool = False


@dataclass(frozen=True, slots=True)
class Pair:
    """One physical pair; `label` is for (first, second) in this order."""

    pair_id: str
    group: str
    first: Branch
    second: Branch
    label: Label

    def swapped(self) -> Pair:
        """The same pair in the other order, with the label that goes with it."""
        label: Label = {"A": "B", "B": "A", "T": "T"}[self.label]  # type: ignore[assignment]
        return Pair(self.pair_id, self.group, self.second, self.first, label)

    @property
    def kind(self) -> str:
        """Base-branch or branch-branch."""
        return "base-branch" if self.first.base or self.second.base else "branch-branch"


def label_of(q_first: float, q_second: float, margin: float) -> Label:
    """A, B or T (paper appendix A.3): a preference needs a difference above the margin."""
    difference = q_first - q_second
    if abs(difference) <= margin + SLACK:
        return "T"
    return "A" if difference > 0 else "B"


def pairs_of(group: str, branches: Iterable[Branch], margin: float) -> list[Pair]:
    """All unordered pairs of distinct actions of one prefix group, by canonical action.

    Raises:
        ValueError: two branches of the group are the same action, or there are two base actions.
    """
    ordered = sorted(branches, key=lambda branch: branch.canonical)
    names = [branch.canonical for branch in ordered]
    if len(set(names)) != len(names):
        raise ValueError(f"group {group}: the same action is branched twice")
    if sum(branch.base for branch in ordered) > 1:
        raise ValueError(f"group {group}: more than one base action")
    found = []
    for first, second in combinations(ordered, 2):
        pair_id = digest([group, first.canonical, second.canonical])[:16]
        found.append(Pair(pair_id, group, first, second, label_of(first.q, second.q, margin)))
    return found


def ties_to_keep(decisive: int, ties: int, share: float) -> int:
    """How many ties make up `share` of what is kept: never more than there are, none beside nothing decisive."""
    if not 0 <= share < 1:
        raise ValueError(f"tie share {share} is not in [0, 1)")
    return min(ties, round(decisive * share / (1 - share)))


def keep_pairs(pairs: Sequence[tuple[str, Label]], share: float, seed: int) -> set[str]:
    """Ids to keep: all decisive pairs, and ties down to `share`, chosen by hash so that order of reading is nothing.

    Args:
        pairs: (pair_id, label) of one environment and split.
        share: share of ties among what is kept, in [0, 1).
        seed: chooses the ties.
    """
    decisive = {pair_id for pair_id, label in pairs if label != "T"}
    ties = {pair_id for pair_id, label in pairs if label == "T"} - decisive
    ranked = sorted(ties, key=lambda pair_id: seed_of(consumer="ties", seed=seed, pair=pair_id))
    return decisive | set(ranked[: ties_to_keep(len(decisive), len(ties), share)])


def swapped_first(pair_id: str, seed: int) -> bool:
    """Which order comes first in the file: by hash, so that neither order of a kind of action is favoured."""
    return bool(seed_of(consumer="order", seed=seed, pair=pair_id) & 1)
