"""Golden check: the walkthroughs stored with the official games win, and so does the oracle's expert.

The whole of it: `pytest -m slow tests/environments/test_alfworld_golden.py` (134 games, some two minutes).
"""

from __future__ import annotations

import pytest

from harness.environments.alfworld import AlfWorld
from harness.environments.alfworld.games import OfficialGames
from tests.environments.alfworld_data import needs_shared, official, stratified

pytestmark = needs_shared


def winners(tasks: list[str]) -> tuple[list[str], list[str]]:
    """Games that the walkthrough wins, and games that the expert wins within the step limit, no longer."""
    games = OfficialGames(str(official()))
    env = AlfWorld(games=str(official()))
    walked, solved = [], []
    for task in tasks:
        walkthrough = games.load(task).walkthrough
        env.reset(task, 0)
        outcomes = [env.step(env.canonical(command)) for command in walkthrough]
        if outcomes[-1].done and outcomes[-1].reward == 1.0 and all(o.info["valid"] for o in outcomes):
            walked.append(task)
        env.reset(task, 0)
        oracle = env.oracle()
        assert oracle is not None
        if any(env.step(oracle.expert()).done for _ in range(min(env.max_steps, len(walkthrough)))):
            solved.append(task)
    env.close()
    return walked, solved


def test_two_games_of_each_type() -> None:
    tasks = stratified(AlfWorld(games=str(official())), "valid_unseen", 2)
    assert len(tasks) == 12
    assert winners(tasks) == (tasks, tasks)


@pytest.mark.slow
def test_all_134_games() -> None:
    tasks = list(AlfWorld(games=str(official())).tasks("valid_unseen"))
    assert len(tasks) == 134
    walked, solved = winners(tasks)
    assert walked == tasks
    assert solved == tasks
