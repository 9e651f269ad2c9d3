"""Audit: the statistics on worlds whose answer is known, and the whole way through a finished study."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from harness.errors import UsageError
from harness.grid import plan_cells
from harness.ledger import read_episodes
from harness.run import run_study
from harness.study import parse_study
from harness.yamlfile import load
from methods.branching.audit import AuditSpec, audit
from methods.branching.audit_stats import Item, estimate, halves_disagree, markdown, statistics
from methods.branching.audit_unit import Ref, refs, sample, target
from methods.branching.spec import Throughput

GOOD, BAD = (1.0, 1.0), (0.0, 0.0)


def item(fired: bool, candidates: str, advice: str = "", after: str = "", base: str = "-", **more: object) -> Item:
    """A tiny language for items: `+` reaches the goal, `-` does not."""

    def returns(sign: str) -> tuple[float, ...]:
        return {"+": GOOD, "-": BAD, "": ()}[sign]

    settings = {"task": "t", "r": 1} | more
    return Item(
        fired=fired,
        proposal=returns(base),
        candidates=tuple(map(returns, candidates)),
        advice=returns(advice),
        after=returns(after),
        **settings,  # type: ignore[arg-type]
    )


def test_helped_hurt_and_neutral() -> None:
    items = [
        item(True, "+---", "+", "+", task="a"),
        item(True, "----", "-", "-", task="b"),
        item(True, "+-", "-", "-", base="+", task="c"),
        item(True, "++", "+", "-", task="d"),
        item(False, "--", base="+", task="e"),
    ]
    found = statistics(items, draws=200)
    assert {word: found["advice"][word]["value"] for word in ("helped", "hurt", "neutral")} == {
        "helped": 0.5,
        "hurt": 0.25,
        "neutral": 0.25,
    }
    assert found["replan"]["helped"]["value"] == 0.25
    assert found["replan"]["gain"]["value"] == 0.0
    assert found["gate"]["precision"] == {**found["gate"]["precision"], "value": 0.5, "n": 4}
    assert found["gate"]["recall"]["value"] == 1.0


def test_quiet_reviews_count_for_all_they_stand_for() -> None:
    """10 fired reviews of which all are audited, 90 quiet ones of which 9 are: each of the 9 stands for ten."""
    fired = [item(True, "+", task=f"f{i}") for i in range(10)]
    quiet = [item(False, "+" if i == 0 else "-", task=f"q{i}", weight=10.0) for i in range(9)]
    gate = statistics([*fired, *quiet], draws=50)["gate"]
    assert gate["recall"]["value"] == pytest.approx(10 / 20)
    assert gate["firing_rate"]["value"] == pytest.approx(0.1)
    assert gate["dominated_rate"]["value"] == pytest.approx(20 / 100)
    assert gate["domination_when_quiet"]["value"] == pytest.approx(1 / 9)


def test_r_decides_what_dominated_means() -> None:
    for r, expected in ((1, True), (2, True), (3, False)):
        assert item(True, "++--", r=r).dominated(0.0) is expected
    assert item(True, "").dominated(0.0) is None


def test_a_margin_makes_small_gains_neutral() -> None:
    one = Item("t", True, 1, (0.5, 0.5), ((0.55, 0.55),), (0.55, 0.55), (0.55, 0.55))
    assert statistics([one], margin=0.1)["advice"]["neutral"]["value"] == 1.0
    assert statistics([one], margin=0.0)["advice"]["helped"]["value"] == 1.0


def test_returns_are_paired_and_a_missing_one_is_no_zero() -> None:
    assert Item("t", True, 1, (1.0, 0.0), advice=(1.0,)).gain((1.0,)) is None
    assert Item("t", True, 1, (1.0, 0.0)).gain((1.0, 1.0)) == 0.5


def test_halves_disagree() -> None:
    assert halves_disagree(Item("t", True, 1, (0.0, 1.0)), (1.0, 0.0)) is True
    assert halves_disagree(Item("t", True, 1, (0.0, 0.0)), (1.0, 1.0)) is False
    assert halves_disagree(Item("t", True, 1, (0.0, 0.0)), (1.0, 0.0)) is None


def test_intervals_resample_tasks_and_cover() -> None:
    """With the truth at 0.3 and 60 tasks of three equal items each, 95 % intervals cover it in about 95 of 100."""
    covered = 0
    for seed in range(100):
        chance = random.Random(seed)
        items = [
            item(bool(hit), "+", task=f"t{i}") for i in range(60) for hit in [chance.random() < 0.3] for _ in range(3)
        ]
        found = estimate(items, lambda one: one.fired, seed, draws=300)
        assert found.low is not None
        assert found.high is not None
        covered += found.low <= 0.3 <= found.high
    assert 88 <= covered <= 100
    alone = estimate([item(True, "+")], lambda one: 1.0)
    assert (alone.value, alone.low) == (1.0, None)


def test_nothing_to_say_is_a_dash() -> None:
    found = statistics([item(False, "-")])
    assert found["advice"]["helped"] == {"value": None, "low": None, "high": None, "n": 0}
    assert "–" in markdown({"cota": found})


def test_the_sample_is_stable_and_weighs_what_it_left_out() -> None:
    every = [Ref("c", f"t{i}", 0, 0, i % 5 == 0) for i in range(100)]
    chosen, weights = sample(every, 10, 40, 1)
    assert weights == {True: 2.0, False: 2.0}
    assert [ref.fired for ref in chosen].count(True) == 10
    assert set(chosen) == set(sample(list(reversed(every)), 10, 40, 1)[0])
    assert sample(every, 10, 40, 2)[0] != chosen


STUDY = """
study: audited
environments:
  mock: {params: {length: 5}, split: test, tasks: 10, max_steps: 9}
