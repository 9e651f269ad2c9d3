"""The paper's numbers: carried whole, its claims reproduced by the code that reports ours, verdicts only where they may be."""

from __future__ import annotations

from dataclasses import replace

import pytest

from harness.errors import UsageError
from harness.measures import Measure
from harness.tracking.plan import PlannedCell
from reports import render
from reports.against import against_tables, build
from reports.beside import Beside, everything
from reports.claims import Setting, claims, our_settings, paper_settings
from reports.comparable import reasons
from reports.frames import Tracked, groups
from reports.names import published_actor
from reports.performance import Performance, measure
from reports.published import FILES, FOLDER, published, value
from reports.stats import EMPTY, Estimate
from tests.reports.studies import cells, number, of, scored
from tests.synthetic import make_episode


def test_every_published_table_is_there_with_its_source() -> None:
    assert {path.name for path in FOLDER.glob("*.csv")} == {f"{name}.csv" for name in FILES.values()}
    about = (FOLDER / "README.md").read_text()
    assert "2608.21027" in about
    for name, file in FILES.items():
        assert f"`{file}.csv`" in about
        assert published(name)
    assert len(published("table1")) == 45
    with pytest.raises(UsageError, match="table1"):
        published("table12")


def test_the_papers_own_claims() -> None:
    """Sections 4.2 and 4.3: 1.38 on average, seven of nine under 1.5, best in nine of nine."""
    found = claims(paper_settings(), "COTA")
    assert found.mean_avg_t is not None
    assert round(found.mean_avg_t, 2) == 1.38
    assert (found.under, found.timed) == (7, 9)
    assert (found.best, found.compared) == (9, 9)


def as_measured(row: dict[str, str]) -> Performance:
    """A published row in the shape in which ours are reported."""
    graded = row["unit"] == "mean_reward"
    performance = float(row["performance"]) / (1 if graded else 100)
    return Performance(
        method=row["method"].lower(),
        actor=row["actor"],
        environment=row["environment"],
        metric="mean_reward" if graded else "success_rate",
        scored=Estimate(performance, None, None, 1, 1),
        zeros=EMPTY,
        avg_t=Estimate(float(row["avg_t"]), None, None, 1, 1),
        planned=1,
        missing=0,
        errors=0,
        unscored=0,
        simulated=(),
        skipped="",
        plugin=row["method"].lower(),
    )


def test_report_code_run_on_published_numbers() -> None:
    """The path that ours take, from performances to claims, gives the paper's sentences from the paper's numbers."""
    found = our_settings([as_measured(dict(row)) for row in published("table1")])
    assert {item.method for item in found} == {"Origin", "COTA", "Self-Reflection", "AgentPRM", "Asym-AC"}
    assert claims(found, "COTA") == claims(paper_settings(), "COTA")
    assert claims(found, "Origin").best == 0


def test_claims_do_not_count_what_is_not_known() -> None:
    rows = [
        Setting("a", "x", "COTA", 0.5, 1.2),
        Setting("a", "x", "Origin", 0.5, 1.0),
        Setting("b", "x", "COTA", 0.6, None),
        Setting("b", "x", "Origin", None, 1.0),
        Setting("c", "x", "COTA", 0.7, 1.6),
    ]
    found = claims(rows, "COTA")
    assert (found.settings, found.timed, found.under, found.compared, found.best) == (3, 2, 1, 1, 0)
    assert claims([], "COTA").mean_avg_t is None


def official(method: str = "cota", tasks: int = 500) -> list[PlannedCell]:
    """WebShop as the paper ran it: official catalogue, 500 tasks, 20 steps, Qwen3-8B."""
    plan = cells(methods=("origin", method), actors=("qwen",), environments=("webshop",), seeds=(0,), tasks=tasks)
    more = {"actor.params.model": "Qwen/Qwen3-8B", "environment.params.catalogue": "official"}
    return [replace(c, params={**c.params, **more}) for c in plan]


def real(cell: PlannedCell, task: str, reward: float, **changes: object) -> object:
    return scored(cell, task, reward, simulated=(), steps=1, **changes)


def one(found: list[Beside], table: str, quantity: str, start: str = "COTA") -> Beside:
    (line,) = [b for b in found if (b.table, b.quantity) == (table, quantity) and b.setting.startswith(start)]
    return line


def test_inside_and_outside() -> None:
    def change(cell: PlannedCell, task: str) -> object:
        if cell.method == "cota":
            return real(cell, task, (0.0, 0.5, 0.75, 1.0)[number(task) % 4])
        return real(cell, task, 0.25 * (number(task) % 2))

    found = everything(of(official(), change))  # type: ignore[arg-type]
    ours = one(found, "table1", "mean reward")
    assert ours.theirs == 0.563
    assert ours.ours.value == 0.5625
    assert ours.verdict == "inside"
    assert ours.difference == pytest.approx(-0.0005)
    assert one(found, "table1", "mean reward", "Origin").verdict == "outside"
    assert one(found, "table3", "tasks", "qwen").verdict == "same"
    assert one(found, "table11", "success, %").verdict in ("inside", "outside")


