"""Preparing a study: recipes are checked, trained once, found again, and put in the place of their names."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.errors import UsageError
from harness.run import run_study
from harness.study import Study, load_study
from methods.training.prepare import RECIPE_FILE, collected, prepare, recipes

BASE = """
study: prep
environments: {mock: {tasks: 3}}
actors: {weak: {plugin: simulated, params: {competence: weak}}}
training:
  mock: {environment: mock, actor: weak, tasks: 12, most_points: 3, comparator: {epochs: 1}, critic: null}
judges: {pair: {plugin: comparator, params: {model: "trained:mock/comparator"}}}
candidates: {environment: }
methods:
  origin:
  cota: {comparator: pair, candidates: environment}
seeds: [0]
throughput: {backend: sequential}
"""


def study(folder: Path, *changes: tuple[str, str]) -> Study:
    text = BASE
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    file = folder / "prep.yaml"
    file.write_text(text)
    return load_study(file)


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COTA_BENCH_CACHE", str(tmp_path / "cache"))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("tasks: 12", "taks: 12", "Did you mean 'tasks'"),
        ("actor: weak, tasks", "actor: week, tasks", "Did you mean 'weak'"),
        ("comparator: {epochs: 1}", "comparator: {epoch: 1}", "Did you mean 'epochs'"),
        ("trained:mock/comparator", "trained:mook/comparator", "Did you mean 'trained:mock/comparator'"),
        ("tasks: 12", "tasks: many", r"prep\.yaml:6:\d+: training\.mock\.tasks: .*It is 'many'"),
        ("{epochs: 1}", "{epochs: ten}", r"training\.mock\.comparator: epochs: a number above 0 is needed, not 'ten'"),
        ("{epochs: 1}", "{learning_rate: .nan}", "learning_rate: a number above 0 and at most 1 is needed"),
        ("{epochs: 1}", "{rows: 0}", "rows: a whole number from 1 on is needed, not 0"),
        ("{epochs: 1}", "{rows: true}", "rows: a whole number"),
        ("{epochs: 1}", "{most_steps: 1.5}", "most_steps: a whole number"),
        ("{epochs: 1}", "{autocast: bf61}", "Did you mean 'bf16'"),
        ("{epochs: 1}", "{prompt: focussed}", "Did you mean 'focused'"),
        ("comparator: {epochs: 1}", "comparator: null", r"training\.mock leaves the comparator out"),
        ("  mock: {environment", '  "../mock": {environment', "a label is letters, digits"),
    ],
)
def test_a_wrong_recipe_is_named_with_the_nearest(tmp_path: Path, old: str, new: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        prepare(study(tmp_path, (old, new)), say=lambda _: None)
    assert not list((tmp_path / "cache").rglob("*.gz")), "said before anything is collected"


def test_the_hash_follows_what_decides_the_weights(tmp_path: Path) -> None:
    def hash_of(*changes: tuple[str, str]) -> str:
        return recipes(study(tmp_path, *changes))["mock"].hash

    base = hash_of()
    assert hash_of() == base
    assert hash_of(("seeds: [0]", "seeds: [0, 1]"), ("backend: sequential", "backend: threading")) == base
    own = "actor: {plugin: simulated, params: {competence: weak}}, tasks"
    assert hash_of(("actor: weak, tasks", own)) == base
    changed = [("tasks: 12", "tasks: 13"), ("epochs: 1", "epochs: 2"), ("competence: weak", "competence: strong")]
    assert len({hash_of(change) for change in changed} | {base}) == 4


def test_a_dry_run_says_what_is_missing_and_trains_nothing(tmp_path: Path) -> None:
    said: list[str] = []
    ready = prepare(study(tmp_path), dry=True, say=said.append)
    assert "to be trained first: mock/comparator" in said[0]
    folder = Path(str(ready.judges["pair"].params["model"]))
    assert [path.name for path in folder.iterdir()] == [RECIPE_FILE]


@pytest.mark.models
def test_trained_once_found_again_and_used(tmp_path: Path) -> None:
    pytest.importorskip("trl")
    said: list[str] = []
    ready = prepare(study(tmp_path), say=said.append)
    assert any("trained in" in line for line in said)
    said.clear()
    assert prepare(study(tmp_path), say=said.append).judges == ready.judges
    assert said == []
    summary = run_study(ready, tmp_path / "results", live=False)
    assert summary.exit_status == 0
    assert summary.counts["done"] == 6


def test_a_source_actor_may_be_the_recipes_own(tmp_path: Path) -> None:
    inline = "actor: {plugin: simulated, params: {competence: weak}}, tasks"
    named, own = (recipes(study(tmp_path, *change))["mock"] for change in ([], [("actor: weak, tasks", inline)]))
    assert own.hash == named.hash
    strong = inline.replace("weak", "strong")
    assert recipes(study(tmp_path, ("actor: weak, tasks", strong)))["mock"].hash != named.hash
    with pytest.raises(UsageError, match=r"training\.mock\.actor"):
        recipes(study(tmp_path, ("actor: weak, tasks", "actor: {params: {}}, tasks")))


def test_an_interrupted_preparation_goes_on_from_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from methods.training import steps as module

    said: list[str] = []
    real, calls = module.collect, []

    def interrupted(spec: object, out: Path, throughput: object, progress: object) -> object:
        def stop(done: int, total: int, record: object) -> None:
            calls.append(done)
            if done == 3:
                raise KeyboardInterrupt

        return real(spec, out, throughput, stop)  # type: ignore[arg-type]

    monkeypatch.setattr(module, "collect", interrupted)
    with pytest.raises(KeyboardInterrupt):
        prepare(study(tmp_path), say=said.append)
    calls.clear()
    with pytest.raises(KeyboardInterrupt):
        prepare(study(tmp_path), say=said.append)
    monkeypatch.setattr(module, "collect", lambda *args: real(*args[:3], lambda done, *_: calls.append(done)))
    calls.clear()
    module.collected(recipes(study(tmp_path))["mock"], said.append)
    assert calls == [1, 2, 3, 4, 5, 6]  # twelve tasks, two interruptions after three each


def test_a_split_that_is_shorter_than_the_recipe_says_so(tmp_path: Path) -> None:
    said: list[str] = []
    collected(recipes(study(tmp_path, ("tasks: 12", "tasks: 5000")))["mock"], said.append)
    assert any("5000 tasks are asked for" in line for line in said)
