"""Study files: what is wrong is said with place, path and nearest name, all of it at once."""

from __future__ import annotations

import pytest

from harness.errors import UsageError
from harness.study import find, load_study
from tests.grid.samples import BASE, study

CASES = [
    (
        "seeds: [0, 1]",
        "sedes: [0, 1]",
        ["study.yaml:10:1: sedes", "Did you mean 'seeds'?", "the key 'seeds' is needed"],
    ),
    ("{plugin: t-plain}", "{plugin: t-plian}", ["methods.plain.plugin", "Did you mean 't-plain'?"]),
    ("{plugin: t-plain}", "{params: {x: 1}}", ["methods.plain.plugin: Unknown method 'plain'"]),
    (
        "{plugin: t-plain}",
        "{plugin: t-plain, params: {pauze: 1}}",
        ["methods.plain.params.pauze", "Did you mean 'pause'?"],
    ),
    ("{plugin: t-random}", "{plugin: t-radnom}", ["actors.weak.plugin", "Did you mean 't-random'?"]),
    ("{plugin: t-random}", "{plugin: t-fault}", ["actors.weak.params", "needs the parameter(s) folder"]),
    ("{length: 3}", "{lenght: 3}", ["study.yaml:3:32: environments.mock.params.lenght", "Did you mean 'length'?"]),
    ("tasks: 5", "taks: 5", ["environments.mock.taks: unknown key", "Did you mean 'tasks'?"]),
    ("tasks: 5", "tasks: 0", ["environments.mock.tasks: at least one task"]),
    ("tasks: 5", "tasks: [a, b, a]", ["environments.mock.tasks: task ids stand twice: a"]),
    ("tasks: 5", "tasks: some", ["environments.mock.tasks", "'some'"]),
    ("max_steps: 8", "max_steps: 0", ["environments.mock.max_steps", "greater than or equal to 1"]),
    ("max_steps: 8", "panel: XYZ", ["environments.mock.panel"]),
    (
        "comparator: pair",
        "comparator: pear",
        ["methods.judged.comparator: 'pear' is not under", "Did you mean 'pair'?"],
    ),
    (", comparator: pair", "", ["methods.judged", "needs `comparator: <label>`", "pair"]),
    (
        "{plugin: t-plain}",
        "{plugin: t-plain, critic: pair}",
        ["methods.plain.critic", "uses no critic; remove this line"],
    ),
    ("candidates: pool}", "candidates: pair}", ["methods.judged.candidates: 'pair' is not under `candidates:`"]),
    ("{plugin: t-judge}", "{plugin: oracle-critic}", ["cannot be a comparator: it has no compare()"]),
    (
        "{plugin: t-judge}",
        "{plugin: t-judge, overrides: {moc: {}}}",
        ["judges.pair.overrides.moc", "Did you mean 'mock'?"],
    ),
    (
        "{plugin: t-judge}",
        "{plugin: t-judge, overrides: {mock/weka: {}}}",
        ["judges.pair.overrides.mock/weka: unknown actor 'weka'", "'weak'"],
    ),
    (
        "{plugin: t-plain}",
        "{plugin: t-plain, overrides: {mock: {params: {nota: x}}}}",
        ["methods.plain.overrides.mock.params.nota", "Did you mean 'note'?"],
    ),
    ("seeds: [0, 1]", "seeds: [0, 0]", ["seeds", "a seed stands twice"]),
    ("seeds: [0, 1]", "seeds: [0, one]", ["study.yaml:10:12: seeds[1]", "integer"]),
    ("seeds: [0, 1]", "seeds: [0, 99999999999999999999]", ["study.yaml:10:12: seeds[1]", "less than 2147483648"]),
    ("seeds: [0, 1]", "seeds: [-1]", ["seeds[0]", "greater than or equal to 0"]),
    (
        "max_steps: 8",
        "max_steps: 99999999999999999999",
        ["environments.mock.max_steps", "less than or equal to 100000"],
    ),
    ("backend: sequential", "workers: 100000", ["throughput.workers: at least 1 and at most 1024"]),
    (
        "tasks: 5",
        "tasks: true",
        ["environments.mock.tasks: should be a number of tasks, a list of ids, or 'all', not True"],
    ),
    ("tasks: 5", "tasks: [1.5]", ["environments.mock.tasks: should be a number of tasks"]),
    ("{length: 3}", "{length: abc}", ["study.yaml:3:32: environments.mock.params.length: must be int, not 'abc'"]),
    ("{length: 3}", "{length: 3.5}", ["environments.mock.params.length: must be int, not 3.5"]),
    ("{length: 3}", "{length: true}", ["environments.mock.params.length: must be int, not True"]),
    ("{skill: 0.9}", "{skill: null}", ["actors.strong.params.skill: must be float, not None"]),
    (
        "{plugin: t-plain}",
        "{plugin: t-plain, overrides: {mock: {params: {note: 7}}}}",
        ["study.yaml:8:56: methods.plain.overrides.mock.params.note: must be str, not 7"],
    ),
    ("backend: sequential", "backend: loki", ["throughput.backend: 'loki'", "Did you mean 'loky'?"]),
    ("backend: sequential", "workers: 0", ["throughput.workers: at least 1"]),
    ("study: small", "study: ../../etc", ["study: '../../etc' does not fit"]),
    ("seeds:", "skip: [{method: plane, reason: why not}]\nseeds:", ["skip[0].method", "Did you mean 'plain'?"]),
    ("seeds:", "skip: [{method: plain}]\nseeds:", ["skip[0].reason: the key 'reason' is needed"]),
    ("seeds:", "policy: {episode_timeout: 3}\nseeds:", ["policy.episode_timeout", "'episode_timeout_s'"]),
    ("plain: {", "no/slash: {", ["methods.no/slash", "cannot be a label"]),
    # YAML itself
    ("seeds: [0, 1]", "seeds: [0, 1", ["study.yaml:11:", "Fix the YAML there"]),
    ("seeds: [0, 1]", "\tseeds: [0, 1]", ["study.yaml:10:1"]),
    ("  judged:", "  plain:", ["study.yaml:9:3: the key 'plain' stands twice (first in line 8)"]),
    ("seeds: [0, 1]", "seeds: !!python/object/apply:os.getcwd []", ["study.yaml:10:8"]),
    ("plain: {", "1: {", ["the key '1' is no text"]),
]


