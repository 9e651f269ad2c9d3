"""Studies that build on others: what is inherited, what drops out, where a value stands, what is said when wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.errors import UsageError
from harness.study import Study, load_study

BASE = """\
study: base
title: the base
notes: of the base
environments: {mock: {tasks: 5}, short: {plugin: mock, tasks: 2}}
actors: {weak: {plugin: simulated}, strong: {plugin: simulated, params: {competence: strong}}}
judges:
  pair: {plugin: oracle, overrides: {short: {params: {}}, mock/strong: {}}}
candidates: {environment: }
methods:
  origin:
  cota: {comparator: pair, candidates: environment, overrides: {short/weak: {params: {k: 2}}}}
seeds: [0, 1]
skip:
  - {environment: short, reason: not here}
  - {environment: mock, seed: 1, reason: once}
  - {actor: strong, reason: not this one}
training:
  one: {environment: mock, actor: weak}
  two: {environment: short, actor: weak, seed: 7}
  own: {environment: mock, actor: {plugin: simulated}}
policy: {call_timeout_s: 5, attempts: 3}
"""


def study(folder: Path, text: str, **files: str) -> Study:
    for name, content in ({"base": BASE} | files).items():
        (folder / f"{name}.yaml").write_text(content)
    (folder / "mine.yaml").write_text(text)
    return load_study(folder / "mine.yaml")


def test_everything_is_inherited_but_the_words_about_it(tmp_path: Path) -> None:
    found = study(tmp_path, "study: mine\nextends: base\n")
    base = load_study(tmp_path / "base.yaml")
    same = ("environments", "actors", "judges", "candidates", "methods", "seeds", "skip", "training", "policy")
    assert {name: getattr(found, name) for name in same} == {name: getattr(base, name) for name in same}
    assert (found.study, found.title, found.notes) == ("mine", "", "")


def test_what_speaks_of_a_left_out_label_goes_with_it(tmp_path: Path) -> None:
    text = "study: mine\nextends: base\nonly: {environments: [mock], actors: [weak]}\nseeds: [0]\n"
    found = study(tmp_path, text)
    assert list(found.environments) == ["mock"]
    assert found.judges["pair"].overrides == {}
    assert found.methods["cota"].overrides == {}
    assert found.skip == []
    assert list(found.training) == ["one", "own"]


def test_own_labels_replace_whole_and_own_policy_is_merged(tmp_path: Path) -> None:
    text = """\
study: mine
extends: base
only: {methods: [origin]}
environments: {mock: {tasks: 9, first: 1}}
methods: {sure: {plugin: cota, comparator: pair, candidates: environment, params: {r: 4}}}
policy: {attempts: 2}
skip: []
"""
    found = study(tmp_path, text)
    assert found.environments["mock"].tasks == 9
    assert found.environments["short"].tasks == 2
    assert list(found.methods) == ["origin", "sure"]
    assert (found.policy.call_timeout_s, found.policy.attempts) == (5, 2)
    assert found.skip == []


def test_a_base_may_have_a_base(tmp_path: Path) -> None:
    middle = "study: middle\nextends: base.yaml\nonly: {methods: [origin]}\nseeds: [3]\nskip: []\n"
    found = study(tmp_path, "study: mine\nextends: middle\n", middle=middle)
    assert (list(found.methods), found.seeds) == (["origin"], [3])


def test_an_inherited_mistake_is_shown_in_the_file_it_is_in(tmp_path: Path) -> None:
    wrong = BASE.replace("tasks: 2", "taks: 2").replace("environment: short, reason", "environment: shirt, reason")
    with pytest.raises(UsageError) as caught:
        study(tmp_path, "study: mine\nextends: base\n", base=wrong)
    assert "base.yaml:4:56: environments.short.taks" in str(caught.value)
    with pytest.raises(UsageError, match=r"base\.yaml:\d+:\d+: judges\.pair\.plugin"):
        study(tmp_path, "study: mine\nextends: base\n", base=BASE.replace("oracle,", "orcale,"))
    with pytest.raises(UsageError, match=r"mine\.yaml:3:1: seeds"):
        study(tmp_path, "study: mine\nextends: base\nseeds: none\n")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("extends: bas", r"mine\.yaml:2:1: extends: Unknown study 'bas'"),
        ("extends: mine", "leads back to this study"),
        ("extends: round", "leads back to this study"),
        ("extends: [base]", "the name of one study"),
        ("only: {methods: [origin]}", r"mine\.yaml:2:1: only: .*add `extends"),
        ("extends: base\nonly: {method: [origin]}", r"mine\.yaml:3:8: only: unknown section 'method'.*'methods'"),
        ("extends: base\nonly: {methods: [cotta]}", r"only\.methods: 'cotta' is no label in .*Did you mean 'cota'"),
        ("extends: base\nonly: {methods: cota}", r"only\.methods"),
        ("extends: base\nonly: [cota]", "sections with lists"),
        ("extends: base\nonly: {actors: [weak]}\nskip: [{actor: strong, reason: gone}]", "unknown actor 'strong'"),
        ("extend: base", "unknown key 'extend'.*Did you mean 'extends'"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        study(tmp_path, f"study: mine\n{text}\n", round="study: round\nextends: mine\n")
