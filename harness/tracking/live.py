"""Live: keep the tracking store near the ledger while a study runs.

An observer of stored episodes, called in the parent alone.  It waits a minute, and longer when the store is slow, so
that tracking never takes more than a small share of the run; a store that goes down is said once and left alone, and
the sync at the end (or `cota-bench sync`) catches up.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from harness.records import Episode
from harness.tracking.client import TrackerDown, connect, resolve_uri, tracker_errors
from harness.tracking.plan import PlannedCell
from harness.tracking.sync import sync

SHARE: Final = 20.0


class LiveTracker:
    """Call it with every stored episode, and `finish` at the end."""

    def __init__(
        self,
        folder: Path,
        tracking_uri: str | None = None,
        *,
        cells: Sequence[PlannedCell] | None = None,
        every_s: float = 60.0,
        say: Callable[[str], None] = print,
    ) -> None:
        self.folder, self.cells, self.every_s, self.say = folder, cells, every_s, say
        self.uri = resolve_uri(tracking_uri, folder.parent)
        self.down = False
        self._changed: set[str] = set()
        self._next = time.monotonic() + every_s

    def check(self) -> bool:
        """Open the store before the first episode, so that a wrong address is heard of now; False when it is down."""
        try:
            with tracker_errors(self.uri):
                connect(self.uri)
        except TrackerDown as error:
            self._lost(error)
        return not self.down

    def __call__(self, episode: Episode) -> None:
        """One stored episode."""
        self._changed.add(episode.cell)
        if self.down or time.monotonic() < self._next:
            return
        began = time.monotonic()
        try:
            sync(self.folder, self.uri, cells=self.cells, only=frozenset(self._changed))
            self._changed.clear()
        except TrackerDown as error:
            self._lost(error)
        now = time.monotonic()
        self._next = now + max(self.every_s, SHARE * (now - began))

    def _lost(self, error: TrackerDown) -> None:
        self.down = True
        self.say(f"{error} The run goes on without it.")
