"""Offline candidates: actions seen in branch data under a compatible decision condition (paper appendix B.6).

What is kept of the data is small: how often each template was executed under each condition, and by which tasks.  At
a decision the finest condition that has data gives templates, drawn by how often they were seen; each is bound to
what is observed now and dropped, with its reason counted, when it cannot be.
"""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from random import Random
from typing import ClassVar

from harness.errors import IllegalAction, UsageError
from harness.protocols import Desk
from harness.records import DecisionState
from harness.seeds import stream
from methods.candidates.conditions import Condition, Unbindable, condition_of
from methods.candidates.drawn import Drawn, Sieve

_LOCK = threading.Lock()
OTHERS = "*"  # tasks beyond the first few of a template


class Shelf:
    """Templates by condition, with counts and the tasks that they come from."""

    def __init__(self) -> None:
        self._counts: dict[str, Counter[str]] = {}
        self._tasks: dict[tuple[str, str], set[str]] = {}
        self.rejected: Counter[str] = Counter()
        self.actions = 0

    def add(self, condition: Condition, state: DecisionState, actions: Iterable[str]) -> None:
        """Put the actions that were branched at one state on the shelf."""
        keys = condition.keys(state)
        for action in actions:
            self.actions += 1
            try:
                template = condition.abstract(action, state)
            except Unbindable as error:
                self.rejected[str(error)] += 1
                continue
            for key in keys:
                self._counts.setdefault(key, Counter())[template] += 1
                tasks = self._tasks.setdefault((key, template), set())
                tasks.add(state.task_id if len(tasks) < 2 else OTHERS)

    def look(self, keys: Iterable[str], task_id: str) -> dict[str, int]:
        """Templates of all given conditions, finest first; none that only this very task brought."""
        found: dict[str, int] = {}
        for key in keys:
            for template, count in sorted(self._counts.get(key, {}).items()):
                if template not in found and self._tasks[key, template] != {task_id}:
                    found[template] = count
        return found

    def levels(self, keys: Iterable[str], task_id: str) -> Iterator[dict[str, int]]:
        """Templates level by level, from the finest condition to the coarsest, each template once."""
        seen: set[str] = set()
        for key in keys:
            level = {name: count for name, count in self.look([key], task_id).items() if name not in seen}
            seen.update(level)
            if level:
                yield level


class OfflineCandidates:
    """Actions retrieved from branch data under a compatible condition, rebound to entities observed now.

    Args:
        data: a branch folder made by `collect`, or several; only those of the episode's environment are used.
    """

    version: ClassVar[str] = "1"
    estimate: ClassVar[Mapping[str, float]] = {"seconds": 0.01}
    throughput: ClassVar[tuple[str, ...]] = ("data",)  # where the data lies decides nothing; `identity` says what it is

    def __init__(self, data: str | list[str]) -> None:
        self.data = data

    def identity(self) -> list[list[str]]:
        """Collection and task panel of each folder; the recipe's hash of one that a study makes before it runs."""
        return [_identity(folder) for folder in self._folders()]

    def _folders(self) -> tuple[Path, ...]:
        return (Path(self.data),) if isinstance(self.data, str) else tuple(map(Path, self.data))

    def draw(self, desk: Desk, k: int) -> Drawn:
        """Up to k bound actions in drawn order, from `desk.seed` alone."""
        state = desk.state
        condition, shelf = condition_of(state.environment), self.shelf(state.environment)
        chance = stream(role="offline-candidates", seed=desk.seed)
        sieve = Sieve(desk, k, "offline")
        for level in shelf.levels(condition.keys(state), state.task_id):
            for template in _weighted_order(level, chance):
                if sieve.full:
                    return sieve.drawn()
                self._offer(condition, template, desk, chance, sieve)
        return sieve.drawn()

    def shelf(self, environment: str) -> Shelf:
        """The retrieval index of one environment; read once a process. Raises `UsageError` when there is no data."""
        with _LOCK:
            return _read(environment, self._folders())

    @staticmethod
    def _offer(condition: Condition, template: str, desk: Desk, chance: Random, sieve: Sieve) -> None:
        try:
            sieve.offer(desk.parse(condition.bind(template, desk.state, chance)))
        except Unbindable as error:
            sieve.refuse(str(error))
        except IllegalAction:
            sieve.refuse("unparsed")


def _weighted_order(level: Mapping[str, int], chance: Random) -> list[str]:
    """A random order, likelier first by count (exponential keys: sampling by weight without replacement)."""
    keyed = {name: chance.expovariate(1.0) / count for name, count in sorted(level.items())}
    return sorted(keyed, key=lambda name: (keyed[name], name))


@lru_cache(maxsize=8)
def _read(environment: str, folders: tuple[Path, ...]) -> Shelf:
    from methods.branching.export import state_of
    from methods.branching.folders import group_actions
    from methods.branching.tables import read_rows

    shelf, condition = Shelf(), condition_of(environment)
    for folder in folders:
        actions = group_actions(folder)
        for row in read_rows(folder / "points.parquet", ("environment", "task_id", "group", "state")):
            if row["environment"] == environment:
                state = state_of(environment, row["task_id"], json.loads(row["state"]))
                shelf.add(condition, state, actions.get(row["group"], ()))
    if not shelf.actions:
        raise UsageError(
            f"candidates 'offline': {', '.join(map(str, folders))} hold(s) no branches of {environment}. Collect some "
            "with `cota-bench collect`, or name the right folder under `data`."
        )
    return shelf


def _identity(folder: Path) -> list[str]:
    from methods.branching.tables import read_card

    recipe = folder / "recipe.json"
    if recipe.is_file():  # declared before it is collected, so that a plan can name cells
        return ["recipe", str(json.loads(recipe.read_text(encoding="utf-8"))["hash"])]
    card = read_card(folder)
    return [str(card["hash"]), str(card["panel"])]
