"""Where games come from: generated ones (valid, solvable, disjoint, seeded) and official folders (and bad ones)."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path

import pytest

from harness.environments.alfworld import AlfWorld, package
from harness.environments.alfworld.games import SIZES, EmbeddedGames, OfficialGames
from harness.environments.alfworld.generate import KINDS, draw
from harness.environments.alfworld.world import goal_of
from harness.errors import UsageError
from harness.seeds import digest
from tests.environments.alfworld_data import needs_shared, official, stratified


def room_of(problem: str) -> str:
    """What the first text shows of a room: how many receptacles of each type."""
    return str(sorted(Counter(re.findall(r"\(receptacleType [^?]\S+ (\w+)\)", problem)).items()))


def test_every_task_type_takes_its_turn_and_ids_are_fixed() -> None:
    env = AlfWorld()
    for split, size in SIZES.items():
        tasks = env.tasks(split)
        assert len(tasks) == len(set(tasks)) == size
        assert Counter(task.rpartition("-")[2] for task in tasks) == dict.fromkeys(KINDS, size // 6)
    assert env.tasks("test")[:2] == ["test/0000-pick", "test/0001-look"]


def test_panels_are_disjoint_by_room_and_by_content() -> None:
    games = EmbeddedGames()
    rooms: dict[str, set[str]] = {}
    keys: list[str] = []
    for split in SIZES:
        drawn = [games.load(task) for task in games.tasks(split)[:300]]
        rooms[split] = {room_of(game.problem) for game in drawn}
        keys += [game.key for game in drawn]
        assert len(rooms[split]) > 150, "rooms vary"
    assert len(set(keys)) == len(keys) == 900
    for one, other in (("train", "validation"), ("train", "test"), ("validation", "test")):
        assert not rooms[one] & rooms[other]


def test_same_seed_same_game_another_seed_another() -> None:
    for number in range(12):
        assert draw(0, "test", number) == draw(0, "test", number)
        assert draw(0, "test", number) != draw(1, "test", number)
    first, again, other = AlfWorld(), AlfWorld(), AlfWorld(seed=1)
    task = first.tasks("test")[3]
    assert first.fingerprint(task) == again.fingerprint(task) != other.fingerprint(task)


def test_generated_content_is_pinned() -> None:
    """The draws are part of a study's identity: a change of generator or tables has to be seen."""
    drawn = [draw(0, split, number) for split in SIZES for number in range(6)]
    assert digest([[game.problem, game.sentence] for game in drawn])[:16] == "9b7d321e5fe5766f"


def test_rooms_and_goals_vary() -> None:
    drawn = [draw(0, "train", number) for number in range(600)]
    assert Counter(game.room for game in drawn).keys() == {"kitchen", "livingroom", "bedroom", "bathroom"}
    assert len({(game.kind, game.thing, game.place) for game in drawn}) > 200
    assert len({game.sentence for game in drawn}) > 200


@pytest.mark.parametrize("task", stratified(AlfWorld(), "test", 2) + stratified(AlfWorld(), "train", 1))
def test_a_generated_game_is_sound_and_its_plan_wins(task: str) -> None:
    env = AlfWorld()
    sentence, start = env.reset(task, 0)
    problem = EmbeddedGames().load(task).problem
    goal = goal_of(problem[problem.index("(:goal") :])
    assert goal is not None
    assert goal.kind == task.rpartition("-")[2]
    assert goal.thing.removesuffix("type") in sentence
    assert goal.place.removesuffix("type") in sentence
    assert start.text.startswith("You are in the middle of a room.")
    assert not env._running().won()
    oracle = env.oracle()
    assert oracle is not None
    for step in range(env.max_steps):
        if env.step(oracle.expert()).done:
            assert env._running().won()
            assert step >= 1
            return
    pytest.fail("the plan does not win")


