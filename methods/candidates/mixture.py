"""Mixture: each candidate drawn independently from a fixed mixture over sources (paper section 4.2, table 6).

For every slot a source is drawn by weight and gives its next candidate; a source that has nothing fresh left drops
out and the slot is drawn again among the others, so the set is full whenever any source could fill it.  Each source
draws from `desk.seed` in its own named stream, so adding a source never changes what another one would have drawn.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from harness.errors import UsageError
from harness.protocols import CandidateSource, Desk
from harness.records import Candidate
from harness.registry import create, parameters
from harness.seeds import stream
from methods.candidates.drawn import Drawn, Sieve

KEYS = frozenset({"plugin", "params", "weight"})


class MixtureCandidates:
    """Each candidate independently from a fixed mixture over sources, refilled when a source is empty.

    Args:
        sources: each `{plugin: name, params: {...}, weight: positive number}`; weights need not sum to one.
    """

    version: ClassVar[str] = "1"
    estimate: ClassVar[Mapping[str, float]] = {"calls": 1, "prompt": 3000, "completion": 40, "seconds": 0.5}
    throughput: ClassVar[tuple[str, ...]] = ("sources",)  # `identity` holds all of them that decides a draw

    def __init__(self, sources: Sequence[Mapping[str, Any]]) -> None:
        self.sources = sources
        self._made: list[tuple[float, CandidateSource]] | None = None

    def identity(self) -> list[dict[str, Any]]:
        """Weight, plugin, version and outcome-deciding parameters of each source, in order."""
        parts = zip(self.sources, self._components(), strict=True)
        return [_identity(str(entry["plugin"]), dict(entry.get("params") or {}), *part) for entry, part in parts]

    def _components(self) -> list[tuple[float, CandidateSource]]:
        if self._made is None:
            if not self.sources:
                raise UsageError("candidates 'mixture' needs at least one entry under `sources`.")
            self._made = [_component(index, entry) for index, entry in enumerate(self.sources)]
        return self._made

    def draw(self, desk: Desk, k: int) -> Drawn:
        """Up to k candidates; which source fills which slot is decided by `desk.seed`."""
        flow = stream(consumer="candidates/mixture", seed=desk.seed)
        feeds = [_Feed(source, desk, k) for _, source in self._components()]
        weights = [weight for weight, _ in self._components()]
        alive = list(range(len(feeds)))
        sieve = Sieve(desk, k, "mixture")
        kept: list[Candidate] = []
        while alive and len(kept) < k:
            pick = flow.choices(alive, [weights[index] for index in alive])[0]
            candidate = feeds[pick].next()
            if candidate is None:
                alive.remove(pick)
            elif sieve.offer(candidate.action):
                kept.append(candidate)
        for feed in feeds:
            sieve.rejected.update(feed.rejected)
        return Drawn(tuple(kept), dict(sieve.rejected))


class _Feed:
    """The candidates of one source, one by one; asks once more for twice as many when the first k did not suffice.

    A source's draw of k is the beginning of its draw of more (each source keeps to that), so what was already taken
    is skipped by position.
    """

    def __init__(self, source: CandidateSource, desk: Desk, k: int) -> None:
        self._source, self._desk, self._k = source, desk, k
        self._got: Sequence[Candidate] | None = None
        self._at = 0
        self._asked = 0

    @property
    def rejected(self) -> Mapping[str, int]:
        """Why candidates of this source fell, if it says so."""
        return self._got.rejected if isinstance(self._got, Drawn) else {}

    def next(self) -> Candidate | None:
        """The next candidate, or None when the source has no more."""
        if self._got is None:
            self._ask(self._k)
        if self._at >= len(self._got or ()) == self._asked == self._k:
            self._ask(2 * self._k)
        if self._got is None or self._at >= len(self._got):
            return None
        self._at += 1
        return self._got[self._at - 1]

    def _ask(self, count: int) -> None:
        self._got, self._asked = self._source.draw(self._desk, count), count


def _identity(plugin: str, params: dict[str, Any], weight: float, source: Any) -> dict[str, Any]:
    defaults = {key: p.default for key, p in parameters("candidates", plugin).items() if p.default is not p.empty}
    silent = set(getattr(source, "throughput", ()))
    kept = {key: value for key, value in (defaults | params).items() if key not in silent}
    found = {"plugin": plugin, "weight": weight, "params": kept, "version": str(getattr(source, "version", "1"))}
    return found | ({"more": source.identity()} if hasattr(source, "identity") else {})


def _component(index: int, entry: Mapping[str, Any]) -> tuple[float, CandidateSource]:
    where = f"candidates 'mixture', source {index + 1}"
    unknown = set(entry) - KEYS
    if unknown or "plugin" not in entry:
        raise UsageError(f"{where}: keys are plugin, params, weight; got {', '.join(map(str, entry)) or 'none'}.")
    weight = entry.get("weight", 1.0)
    if not isinstance(weight, int | float) or isinstance(weight, bool) or not 0 < weight < float("inf"):
        raise UsageError(f"{where}: weight {weight!r} is not a positive number.")
    source: CandidateSource = create("candidates", str(entry["plugin"]), entry.get("params"))
    return float(weight), source
