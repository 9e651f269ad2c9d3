"""The engine: the same as TextWorld's own loop, exact snapshots, threads, processes, traces left behind."""

from __future__ import annotations

import json
import os
import random
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import joblib
import pytest

from harness.environments.alfworld import AlfWorld
from harness.environments.alfworld.games import EmbeddedGames, Game, OfficialGames
from harness.errors import EpisodeError
from harness.records import Observation
from tests.environments.alfworld_data import needs_shared, official, wander

STEPS = 15


def some_games() -> list[Game]:
    embedded = EmbeddedGames()
    return [embedded.load(task) for task in embedded.tasks("test")[7:9]]


def original(game: Game, folder: Path) -> Any:
    """TextWorld's own environment in the package's own wrapper."""
    from alfworld.agents.environment.alfred_tw_env import AlfredDemangler
    from textworld import EnvInfos
    from textworld.envs.pddl import PddlEnv

    path = folder / "game.tw-pddl"
    path.write_text(json.dumps({"pddl_domain": game.domain, "grammar": game.grammar, "pddl_problem": game.problem}))
    env = AlfredDemangler(PddlEnv(EnvInfos(admissible_commands=True, won=True)))
    env.load(str(path))
    return env


def same_as_original(game: Game, folder: Path, steps: int) -> None:
    from harness.environments.alfworld.engine import Engine

    reference, engine, rng = original(game, folder), Engine(), random.Random(7)
    state = reference.reset()
    engine.load(game.key, game.domain, game.grammar, game.problem)
    assert engine.opening() == state.feedback
    for _ in range(steps):
        assert list(engine.commands()) == state["admissible_commands"]
        assert engine.won() == state["won"]
        carrying = [c for c in engine.commands() if c.split()[0] not in ("go", "help", "look", "inventory", "examine")]
        command = rng.choice(carrying if carrying and rng.random() < 0.7 else [*engine.commands(), "dance"])
        state, _, _ = reference.step(command)
        assert engine.step(command) == state.feedback, command


