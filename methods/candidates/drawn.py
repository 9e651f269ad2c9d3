"""Drawn: what a source returns.  A plain sequence of candidates to the desk; to who asks, also what was turned away.

A rejected draw is part of what a source is (an offline source that rejects nine of ten retrievals has little support
here), so reasons are counted where they arise instead of being lost in a filter.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import overload

from harness.protocols import Desk
from harness.records import Action, Candidate


@dataclass(frozen=True, slots=True)
class Drawn(Sequence[Candidate]):
    """Candidates in drawn order; `rejected` counts by reason what was drawn and not kept."""

    candidates: tuple[Candidate, ...] = ()
    rejected: Mapping[str, int] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.candidates)

    @overload
    def __getitem__(self, index: int) -> Candidate: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Candidate, ...]: ...
    def __getitem__(self, index: int | slice) -> Candidate | tuple[Candidate, ...]:
        return self.candidates[index]


class Sieve:
    """Keeps up to k legal actions, distinct from the proposal and from each other, and counts why others fell."""

    def __init__(self, desk: Desk, k: int, source: str) -> None:
        self.desk = desk
        self.k = k
        self.source = source
        self.rejected: Counter[str] = Counter()
        self._seen = {desk.proposal.action.canonical}
        self._kept: list[Candidate] = []

    @property
    def full(self) -> bool:
        """Nothing more is wanted."""
        return len(self._kept) >= self.k

    def offer(self, action: Action) -> bool:
        """Keep `action` if it is fresh and legal; True when kept."""
        if action.canonical == self.desk.proposal.action.canonical:
            return self.refuse("proposal")
        if action.canonical in self._seen:
            return self.refuse("repeat")
        if not self.desk.legal(action):
            return self.refuse("illegal")
        self._seen.add(action.canonical)
        self._kept.append(Candidate(action, self.source))
        return True

    def refuse(self, reason: str) -> bool:
        """Count one rejection; always False, so that it can be returned."""
        self.rejected[reason] += 1
        return False

    def offer_all(self, actions: Iterable[Action]) -> None:
        """Offer in order until full."""
        for action in actions:
            if self.full:
                return
            self.offer(action)

    def drawn(self) -> Drawn:
        """What was kept."""
        return Drawn(tuple(self._kept), dict(self.rejected))
