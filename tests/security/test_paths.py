"""Names from outside (task ids, studies, labels, measures, trees of games) never lead out of their folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from harness import measures
from harness.environments.mock import MockEnvironment
from harness.errors import UsageError
from harness.study import parse_study
from harness.yamlfile import loads

EVIL = [
    "../secret", "../../etc/passwd", "/etc/passwd", "..", ".", "", "a/../../b", "valid_unseen/../../secret",
    "valid_unseen/../valid_unseen/../../secret", "test/../../x", "..\\..\\x", "\x00", "valid_unseen/\x00", "~/x",
    "$HOME", "%2e%2e/x", "webshop-0/../1", "webshop-٣", "webshop--1", "webshop-1 ", "0/../1", "file:///etc/passwd", "a" * 5000,
]  # fmt: skip


def environments() -> list[Any]:
    made: list[Any] = [MockEnvironment()]
    try:
        from harness.environments.webshop import WebShop

        made.append(WebShop())
    except ImportError:
        pass
    return made


@pytest.mark.parametrize("task", EVIL)
def test_task_ids_of_mock_and_webshop(task: str) -> None:
    for environment in environments():
        with pytest.raises(UsageError):
            environment.reset(task, 0)


@pytest.mark.parametrize("task", EVIL)
def test_task_ids_of_retail(task: str) -> None:
    pytest.importorskip("tau2")
    from harness.environments.retail import Retail

    with pytest.raises(UsageError):
        Retail().reset(task, 0)


@pytest.mark.parametrize("task", EVIL)
def test_task_ids_of_alfworld(task: str, tmp_path: Path) -> None:
    """Games outside the tree are there to be found: they must not be."""
    from harness.environments.alfworld.games import EmbeddedGames, OfficialGames

    game = json.dumps({"pddl_domain": "d", "grammar": "g", "pddl_problem": "p", "solvable": True})
    for folder in ("tree/valid_unseen/good", "secret", "etc/passwd", "x"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "game.tw-pddl").write_text(game)
    source = OfficialGames(str(tmp_path / "tree"))
    assert source.load("valid_unseen/good").domain == "d"
    for work in (source.load, source.content, EmbeddedGames().load):
        with pytest.raises(UsageError):
            work(task)


@pytest.mark.parametrize("name", ["../x", "..", ".hidden", "a/b", "a\\b", "", " ", "a\n", "x" * 65, "\x1b[31m"])
def test_names_of_studies(name: str) -> None:
    text = "environments: {mock: }\nactors: {mock: }\nmethods: {origin: }\nseeds: [0]\n"
    with pytest.raises(UsageError):
        parse_study(loads(f"study: {json.dumps(name)}\n{text}", "s.yaml"))


@pytest.mark.parametrize("label", ["..", "../x", ".x", "a/b", "a\\b", " a", "\x1b[31m", "a\u202eb"])
@pytest.mark.parametrize("section", ["environments", "actors", "judges", "candidates", "methods"])
def test_labels(label: str, section: str) -> None:
    """A judge's label is the folder it is trained into."""
    plugin = {"environments": "mock", "actors": "mock", "judges": "oracle", "candidates": "environment"}
    data: dict[str, Any] = {
        "study": "s", "environments": {"mock": {}}, "actors": {"mock": {}}, "methods": {"origin": {}}, "seeds": [0]
    }  # fmt: skip
    data.setdefault(section, {})[label] = {"plugin": plugin.get(section, "origin")}
    with pytest.raises(UsageError, match="label"):
        parse_study(loads(json.dumps(data), "s.yaml"))


@pytest.mark.parametrize("name", ["../x", "a/b", "..", "", "a.b", "\x00"])
def test_names_of_measures(name: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="plain word"):
        measures.write_measure(tmp_path / "s", measures.Measure(name, (), "test"))
    with pytest.raises(UsageError, match="plain word"):
        measures.read_measure(tmp_path / "s", name)
    assert not list(tmp_path.rglob("*.json"))


def test_task_ids_are_never_names_of_files(tmp_path: Path) -> None:
    """A whole study over hostile ids in its records leaves files in its own folder alone."""
    from tests.synthetic import make_episode, planned_cells, write_ledger

    cells = planned_cells(methods=("cota",), actors=("weak",), environments=("webshop",), seeds=(0,), tasks=1)
    folder = tmp_path / "results" / "demo"
    write_ledger(folder, [make_episode(cells[0], task, steps=1) for task in EVIL if task and "\x00" not in task])
    before = {path for path in tmp_path.rglob("*") if not path.is_relative_to(folder)}
    pytest.importorskip("pandas")
    from reports.write import write_report

    write_report(folder, folder / "report")
    assert {path for path in tmp_path.rglob("*") if not path.is_relative_to(folder)} == before