@pytest.mark.parametrize(("old", "new", "said"), CASES)
def test_what_is_wrong_is_said(old, new, said):
    with pytest.raises(UsageError) as caught:
        study(BASE, (old, new))
    for part in said:
        assert part in str(caught.value)
    assert "Traceback" not in str(caught.value)
    assert "pydantic" not in str(caught.value)


def test_all_problems_are_in_one_message_in_the_order_of_the_file():
    with pytest.raises(UsageError) as caught:
        study(BASE, ("tasks: 5", "tusks: 5"), ("max_steps: 8", "max_stops: 8"), ("seeds: [0", "seeds: [x"))
    lines = str(caught.value).split("\n")
    assert lines[0].startswith("3 problems")
    assert [line.split(": ")[1] for line in lines[1:]] == [
        "environments.mock.tusks",
        "environments.mock.max_stops",
        "seeds[0]",
    ]


@pytest.mark.parametrize("text", ["", "- a\n", "just text", "a: &x [*x]\n", "\x00"])
def test_no_study_at_all(text):
    with pytest.raises(UsageError, match=r"study\.yaml"):
        study(text)


@pytest.mark.parametrize(("opens", "closes"), [("[", "]"), ("{a: ", "}")])
def test_deep_nesting_is_refused(opens, closes):
    with pytest.raises(UsageError, match=r"study\.yaml.*nested"):
        study("a: " + opens * 5000 + "1" + closes * 5000)


def test_one_wrong_value_is_one_complaint():
    with pytest.raises(UsageError) as caught:
        study(BASE, ("tasks: 5", "tasks: true"))
    assert " or: " not in str(caught.value)


def test_aliases_that_explode_are_refused():
    bomb = "a: &a [x,x,x,x,x,x,x,x,x,x]\n"
    for old, new in zip("abcdefg", "bcdefgh", strict=True):
        bomb += f"{new}: &{new} [{','.join([f'*{old}'] * 10)}]\n"
    with pytest.raises(UsageError, match="too many"):
        study(bomb)


def test_plain_scalars_are_read_as_people_mean_them():
    found = study(BASE, ("{plugin: t-plain}", "{plugin: t-plain, params: {note: 2024-01-01, pause: 1e-3}}"))
    assert found.methods["plain"].params == {"note": "2024-01-01", "pause": 0.001}
    odd = study(BASE, ("  plain:", "  off:"), ("tasks: 5", "tasks: [007, 5000]"))
    assert set(odd.methods) == {"off", "judged"}
    assert odd.environments["mock"].tasks == ["007", "5000"]


def test_a_label_alone_is_the_plugin_of_that_name():
    found = study(BASE, ("  plain: {plugin: t-plain}", "  t-plain:"))
    assert found.methods["t-plain"].plugin == "t-plain"


def test_overrides_apply_from_general_to_special():
    over = "{mock: {params: {margin: 0.2}}, mock/weak: {params: {device: x}}}"
    text = f"{{plugin: t-judge, params: {{margin: 0.1}}, overrides: {over}}}"
    judge = study(BASE, ("{plugin: t-judge}", text)).judges["pair"]
    assert judge.resolved("mock", "strong").params == {"margin": 0.2}
    assert judge.resolved("mock", "weak").params == {"margin": 0.2, "device": "x"}
    assert judge.resolved("other", "weak").params == {"margin": 0.1}


def test_studies_are_found_by_name_and_path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "experiments").mkdir()
    (tmp_path / "experiments" / "mine.yaml").write_text(BASE)
    assert load_study("mine").study == load_study(tmp_path / "experiments" / "mine.yaml").study == "small"
    with pytest.raises(UsageError, match=r"Unknown study 'mina'\. Did you mean 'mine'"):
        find("mina")
    with pytest.raises(UsageError, match=r"no study file sub/mina\.yaml"):
        find("sub/mina.yaml")