@pytest.mark.parametrize(
    ("why", "change"),
    [
        ("simulated actor", {}),
        ("other model (Qwen/Qwen3-4B)", {"actor.params.model": "Qwen/Qwen3-4B"}),
        ("generated catalogue", {"environment.params.catalogue": "synthetic"}),
        ("other step limit (8, not 20)", {"environment.max_steps": 8}),
    ],
)
def test_why_not_comparable(why: str, change: dict[str, object]) -> None:
    plan = [replace(c, params={**c.params, **change}) for c in official()]
    source = of(plan, lambda c, t: scored(c, t, 0.5, steps=1) if not change else real(c, t, 0.5))  # type: ignore[arg-type]
    for group in groups(source):
        assert reasons(group) == [why]
    assert one(everything(source), "table1", "mean reward").verdict == f"not comparable: {why}"


def test_other_panels_and_gaps_are_not_comparable() -> None:
    short = of(official(tasks=100), lambda c, t: real(c, t, 0.5))  # type: ignore[arg-type]
    assert reasons(groups(short)[1]) == ["other panel (100 tasks, not 500)"]
    gap = of(official(), lambda c, t: None if number(t) == 3 else real(c, t, 0.5))  # type: ignore[arg-type]
    assert reasons(groups(gap)[1]) == ["incomplete (499 of 500 scored)"]
    empty = of(official(), lambda c, t: make_episode(c, t, "failed", simulated=(), steps=1))
    assert one(everything(empty), "table1", "mean reward").verdict == "not comparable: nothing scored"


def test_a_customer_played_by_a_model_is_as_in_the_paper() -> None:
    plan = cells(methods=("origin",), actors=("Qwen3-8B",), environments=("retail",), seeds=(0,), tasks=40)
    plan = [replace(c, params={**c.params, "environment.max_steps": 100}) for c in plan]

    def source(user: str) -> Tracked:
        return of(plan, lambda c, t: scored(c, t, 1.0, simulated=(user,)))

    assert reasons(groups(source("LLM user"))[0]) == []
    assert reasons(groups(source("user"))[0]) == ["simulated user"]
    assert "does not name the model" in render.markdown(build(source("LLM user")))


def test_actors_are_matched_by_model() -> None:
    (cell, *_) = official()
    assert published_actor(cell) == "Qwen3-8B"
    assert published_actor(replace(cell, actor="Qwen3.6-35B-A3B", params={})) == "Qwen3.6-35B-A3B"
    assert published_actor(replace(cell, actor="weak", params={})) is None


def test_the_table_names_each_reason_once() -> None:
    plan = cells(methods=("origin", "cota"), actors=("weak",), tasks=3)
    table = build(of(plan))
    text = render.markdown(table)
    assert "not comparable (a)" in text
    assert "(a) Not comparable: simulated actor, generated catalogue, other panel (3 tasks, not 500)." in text
    assert "The paper on COTA: mean Avg. T 1.38 over 9 settings, 7 under 1.5; highest performance in 9 of 9" in text
    assert all(str(row["verdict"]).startswith(("not comparable: ", "same", "other")) for row in table.data)
    with pytest.raises(UsageError, match="paper"):
        against_tables(of(plan), "papers")


def test_measures_beside_theirs() -> None:
    rows = (
        {"environment": "webshop", "target": "A/B/T", "physical_pairs": 35117, "train": 100},
        {"environment": "webshop", "target": "A/B", "physical_pairs": 7},
    )
    seventh = {"environment": "WebShop", "spearman": 0.6, "spearman_lo": 0.5, "spearman_hi": 0.7, "bce": None}
    made = [
        Measure("table4", rows, "x", ("webshop: branches with simulated actor.",)),
        Measure("table7", (seventh,), "x", ("webshop: base model Qwen/Qwen2.5-0.5B-Instruct, 2 continuations.",)),
        Measure("table10", ({"environment": "webshop", "total_hours": 80.0, "hardware": "2 cores"},), "x"),
    ]
    found = [b for b in everything(of(official(tasks=2), measures=made)) if b.table in ("table4", "table7", "table10")]
    assert [(b.table, b.quantity, b.theirs, b.ours.value) for b in found] == [
        ("table4", "physical pairs", 35117.0, 35117.0),
        ("table4", "train", 55856.0, 100.0),
        ("table7", "spearman", 0.618, 0.6),
        ("table10", "total h200 hours", 81.36, 80.0),
    ]
    assert [b.verdict for b in found] == [
        "not comparable: simulated source",
        "not comparable: simulated source",
        "inside",
        "not comparable: other hardware (2 cores)",
    ]


def test_unprinted_values_are_no_zeros() -> None:
    assert value("") is None
    assert [row["advisor_tokens_millions"] for row in published("table11")] == ["", "97.255"]
    plan = cells(methods=("origin", "cota"), actors=("weak",), environments=("webshop",), seeds=(0,), tasks=2)
    quantities = [b.quantity for b in everything(of(plan)) if b.table == "table11" and b.setting.startswith("Origin")]
    assert "advisor tokens, M" not in quantities
    assert measure(of(plan))
