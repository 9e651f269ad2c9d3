"""Cells and their keys: what moves a key, and what never does."""

from __future__ import annotations

import pytest

from harness.errors import UsageError
from harness.grid import difference, explain, limits, plan_cells
from harness.seeds import digest
from tests.grid.samples import BASE, study


def keys(*changes) -> dict[tuple, str]:
    return {cell.labels: cell.key for cell in plan_cells(study(BASE, *changes)).cells}


def test_golden_keys():
    """If this fails, every results folder in the world starts anew: bump what has to be bumped on purpose."""
    found = keys()
    assert len(found) == len(set(found.values())) == 8
    assert found[("plain", "weak", "mock", 0)] == "5d224ebe291e298d"
    assert found[("judged", "strong", "mock", 1)] == "b2294a5bae4949ed"


def test_a_key_is_the_hash_of_the_parts_that_explain_prints():
    cell = plan_cells(study()).cells[-1]
    assert cell.key == digest(dict(cell.identity))[:16]
    text = explain(cell)
    for part in (
        cell.key,
        'comparator.plugin = "t-judge"',
        "seed = 1",
        "environment.max_steps = 8",
        "rules.replans = 2",
    ):
        assert part in text
    assert "device" not in text  # the judge declares it as throughput


@pytest.mark.parametrize(
    "changes",
    [
        [("study: small", "study: other")],
        [("seeds:", "policy: {call_timeout_s: 1, attempts: 3, retry_failed: false}\nseeds:")],
        [("backend: sequential", "backend: loky, workers: 7")],
        [("{plugin: t-judge}", "{plugin: t-judge, params: {device: cuda}}")],
        [("{plugin: t-judge}", "{plugin: t-judge, params: {margin: 0.5}}")],  # the default, spelt out
        [("{plugin: t-plain}", "{params: {}, plugin: t-plain}")],
        [("seeds: [0, 1]", "seeds: [1, 0]")],
        [("seeds:", "title: T\nhours: 3\nnotes: n\nfills: Table 1\nseeds:")],
        [("judges: {pair:", "judges: {couple:"), ("comparator: pair", "comparator: couple")],
    ],
)
def test_what_does_not_change_outcomes_does_not_change_keys(changes):
    assert keys(*changes) == keys()


def test_labels_are_not_in_the_key():
    renamed = keys(("  plain:", "  nothing:"), ("weak:", "poor:"), ("{mock: {", "{corridor: {plugin: mock, "))
    assert sorted(renamed.values()) == sorted(keys().values())


@pytest.mark.parametrize(
    ("change", "moved"),
    [
        (("length: 3", "length: 4"), 8),
        (("tasks: 5", "tasks: 6"), 8),
        (("tasks: 5", "tasks: 5, first: 1"), 8),
        (("tasks: 5", "tasks: 5, split: train"), 8),
        (("max_steps: 8", "max_steps: 9"), 8),
        (("seeds:", "rules: {replans: 1}\nseeds:"), 8),
        (("skill: 0.9", "skill: 0.8"), 4),
        (("{plugin: t-judge}", "{plugin: t-judge, params: {margin: 0.4}}"), 4),
        (("{plugin: t-plain}", "{plugin: t-plain, params: {note: x}}"), 4),
        (("{plugin: t-plain}", "{plugin: t-plain, overrides: {mock/weak: {params: {note: x}}}}"), 2),
    ],
)
def test_what_changes_outcomes_changes_the_keys_it_should(change, moved):
    before, after = keys(), keys(change)
    assert sum(before[labels] != after[labels] for labels in before) == moved


def test_adding_to_a_study_moves_no_key():
    more = keys(("methods:", "methods:\n  third: {plugin: t-plain, params: {note: z}}"), ("seeds: [0", "seeds: [5, 0"))
    assert keys().items() <= more.items()


def test_a_version_bump_moves_the_keys_of_what_uses_it(monkeypatch):
    from harness import registry

    before = keys()
    monkeypatch.setattr(registry.load("judges", "t-judge"), "version", "2", raising=False)
    after = keys()
    assert {labels[0] for labels in before if before[labels] != after[labels]} == {"judged"}


def test_a_plugin_may_add_to_its_identity(monkeypatch):
    from harness import registry

    actor = registry.load("actors", "t-random")
    monkeypatch.setattr(actor, "identity", lambda self: {"revision": f"sha-{self.skill}"}, raising=False)
    plan = plan_cells(study())
    assert plan.cells[0].identity["actor"]["more"] == {"revision": "sha-0.5"}
    monkeypatch.setattr(actor, "identity", lambda self: {"revision": object()}, raising=False)
    with pytest.raises(UsageError, match="no JSON values"):
        plan_cells(study())


def test_two_labels_for_one_thing_are_refused():
    with pytest.raises(UsageError, match="Two labels mean the same thing"):
        plan_cells(study(BASE, ("methods:", "methods:\n  again: {plugin: t-plain}")))


def test_skipped_cells_are_planned_with_their_reason():
    plan = plan_cells(study(BASE, ("seeds:", "skip: [{method: judged, actor: weak, reason: no judge yet}]\nseeds:")))
    assert {cell.labels[:2] for cell, _ in plan.skipped} == {("judged", "weak")}
    assert {reason for _, reason in plan.skipped} == {"no judge yet"}
    assert (len(plan.cells), len(plan.skipped), plan.episodes) == (6, 2, 40)


def test_differences_are_named_by_path():
    old, new = plan_cells(study()).cells[0], plan_cells(study(BASE, ("length: 3", "length: 4"))).cells[0]
    lines = difference(old.identity, new.identity)
    assert lines[1] == "environment.params.length: 3 -> 4"
    assert lines[0].startswith('environment.panel: "')
    assert difference({"a": {}}, {"a": {"b": None}}) == ["a: {} -> (absent)", "a.b: (absent) -> null"]
    assert difference({"a": 1}, {"a": 1}) == []


def test_limits_come_from_identity_and_policy():
    found = study(BASE, ("seeds:", "policy: {call_timeout_s: 1, step_timeout_s: 2, episode_timeout_s: null}\nseeds:"))
    made = limits(found, plan_cells(found).cells[0])
    assert (made.max_steps, made.replans, made.call_s, made.step_s, made.episode_s) == (8, 2, 1, 2, None)