actors:
  simulated: {params: {competence: weak}}
judges:
  right: {plugin: oracle}
  wrong: {plugin: oracle, params: {noise: 1.0}}
candidates:
  pool: {plugin: environment}
methods:
  origin:
  cota: {comparator: right, candidates: pool, params: {k: 2, r: 1}}
  misled: {plugin: cota, comparator: wrong, candidates: pool, params: {k: 2, r: 1}}
  forced: {plugin: pairwise-forced, comparator: right, candidates: pool, params: {k: 2, r: 1}}
seeds: [0]
throughput: {backend: sequential, workers: 1}
"""


def test_a_good_judge_helps_a_wrong_one_hurts_and_the_audit_sees_it(tmp_path: Path) -> None:
    (tmp_path / "audited.yaml").write_text(STUDY)
    study = parse_study(load(tmp_path / "audited.yaml"))
    run_study(study, tmp_path / "results", live=False)
    folder, out = tmp_path / "results" / "audited", tmp_path / "audit"
    spec = AuditSpec(fired=16, quiet=12, continuations=2)
    sequential = Throughput(backend="sequential")
    report = audit(study, plan_cells(study), folder, out, spec, sequential)
    assert set(report.found) == {f"{m} / simulated / mock" for m in ("cota", "misled", "forced")}
    assert (report.dropped, report.failed) == ({}, 0)
    cota, misled = (report.found[f"{m} / simulated / mock"] for m in ("cota", "misled"))
    assert cota["advice"]["gain"]["value"] > 0.05 > misled["advice"]["gain"]["value"]
    assert cota["gate"]["precision"]["value"] > misled["gate"]["precision"]["value"]
    assert sum(cota["advice"][word]["value"] for word in ("helped", "hurt", "neutral")) == pytest.approx(1.0)
    seen: list[int] = []
    again = audit(study, plan_cells(study), folder, out, spec, sequential, lambda *found: seen.append(1))
    assert (again.found, seen) == (report.found, [])
    text = (out / "audit.md").read_text()
    assert "cota / simulated / mock" in text
    assert "SIMULATED: actor, environment." in text
    assert cota["simulated"] == ["actor", "environment"]
    with pytest.raises(UsageError, match="no review with candidates"):
        audit(study, plan_cells(study), tmp_path / "empty", out, spec, sequential)
    _check_after(folder)


def _check_after(folder: Path) -> None:
    """What came in the proposal's place: the next proposal after a replan, the executed action of a forced method."""
    for episode in read_episodes(folder):
        for ref in refs(episode):
            one, step = target(episode, ref), episode.steps[ref.step]
            if not ref.fired:
                assert one.advice is one.after is None
            elif episode.method == "forced":
                assert one.after == one.advice == step.executed
            elif "replan_limit" in step.reviews[ref.review].fail_open:
                assert one.after is None
            else:
                assert one.after == step.reviews[ref.review + 1].proposal