@pytest.fixture
def alfworld_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Importing the package makes a folder where this variable says."""
    monkeypatch.setenv("ALFWORLD_DATA", str(tmp_path / "home"))
    return tmp_path


@pytest.mark.parametrize("game", some_games(), ids=lambda game: game.task_id)
def test_generated_games_run_as_in_textworlds_own_loop(game: Game, alfworld_home: Path) -> None:
    same_as_original(game, alfworld_home, 20)


@needs_shared
@pytest.mark.parametrize("number", [0, 120])
def test_official_games_run_as_in_textworlds_own_loop(number: int, alfworld_home: Path) -> None:
    games = OfficialGames(str(official()))
    same_as_original(games.load(games.tasks("valid_unseen")[number]), alfworld_home, 15)


def test_grammar_expressions_mean_what_python_says_and_code_is_refused() -> None:
    from textworld.generator.game import EntityInfo

    from harness.environments.alfworld.engine import _expression, _value
    from harness.environments.alfworld.translation import GameError

    thing = EntityInfo("mug_bar_1", "object")
    thing.name, thing.indefinite = "mug 1", "a"
    for text in ("o.name", "o.indefinite + ' ' + o.name", "o.name or o.id", "o.adj or o.id", "o"):
        assert _value(_expression(text), {"o": thing}) == eval(text, {"o": thing})
    for code in ("__import__('os').system('true')", "o.__class__", "[1]", "o.name.upper()", "1", "x"):
        with pytest.raises(GameError, match="not plain text"):
            _value(_expression(code), {"o": thing})


@pytest.mark.parametrize("number", [3, 5, 7, 9])
def test_a_snapshot_is_exact(number: int) -> None:
    env = AlfWorld()
    task = env.tasks("validation")[number]
    _, start = env.reset(task, 0)
    prefix = wander(env, STEPS, number, start)
    saved = env.snapshot()
    here = env._view()
    first = wander(env, 8, 99, prefix[-1][1].observation)
    for _ in range(2):
        env.restore(saved)
        assert env._view() == here
        assert env._observation == prefix[-1][1].observation
        assert env._running().commands() == prefix[-1][1].observation.actions
        assert [env.step(env.canonical(command)) for command, _ in first] == [outcome for _, outcome in first]
    env.reset(task, 0)
    assert [env.step(env.canonical(command)) for command, _ in prefix] == [outcome for _, outcome in prefix]
    assert env.snapshot() == saved
    other = AlfWorld()
    other.restore(saved)
    assert [other.step(other.canonical(command)) for command, _ in first] == [outcome for _, outcome in first]


@pytest.mark.parametrize("number", [1, 4])
def test_the_followed_state_is_the_librarys(number: int) -> None:
    from harness.environments.alfworld.planner import PLANNER

    env = AlfWorld()
    _, start = env.reset(env.tasks("validation")[number], 0)
    engine = env._running()
    assert engine.game.conditional == {"toggleobject"}
    rng, commands, toggled = random.Random(number), start.actions, 0
    for _ in range(40):
        doing = [c for c in commands if c.split()[0] not in ("go", "examine", "look", "inventory", "help")]
        command = rng.choice(doing if doing and rng.random() < 0.7 else list(commands))
        toggled += command.startswith("use")
        commands = env.step(env.canonical(command)).observation.actions
        inner = engine.game.derived
        pairs = enumerate(zip(engine._present(), PLANNER.bits(), strict=True))
        assert all(one == other for i, (one, other) in pairs if i not in inner), command
        env.restore(env.snapshot())
    assert toggled or number != 1


def test_a_snapshot_of_a_won_game_stays_won() -> None:
    env = AlfWorld()
    env.reset(env.tasks("test")[0], 0)
    while not env.step(env.oracle().expert()).done:  # type: ignore[union-attr]
        pass
    saved = env.snapshot()
    env.reset(env.tasks("test")[1], 0)
    env.restore(saved)
    again = env.step(env.canonical("look"))
    assert (again.done, again.reward) == (True, 1.0)
    assert not env.legal(env.canonical("look"))


def test_reset_again_and_restore_are_fast() -> None:
    env = AlfWorld()
    task = env.tasks("test")[9]
    assert task.endswith("heat")  # a kitchen, the slowest room

    def cpu(times: int, work: Any) -> float:
        start = time.process_time()
        for _ in range(times):
            work()
        return (time.process_time() - start) / times

    _, start = env.reset(task, 0)
    prefix = [env.canonical(command) for command, _ in wander(env, STEPS, 1, start)]
    saved = env.snapshot()

    def replay() -> None:
        env.reset(task, 0)
        for action in prefix:
            env.step(action)

    assert cpu(5, lambda: env.reset(task, 0)) < 0.150
    assert cpu(10, lambda: env.restore(saved)) * 5 < cpu(3, replay)


def test_the_memo_is_bounded_and_forgets_the_oldest() -> None:
    from harness.environments.alfworld.translation import Translations

    memo = Translations(capacity=2)
    games = [EmbeddedGames().load(task) for task in EmbeddedGames().tasks("validation")[0:18:6]]
    texts = [(game.key, game.domain, game.grammar, game.problem) for game in games]
    first = memo.get(*texts[0])
    assert memo.get(*texts[0]) is first
    memo.get(*texts[1])
    memo.get(*texts[2])
    assert len(memo._games) == 2
    assert memo.get(*texts[0]) is not first


def play(task: str) -> list[Observation]:
    env = AlfWorld()
    _, start = env.reset(task, 0)
    played = [start, *(outcome.observation for _, outcome in wander(env, 8, 3, start))]
    saved = env.snapshot()
    played += [outcome.observation for _, outcome in wander(env, 3, 4, played[-1])]
    env.restore(saved)
    played += [outcome.observation for _, outcome in wander(env, 3, 4, env._observation)]
    env.close()
    return played


def test_threads_and_processes_see_what_one_alone_sees() -> None:
    tasks = AlfWorld().tasks("test")[12:16]
    alone = [play(task) for task in tasks]
    with ThreadPoolExecutor(3) as pool:
        assert list(pool.map(play, tasks)) == alone
    assert joblib.Parallel(n_jobs=2, backend="loky")(joblib.delayed(play)(task) for task in tasks) == alone


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_a_forked_child_goes_on_by_itself() -> None:
    from harness.environments.alfworld.planner import LOCK

    env = AlfWorld()
    _, start = env.reset(env.tasks("test")[0], 0)
    with ThreadPoolExecutor(1) as pool:
        pool.submit(LOCK.acquire).result()  # another thread holds the lock while we fork
        child = os.fork()
        if child == 0:
            done = env.step(env.canonical(start.actions[0])).observation.text != ""
            os._exit(0 if done else 1)
        _, status = os.waitpid(child, 0)
        pool.submit(LOCK.release).result()
    assert os.waitstatus_to_exitcode(status) == 0


def test_nothing_is_left_behind(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    argv, out, variables = list(sys.argv), sys.stdout, dict(os.environ)
    folder = Path.home() / ".cache" / "alfworld"
    there = folder.exists()
    env = AlfWorld()
    env.reset(env.tasks("train")[0], 0)
    env.close()
    env.close()
    assert (sys.argv, sys.stdout, dict(os.environ)) == (argv, out, variables)
    assert folder.exists() == there
    assert not list(tmp_path.iterdir())
    with open("/proc/self/maps") as maps:
        assert "libdownward.so (deleted)" not in maps.read() or "textworld.envs.pddl.pddl" in sys.modules
    with pytest.raises(RuntimeError, match="reset"):
        env.step(env.canonical("look"))
    env.reset(env.tasks("train")[0], 0)


def test_an_environment_travels_to_another_process_by_its_parameters() -> None:
    import pickle

    env = AlfWorld(seed=4)
    env.reset(env.tasks("test")[0], 0)
    copy = pickle.loads(pickle.dumps(env))
    assert (copy.games, copy.seed, copy._engine) == ("embedded", 4, None)


BREAKAGE = {
    "cut off": lambda text: text[: len(text) // 2],
    "empty": lambda text: "",
    "not a mapping": lambda text: "[1, 2]",
    "no grammar": lambda text: json.dumps({k: v for k, v in json.loads(text).items() if k != "grammar"}),
    "grammar is no text": lambda text: json.dumps(json.loads(text) | {"grammar": 5}),
    "grammar broken": lambda text: json.dumps(json.loads(text) | {"grammar": "grammar :: oops"}),
    "grammar without actions": lambda text: json.dumps(
        json.loads(text) | {"grammar": 'grammar :: """{"intro": [{"rhs": "hi"}]}""";'}
    ),
    "code in the grammar": lambda text: text.replace("{r.indefinite}", "{print(r)}"),
    "problem broken": lambda text: json.dumps(json.loads(text) | {"pddl_problem": "(define (problem"}),
    "unknown object": lambda text: text.replace("(atLocation agent1 ", "(atLocation agent2 "),
    "unknown goal": lambda text: text.replace("(objectType ?o ", "(objectTipe ?o "),
}


@needs_shared
@pytest.mark.parametrize("kind", BREAKAGE)
def test_a_broken_game_is_one_failed_episode(kind: str, tmp_path: Path) -> None:
    games = OfficialGames(str(official()))
    chosen = games.tasks("valid_unseen")[:2]
    for task in chosen:
        (tmp_path / task).mkdir(parents=True)
        (tmp_path / task / "game.tw-pddl").write_bytes((official() / task / "game.tw-pddl").read_bytes())
    broken = tmp_path / chosen[0] / "game.tw-pddl"
    broken.write_text(BREAKAGE[kind](broken.read_text()))
    env = AlfWorld(games=str(tmp_path))
    assert list(env.tasks("test")) == chosen
    assert env.fingerprint(chosen[0]) != AlfWorld(games=str(official())).fingerprint(chosen[0])
    env.reset(chosen[1], 0)
    with pytest.raises(EpisodeError) as caught:
        env.reset(chosen[0], 0)
    assert caught.value.boundary == "environment"
    assert str(broken) in str(caught.value)
    task, start = env.reset(chosen[1], 0)
    assert start.actions
    assert env.fingerprint(chosen[1]) == AlfWorld(games=str(official())).fingerprint(chosen[1])