def test_what_lies_somewhere_may_lie_there() -> None:
    for number in range(24):
        problem = draw(0, "train", number).problem
        kinds = dict(re.findall(r"\((?:objectType|receptacleType) (\S+) (\w+)Type\)", problem))
        for thing, place in re.findall(r"\(inReceptacle (\S+) (\S+)\)", problem):
            assert kinds[thing] == "DeskLamp" or kinds[thing] in package.holds()[kinds[place]]


def test_unknown_names_are_explained() -> None:
    env = AlfWorld()
    with pytest.raises(UsageError, match=r"no split 'tset'. Did you mean 'test'"):
        env.tasks("tset")
    for task in ("test/9999-pick", "test/0000-heat", "test/0000", "nonsense", "", "test/-001-pick", "test/٣-pick"):
        with pytest.raises(UsageError, match="no generated game"):
            env.reset(task, 0)


@needs_shared
def test_official_splits_and_their_other_names() -> None:
    env = AlfWorld(games=str(official()))
    tasks = env.tasks("valid_unseen")
    assert len(tasks) == 134
    assert tasks == env.tasks("test") == sorted(tasks)
    assert all((official() / task / "game.tw-pddl").is_file() for task in tasks)
    assert len(AlfWorld(games=str(official("train_sample"))).tasks("train")) == 297
    with pytest.raises(UsageError, match="has no split 'valid_seen', only valid_unseen"):
        env.tasks("validation")
    with pytest.raises(UsageError, match="no split 'tests'"):
        env.tasks("tests")
    with pytest.raises(UsageError, match="no game 'valid_unseen/nothing'"):
        env.reset("valid_unseen/nothing", 0)
    with pytest.raises(UsageError, match="no game"):
        env.reset("../valid_unseen/" + tasks[0].split("/", 1)[1], 0)


@needs_shared
def test_official_means_the_variable(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "json_2.1.1").symlink_to(official())
    monkeypatch.setenv("ALFWORLD_DATA", str(tmp_path))
    assert len(AlfWorld(games="official").tasks("test")) == 134


def test_missing_data_is_explained(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ALFWORLD_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(UsageError, match=r"nowhere.*does not exist.*alfworld-download"):
        AlfWorld(games="official").tasks("test")
    monkeypatch.delenv("ALFWORLD_DATA")
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(UsageError, match=r"ALFWORLD_DATA is not set.*alfworld-download"):
        AlfWorld(games="official").tasks("test")
    with pytest.raises(UsageError, match="holds none of the splits train, valid_seen, valid_unseen"):
        AlfWorld(games=str(tmp_path)).tasks("test")
    archive = tmp_path / "json_2.1.1.zip"
    archive.write_bytes(b"PK")
    with pytest.raises(UsageError, match=r"is a file\. Unpack"):
        AlfWorld(games=str(archive)).tasks("test")
    (tmp_path / "tree" / "valid_unseen" / "empty").mkdir(parents=True)
    with pytest.raises(UsageError, match=r"holds no file game\.tw-pddl"):
        AlfWorld(games=str(tmp_path / "tree")).tasks("test")


def test_games_that_the_official_loader_skips_are_skipped(tmp_path: Path) -> None:
    def put(name: str, **data: object) -> None:
        folder = tmp_path / "train" / name / "trial_1"
        folder.mkdir(parents=True)
        (folder / "game.tw-pddl").write_text(json.dumps(data))

    put("pick-A-None-B-1", pddl_domain="x", solvable=True)
    put("pick-A-None-B-2", pddl_domain="x", solvable=False)
    put("pick-A-None-B-3", solvable=False, pddl_domain="x" * 10_000)
    put("pick-ASliced-None-B-4", solvable=True)
    put("pick_and_place_with_movable_recep-A-B-C-5", solvable=True)
    put("pick-A-None-B-6", pddl_domain="no flag: kept, and its episode fails by itself")
    found = AlfWorld(games=str(tmp_path)).tasks("train")
    assert found == ["train/pick-A-None-B-1/trial_1", "train/pick-A-None-B-6/trial_1"]
    assert OfficialGames(str(tmp_path)).content(found[1])
