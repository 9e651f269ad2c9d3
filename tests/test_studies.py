"""The studies that come with the package: every one can be planned, and the published ones have the paper's figures."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from harness.cli.run import plan_command
from harness.study import Study, known, load_study
from methods.candidates.described import table6
from methods.training.diversity import wanted
from methods.training.studyrecipe import recipes

ROOT = Path(__file__).parents[1]
PAPER = ROOT / "reports" / "paper"
FORMS = ("ablation", "validation_sweep", "target_ablation", "diversity")
NAMES = {"webshop": "WebShop", "alfworld": "ALFWorld", "retail": "tau3-Retail"}
ACTORS = {"qwen3-8b": "Qwen3-8B", "qwen3.6-35b-a3b": "Qwen3.6-35B-A3B"}


def published(name: str) -> list[dict[str, str]]:
    with (PAPER / f"{name}.csv").open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("name", [f"{name}{form}" for name in FORMS for form in ("", "_small")])
def test_the_command_plans_it(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert plan_command(name, tmp_path, None) == 0
    assert "0 done, 0 failed" in capsys.readouterr().out
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", sorted(known()))
def test_it_says_what_it_is_for(name: str) -> None:
    study = load_study(name)
    assert study.study == name
    assert study.title
    assert study.fills
    assert study.hours
    sources = [recipe["actor"] for recipe in study.training.values()]
    plugins = {part.plugin for part in study.actors.values()} | {one["plugin"] for one in sources if isinstance(one, dict)}
    simulated = "simulated" in plugins
    assert simulated == ("imulated" in study.title + study.notes)
    recipes(study)


def test_main_draws_candidates_as_table_6_says() -> None:
    expected = {
        (row["environment"], row["actor_condition"]): row["candidate_source"] for row in published("table6_sources")
    }
    seen = set()
    for row in table6(load_study("main")):
        environment = NAMES[str(row["environment"]).split("-")[0]]
        for actor in load_study("main").actors:
            if row["actor_condition"] not in ("all actors", actor):
                continue
            conditions = ["all actors", ACTORS.get(actor, actor)]
            if actor != "qwen3-8b":
                conditions.append("stronger actors")
            (wanted_source,) = (expected[environment, c] for c in conditions if (environment, c) in expected)
            # A slice for one actor is "all actors" of that slice: DeepSeek's, the strongest.
            if row["environment"] == "alfworld-20" and actor != "deepseek-v4-flash":
                continue
            assert row["candidate_source"] == wanted_source, (row, actor)
            seen.add(environment)
    assert seen == set(NAMES.values())


def test_main_has_the_slices_of_table_3() -> None:
    study = load_study("main")
    for row in published("table3_slices"):
        label = {name: label for label, name in NAMES.items()}[row["environment"]]
        assert study.environments[label].tasks == int(row["local_tasks"])
        assert study.environments[label].max_steps == int(row["max_steps"])
        small = next((p for k, p in study.environments.items() if k.startswith(f"{label}-")), study.environments[label])
        assert small.tasks == int(row["deepseek_tasks"])


@pytest.mark.parametrize("form", ["", "_small"])
def test_the_ablation_is_the_two_by_two_of_table_2(form: str) -> None:
    study = load_study(f"ablation{form}")
    names = {row["method_name"].lower() for row in published("table2")}
    assert {label for label in study.methods if label != "origin"} == names
    if not form:
        assert {NAMES[label] for label in study.environments} == {row["environment"] for row in published("table2")}
        assert {ACTORS[label] for label in study.actors} == {row["actor"] for row in published("table2")}


@pytest.mark.parametrize("form", ["", "_small"])
def test_the_sweep_has_the_operating_points_of_table_5_on_validation_tasks(form: str) -> None:
    study = load_study(f"validation_sweep{form}")
    points = {label: method.params for label, method in study.methods.items() if label != "origin"}
    rows = published("table5_sweep")
    assert points == {row["configuration"]: {"k": int(row["k"]), "r": int(row["r"])} for row in rows}
    assert {part.split for part in study.environments.values()} == {"validation"}
    assert all(method.plugin in ("cota", "origin") for method in study.methods.values())


@pytest.mark.parametrize("form", ["", "_small"])
def test_the_target_ablation_differs_in_the_target_alone(form: str) -> None:
    made = recipes(load_study(f"target_ablation{form}"))
    both, ab = made["webshop"], made["webshop-ab"]
    assert (both.recipe.ab_only, ab.recipe.ab_only) == (False, True)
    assert both.recipe.model_copy(update={"ab_only": True, "critic": None}) == ab.recipe
    assert both.branches_hash == ab.branches_hash
    assert both.hash != ab.hash
    # What the base study trained is found again.
    base = recipes(load_study("small" if form else "main"))["webshop"]
    assert base.hash == both.hash


@pytest.mark.parametrize("form", ["", "_small"])
def test_diversity_has_the_published_sizes(form: str) -> None:
    (found, one) = wanted(load_study(f"diversity{form}"))["webshop"]
    actor, candidates = published("diversity")
    assert found.samples == int(actor["samples_per_prefix"])
    assert found.k == int(candidates["samples_per_prefix"])
    assert found.prefixes == int(actor["prefixes"])
    assert one.recipe.environment == "webshop"


def test_training_never_sees_what_a_study_evaluates() -> None:
    for name in known():
        study: Study = load_study(name)
        for one in recipes(study).values():
            assert one.recipe.split == "train"
            assert study.environments[one.recipe.environment].split in ("test", "validation")
