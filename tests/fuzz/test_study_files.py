"""A study file is a `Study` or a `UsageError` that names the file, whatever is in it."""

from __future__ import annotations

import copy
import random
from typing import Any

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from harness.errors import UsageError
from harness.study import Study, parse_study
from harness.yamlfile import loads

BASE: dict[str, Any] = {
    "study": "fuzz",
    "title": "t",
    "hours": 1,
    "environments": {"mock": {"params": {"length": 3}, "tasks": 5, "max_steps": 8, "split": "test", "panel": "a" * 16}},
    "actors": {"weak": {"plugin": "mock", "params": {}, "overrides": {"mock": {"params": {}}}}},
    "judges": {"pair": {"plugin": "oracle"}},
    "candidates": {"pool": {"plugin": "environment"}},
    "methods": {
        "origin": None,
        "cota": {"comparator": "pair", "candidates": "pool", "params": {"k": 2}, "overrides": {"mock/weak": {}}},
    },
    "seeds": [0, 1],
    "rules": {"replans": 2},
    "skip": [{"method": "cota", "reason": "because"}],
    "training": {"webshop": {"x": 1}},
    "policy": {"call_timeout_s": 3.0, "attempts": 2},
    "throughput": {"backend": "loky", "workers": "auto"},
}
WORDS = ["mock", "cota", "origin", "pair", "all", "auto", "mock/weak", "a/b/c", "../../etc", "x.py:Y", ":", "", " ", "\x00"]
LEAF = st.one_of(
    st.none(), st.booleans(), st.integers(), st.integers(-(10**40), 10**40), st.floats(), st.text(max_size=6),
    st.sampled_from(WORDS), st.dates(), st.binary(max_size=4),
)  # fmt: skip
KEY = st.sampled_from([*BASE, *WORDS, "plugin", "params", "overrides", "tasks", "reason"]) | st.text(max_size=5)
TREE = st.recursive(
    LEAF, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEY, inner, max_size=3), max_leaves=8
)
TAGS = ("int", "float", "bool", "null", "str", "seq", "map", "set", "omap", "pairs", "timestamp", "binary", "merge")
LINES = st.lists(
    st.sampled_from(
        [
            *(f"k: !!{tag} {value}" for tag in TAGS for value in ("x", "''", "[1]", "{a: 1}", "2020-13-45")),
            *("<<: 5", "<<: [*a]", "a: &a [*a]", "a: &a {b: 1}", "<<: *a", "- x", "? [a]", "%YAML 9.9", "---", "..."),
            *("k: !!python/object/apply:os.system ['true']", "!!python/name:os.system", "study: s", "study: [", "{", "\t"),
            *("methods: {origin: }", "seeds: [0]", "x: 1e999", "x: .nan", "x: 0x1F", 'k: "\\ud800"', "k: " + "[" * 80),
        ]
    ),
    min_size=1,
    max_size=6,
)


def tried(text: str | bytes) -> None:
    """A study, or an error with the file's name."""
    said = "odd.yaml"
    try:
        assert isinstance(parse_study(loads(text, "odd.yaml")), Study)
    except UsageError as error:
        said = str(error)
    assert "odd.yaml" in said


@settings(max_examples=150)
@given(st.lists(st.tuples(TREE, KEY, st.sampled_from(["replace", "remove", "add"])), max_size=2), st.integers(0, 2**32))
def test_a_changed_study(changes: list[tuple[Any, str, str]], seed: int) -> None:
    data, chance = copy.deepcopy(BASE), random.Random(seed)
    for value, key, kind in changes:
        holder: Any = data
        while True:
            keys = list(holder) if isinstance(holder, dict) else list(range(len(holder)))
            at = chance.choice(keys) if keys else None
            if at is None or not isinstance(holder[at], dict | list) or chance.random() < 0.3:
                break
            holder = holder[at]
        if kind == "add" and isinstance(holder, dict):
            holder[key] = value
        elif kind == "add":
            holder.append(value)
        elif at is not None and kind == "remove":
            del holder[at]
        elif at is not None:
            holder[at] = value
    tried(yaml.dump(data, allow_unicode=True))


@given(LINES)
@example(["k: !!float ''"])
@example(["k: !!bool x"])
@example(["k: !!timestamp x"])
def test_odd_lines(lines: list[str]) -> None:
    tried("\n".join(lines))


@given(st.binary(max_size=60) | st.text(max_size=60))
def test_random_text(text: str | bytes) -> None:
    tried(text)


def test_the_base_is_a_study() -> None:
    assert parse_study(loads(yaml.dump(BASE), "base.yaml")).study == "fuzz"


@pytest.mark.parametrize(
    "text",
    [
        "a: " * 100_000,
        "[" * 100_000,
        "x: &a [1]\n" + "\n".join(f"x{i}: &x{i} [{', '.join(['*x' + str(i - 1)] * 10)}]" for i in range(1, 12)),
        "\n".join([f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9) if i else 'x'}]" for i in range(12)]),
        "x: " + "9" * 10_000,
    ],
)
def test_what_would_blow_up_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        parse_study(loads(text, "bomb.yaml"))
