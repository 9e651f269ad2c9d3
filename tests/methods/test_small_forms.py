"""The studies that come along and train their judges: what they promise holds before anything is spent."""

from __future__ import annotations

from collections import Counter

import pytest

from harness.study import Study, load_study
from methods.training.prepare import recipes

SEVEN = {"origin", "self-reflection", "asym-ac", "agentprm", "absq-constructive", "pairwise-forced", "cota"}


@pytest.fixture(scope="module")
def studies() -> dict[str, Study]:
    return {name: load_study(name) for name in ("quickstart", "small")}


def test_quickstart_has_all_methods_environments_and_seeds(studies: dict[str, Study]) -> None:
    study = studies["quickstart"]
    assert {part.plugin for part in study.methods.values()} == SEVEN
    assert set(study.environments) == {"webshop", "alfworld", "retail"}
    assert len(study.seeds) == 2


def test_both_studies_share_what_is_trained(studies: dict[str, Study]) -> None:
    hashes = [{label: one.hash for label, one in recipes(study).items()} for study in studies.values()]
    assert hashes[0] == hashes[1]
    assert len(set(hashes[0].values())) == 3


def test_judges_are_trained_and_never_asked_from_an_oracle(studies: dict[str, Study]) -> None:
    for study in studies.values():
        for label in study.environments:
            for judge in ("pairwise", "absolute"):
                part = study.judges[judge].resolved(label, "")
                assert str(part.params["model"]).startswith(f"trained:{label}/")


def test_small_has_a_hundred_episodes_a_cell(studies: dict[str, Study]) -> None:
    study = studies["small"]
    seeds: Counter[str] = Counter()
    for label in study.environments:
        left_out = {skip.seed for skip in study.skip if skip.environment == label}
        seeds[label] = len(set(study.seeds) - left_out)
    tasks = {label: 40 if part.tasks == "all" else part.tasks for label, part in study.environments.items()}
    assert all(isinstance(tasks[label], int) and tasks[label] * seeds[label] >= 100 for label in tasks)
