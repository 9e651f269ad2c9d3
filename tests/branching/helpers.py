"""A branch folder from the mock corridor, in a fraction of a second, and environments that misbehave."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from harness.environments.mock import MockEnvironment
from harness.records import Action, Observation, Outcome
from methods.branching.collect import Collected, collect
from methods.branching.spec import CollectSpec, Throughput, make_spec

SEQUENTIAL = Throughput(backend="sequential")


def corridor(**changes: Any) -> CollectSpec:
    """A simulated weak actor in a corridor that it does not always leave in time."""
    settings: dict[str, Any] = {
        "environment": {"plugin": "mock", "params": {"length": 5}},
        "actor": {"plugin": "simulated", "params": {"competence": "weak"}},
        "tasks": 40,
        "continuations": 2,
        "max_steps": 9,
    }
    return make_spec(settings | changes)


def branched(folder: Path, throughput: Throughput = SEQUENTIAL, **changes: Any) -> Collected:
    """Collect a corridor into `folder`."""
    return collect(corridor(**changes), folder, throughput)


class Drifting(MockEnvironment):
    """Shows something else from the third step of every second reset on: replays do not reproduce."""

    resets = 0

    def reset(self, task_id: str, seed: int) -> tuple[str, Observation]:
        self.resets += 1
        self._taken = 0
        return super().reset(task_id, seed)

    def step(self, action: Action) -> Outcome:
        self._taken += 1
        outcome = super().step(action)
        if self.resets % 2 == 0 and self._taken >= 3:
            return Outcome(Observation(outcome.observation.text + " It is dark.", ()), outcome.reward, outcome.done)
        return outcome

    def snapshot(self) -> Any:
        return self._taken, super().snapshot()

    def restore(self, snapshot: Any) -> None:
        self._taken = snapshot[0]
        super().restore(snapshot[1])


class Leaky(MockEnvironment):
    """A snapshot that is not exact: each restore puts one a step further on."""

    def restore(self, snapshot: int) -> None:
        self._drift = getattr(self, "_drift", 0) + 1
        super().restore(snapshot + self._drift // 4)


class NoSnapshots(MockEnvironment):
    """Can only be restored by replay."""

    def snapshot(self) -> int:
        raise NotImplementedError
