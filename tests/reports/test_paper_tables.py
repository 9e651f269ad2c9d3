"""Tables 2 to 11, figure 1 and the tables beyond the paper: numbers by hand from made-up studies."""

from __future__ import annotations

from dataclasses import replace
from math import comb

import pytest
from scipy import stats as scipy_stats

from harness.errors import UsageError
from harness.measures import Measure
from harness.records import Action, Candidate, Episode, Review, Usage, Vote
from harness.tracking.plan import PlannedCell
from reports import render
from reports.contrasts import contrasts
from reports.table import Column, Entry, Table
from reports.tables import (
    absent,
    build_all,
    comparator,
    diversity,
    figure1,
    iqm,
    paired,
    passk,
    table2,
    table3,
    table4,
    table5,
    table7,
    table8,
    table9,
    table10,
    table11,
)
from tests.reports.studies import TWO_BY_TWO, cells, number, of, scored
from tests.synthetic import make_episode, planned_cells

ONE = {"actors": ("weak",), "environments": ("webshop",), "seeds": (0,)}


def row(table: Table | None, **wanted: object) -> dict[str, object]:
    assert table is not None
    found = [data for data in table.data if all(data[key] == value for key, value in wanted.items())]
    assert len(found) == 1, found
    return dict(found[0])


def test_table2_places_each_method_by_what_it_is() -> None:
    plan = cells(methods=("origin", *TWO_BY_TWO), tasks=4, **ONE)
    plan = [replace(c, method="ours") if c.method == "cota" else c for c in plan]
    rewards = {"agentprm": 0.25, "absq-constructive": 0.5, "pairwise-forced": 0.375, "ours": 0.75}
    table = table2.build(of(plan, lambda c, t: scored(c, t, rewards.get(c.method, 0.125))))
    assert table is not None
    assert [(r["objective"], r["intervention"], r["method"], r["performance_scored"]) for r in table.data] == [
        ("absolute_q", "forced", "agentprm", 0.25),
        ("absolute_q", "constructive", "absq-constructive", 0.5),
        ("pairwise", "forced", "pairwise-forced", 0.375),
        ("pairwise", "constructive", "ours", 0.75),
    ]
    assert table2.build(of(cells(methods=("origin", "cota"), tasks=2, **ONE))) is None


def test_table3_says_what_was_run() -> None:
    plan = cells(methods=("origin", "cota"), actors=("weak",), environments=("retail",), seeds=(0, 1, 2), tasks=4)
    plan = [replace(c, skipped="two repeats") if c.seed == 2 else c for c in plan]
    found = row(table3.build(of(plan)), environment="retail")
    assert (found["tasks"], found["repeats"], found["max_steps"], found["panel"]) == (4, 2, 20, "0123abcd")


def test_table5_compares_operating_points_of_cota() -> None:
    plan = cells(methods=("origin", "cautious", "active"), tasks=4, **ONE)
    params = {"cautious": {"method.params.r": 4}, "active": {"method.params.r": 1}}
    plan = [
        replace(c, params={**c.params, "method.plugin": "cota", "method.params.k": 4, **params[c.method]})
        if c.method in params
        else c
        for c in plan
    ]
    source = of(plan, lambda c, t: scored(c, t, 1.0 if c.method == "active" and number(t) < 3 else 0.5))
    table = table5.build(source)
    best = row(table, configuration="active")
    assert (best["k"], best["r"], best["mean_reward"], best["success"]) == (4, 1, 0.875, 0.75)
    assert row(table, configuration="cautious")["success"] == 0.0
    assert table is not None
    assert "active (K=4, R=1; 0.8750)" in render.markdown(table)
    assert table5.build(of(cells(methods=("origin", "cota"), tasks=2, **ONE))) is None


def reviewed(cell: PlannedCell, task: str, fired: int, quiet: int, answers: tuple[str, ...] = ()) -> Episode:
    """One step with so many reviews that fired and that did not; `answers` are those to the fired ones."""
    action = Action("look", "look")
    candidate = Candidate(Action("take", "take"), "environment")
    yes = [
        Review(
            action,
            candidates=(candidate,),
            votes=(Vote(0, "B", "A", True),),
            fired=True,
            response=answers[i] if i < len(answers) else None,  # type: ignore[arg-type]
        )
        for i in range(fired)
    ]
    base = make_episode(cell, task, steps=1)
    step = replace(base.steps[0], reviews=(*yes, *(Review(action) for _ in range(quiet))))
    return replace(base, steps=(step,))


def test_table8_forced_against_selective() -> None:
    plan = cells(methods=("origin", "agentprm", "absq-constructive"), tasks=4, **ONE)

    def change(cell: PlannedCell, task: str) -> Episode:
        fired = {"agentprm": 3, "absq-constructive": 1}.get(cell.method, 0)
        return reviewed(cell, task, fired, 4 - fired + number(task))

    found = row(table8.build(of(plan, change)), judge="absolute Q")
    # Reviews per task: 4, 5, 6, 7 in both.
    assert (found["forced"], found["selective"]) == (pytest.approx(12 / 22), pytest.approx(4 / 22))
    assert table8.build(of(cells(methods=("origin", "self-reflection"), tasks=2, **ONE))) is None


def test_figure1_counts_answers_to_recommendations() -> None:
    plan = cells(methods=("origin", "cota", "self-reflection"), tasks=2, **ONE)
    answers = {"webshop-0": ("adopt", "adopt", "keep", "novel"), "webshop-1": ("adopt",)}

    def change(cell: PlannedCell, task: str) -> Episode:
        if cell.method != "cota":
            return make_episode(cell, task)
        return reviewed(cell, task, len(answers[task]), 0, answers[task])

    table = figure1.build(of(plan, change))
    found = row(table, method="cota")
    assert (found["replans"], found["adopt"], found["keep"], found["novel"]) == (5, 0.6, 0.2, 0.2)
    assert table is not None
    assert len(table.data) == 1
    assert figure1.build(of(cells(methods=("origin",), tasks=2, **ONE))) is None


def test_table9_joins_judges_and_episodes() -> None:
    plan = cells(methods=("origin", "cota-ab", "cota-abt"), tasks=4, **ONE)
    plan = [replace(c, params={"method.plugin": c.method.partition("-")[0]}) for c in plan]
    rewards = {"cota-ab": (0.0, 0.0, 0.5, 1.0), "cota-abt": (0.0, 0.5, 0.5, 1.0)}
    change = lambda c, t: scored(c, t, rewards.get(c.method, (0.0,) * 4)[number(t)])  # noqa: E731
    measure = Measure(
        "table9",
        (
            {
                "training_target": "A/B",
                "method": "cota-ab",
                "preference_consistency_pct": 40.0,
                "valid_output_pct": 86.0,
            },
            {"training_target": "A/B/T", "method": "cota-abt", "preference_consistency_pct": None, "n": 20},
        ),
        "cota-bench evaluate-judge x",
        ("tiny: base model tiny",),
    )
    table = table9.build(of(plan, change, [measure]))
    first = row(table, training_target="A/B")
    assert (first["end_reward"], first["zero_reward"], first["preference_consistency_pct"]) == (0.375, 0.5, 40.0)
    assert row(table, training_target="A/B/T")["preference_consistency_pct"] is None
    assert table is not None
    assert "tiny: base model tiny" in table.notes
    # Without the measure the episodes are found by their labels, and the command is named.
    alone = table9.build(of(plan, change))
    assert row(alone, training_target="A/B/T")["end_reward"] == 0.5
    assert alone is not None
    assert "evaluate-judge" in " ".join(alone.notes)
    assert table9.build(of(cells(methods=("origin", "cota"), tasks=2, **ONE))) is None


def test_table11_bills_what_was_paid_and_keeps_unknown_unknown() -> None:
    plan = cells(methods=("origin", "cota"), tasks=2, **ONE)
    plan = [replace(c, params={**c.params, "actor.params.model": "deepseek-v4-flash"}) for c in plan]
    spent = Usage(
        3, 1_000_000, 100_000, cached=200_000, reasoning=40_000, saved_prompt=500_000, saved_completion=50_000
    )

    def change(cell: PlannedCell, task: str) -> Episode:
        advisor = Usage(1, None, 5) if cell.method == "cota" and task == "webshop-1" else Usage(1, 600, 6)
        advisor = Usage() if cell.method == "origin" else advisor
        return scored(cell, task, 1.0, usage={"actor": spent, "advisor": advisor}, wall_s=1800.0, started_at=1.785e9)

    table = table11.build(of(plan, change))
    base, ours = row(table, method="origin"), row(table, method="cota")
    assert base["actor_prompt_tokens"] == 2_000_000
    assert base["actor_reasoning_tokens"] == 80_000
    assert base["actor_billed_prompt_tokens"] == 1_000_000
    assert base["actor_tokens_millions"] == 2.2
    assert base["episode_time_hours"] == 1.0
    # July 2026: 0.14 a million, 0.0028 from the provider's cache, 0.28 for completions.
    assert base["cost_usd_full"] == pytest.approx(2 * (0.8 * 0.14 + 0.2 * 0.0028 + 0.1 * 0.28))
    assert base["cost_usd_billed"] == pytest.approx(2 * ((0.8 * 0.14 + 0.2 * 0.0028) / 2 + 0.05 * 0.28))
    assert ours["advisor_tokens_millions"] is None
    assert ours["cost_usd_full"] is None
    assert table is not None
    assert "did not report" in " ".join(table.notes)


def test_measures_become_tables() -> None:
    made = [
        Measure("table4", ({"environment": "webshop", "physical_pairs": 3482, "train": 5560},), "cota-bench pairs x"),
        Measure(
            "table7",
            ({"environment": "webshop", "spearman": 0.5, "spearman_lo": 0.4, "spearman_hi": 0.6, "bce": None, "n": 9},),
            "cota-bench evaluate-judge x",
        ),
        Measure("table10", ({"environment": "webshop", "total_hours": 0.25, "hardware": "2 cores"},), "y", ("CPU.",)),
        Measure(
            "comparator", ({"environment": "webshop", "accuracy_pct": 61.5, "accuracy_pct_n": 8, "x_pct": 0.5},), "y"
        ),
        Measure("diversity", ({"sampler": "actor", "distinct_actions_mean": 2.28, "actor": "hot"},), "y"),
    ]
    source = of(cells(methods=("origin",), tasks=1, **ONE), measures=made)
    seventh = table7.build(source)
    assert seventh is not None
    assert "| webshop | 0.500 [0.400, 0.600] | – | 9 |" in render.markdown(seventh)
    heads = [column.head for column in (comparator.build(source) or seventh).columns]
    assert heads == ["Environment", "Accuracy (%)", "X (%)"]
    tenth = table10.build(source)
    assert tenth is not None
    assert "CPU." in tenth.notes
    assert "Measured by y." in tenth.caption
    built = {table.name for table in build_all(source)}
    assert built >= {"table4", "table7", "table10", "comparator", "diversity"}
    assert {m.build(source) is None for m in (table4, comparator, diversity)} == {False}
    assert "cota-bench run demo" in absent(source)["table6"]


def test_paired_table_by_hand() -> None:
    """Differences, McNemar and Holm computed here, without any of the code under test."""
    plan = cells(
        methods=("origin", "cota", "agentprm"), actors=("weak",), environments=("alfworld",), seeds=(0,), tasks=20
    )

    def change(cell: PlannedCell, task: str) -> Episode:
        wins = {"origin": number(task) < 6, "cota": number(task) < 15, "agentprm": 3 <= number(task) < 8}
        return scored(cell, task, float(wins[cell.method]))

    table = paired.build(of(plan, change))
    cota, prm = row(table, method="cota"), row(table, method="agentprm")
    assert (cota["difference_scored"], cota["wins"], cota["ties"], cota["losses"]) == (0.45, 9, 11, 0)
    assert (prm["difference_scored"], prm["wins"], prm["losses"]) == (pytest.approx(-0.05), 2, 3)
    p = [scipy_stats.binomtest(9, 9).pvalue, scipy_stats.binomtest(2, 5).pvalue]
    assert [cota["p"], prm["p"]] == [pytest.approx(value) for value in p]
    assert cota["p_holm"] == pytest.approx(2 * p[0])
    assert prm["p_holm"] == pytest.approx(p[1])
    assert cota["test"] == "McNemar"


def test_two_by_two_contrasts_and_their_interaction() -> None:
    plan = cells(methods=("origin", *TWO_BY_TWO), tasks=6, **ONE)
    rewards = {"agentprm": 0.25, "absq-constructive": 0.375, "pairwise-forced": 0.5, "cota": 0.875}
    source = of(plan, lambda c, t: scored(c, t, rewards.get(c.method, 0.125)))
    found = {(c.ours, c.base): c.result.difference.value for c in contrasts(source) if c.kind == "2x2"}
    assert found == {
        ("cota", "pairwise-forced"): 0.375,
        ("absq-constructive", "agentprm"): 0.125,
        ("cota", "absq-constructive"): 0.5,
        ("pairwise-forced", "agentprm"): 0.25,
        ("cota − pairwise-forced", "absq-constructive − agentprm"): 0.25,
    }
    assert len(contrasts(source)) == 9


def test_both_conventions_of_a_difference() -> None:
    plan = cells(methods=("origin", "cota"), tasks=4, **ONE)

    def change(cell: PlannedCell, task: str) -> Episode:
        if cell.method == "cota" and number(task) == 0:
            return make_episode(cell, task, "failed")
        return scored(cell, task, 0.5 if cell.method == "origin" else 1.0)

    table = paired.build(of(plan, change))
    found = row(table, method="cota")
    assert (found["difference_scored"], found["difference_scored_n"]) == (0.5, 3)
    assert (found["difference_errors_zero"], found["difference_errors_zero_n"]) == (0.25, 4)
    assert table is not None
    text = render.markdown(table)
    assert "errors counted as 0" in text
    assert "+0.500†" in text
    assert "3/4" in text


def test_passk_counts_seeds_of_a_task() -> None:
    plan = cells(methods=("origin",), actors=("weak",), environments=("retail",), seeds=(0, 1, 2), tasks=2)
    won = {("retail-0", 0): 1.0, ("retail-0", 1): 1.0, ("retail-1", 2): 1.0}
    table = passk.build(of(plan, lambda c, t: scored(c, t, won.get((t, c.seed), 0.0))))
    by_hand = {k: (comb(2, k) + comb(1, k)) / comb(3, k) / 2 for k in (1, 2, 3)}
    for k, value in by_hand.items():
        assert row(table, k=k)["pass_hat_k"] == pytest.approx(value)
    assert table is not None
    assert "not pass@k" in table.caption[0]
    single = cells(methods=("origin",), actors=("weak",), environments=("retail",), seeds=(0,), tasks=2)
    assert passk.build(of(single)) is None


def test_iqm_table() -> None:
    plan = cells(methods=("origin",), tasks=8, **ONE)
    rewards = (0.0, 0.0, 0.25, 0.5, 0.5, 0.75, 1.0, 1.0)
    found = row(iqm.build(of(plan, lambda c, t: scored(c, t, rewards[number(t)]))), method="origin")
    assert (found["iqm"], found["zero_share"], found["one_share"]) == (0.5, 0.25, 0.25)


EDGES = {
    "all failed": lambda c, t: make_episode(c, t, "failed") if c.method == "cota" else make_episode(c, t),
    "everything failed": lambda c, t: make_episode(c, t, "failed"),
    "one episode": lambda c, t: make_episode(c, t) if number(t) == 0 and c.seed == 0 else None,
    "missing seed": lambda c, t: None if c.seed == 1 and c.method == "cota" else make_episode(c, t),
    "unequal n": lambda c, t: None if number(t) > 1 and c.method == "cota" else make_episode(c, t),
    "zero variance": lambda c, t: scored(c, t, 1.0),
    "nothing scored here": lambda c, t: make_episode(c, t, reward=None, success=None),
    "no episode of cota": lambda c, t: None if c.method == "cota" else make_episode(c, t),
}


@pytest.mark.parametrize("name", EDGES)
def test_every_table_survives(name: str) -> None:
    """Awkward studies give dashes and marks in every format, never a NaN, a crash or a silent number."""
    plan = planned_cells(methods=("origin", "cota", "agentprm"), actors=("weak",), seeds=(0, 1), tasks=3)
    source = of(plan, EDGES[name])
    for table in build_all(source):
        texts = (render.markdown(table), render.latex(table), render.to_csv(table))
        for text in texts:
            assert "nan" not in text.lower().replace("tenant", "")
            assert "inf," not in text
        assert all(len(line) == len(table.columns) for line in table.body), table.name


def test_single_pair_has_no_test() -> None:
    plan = cells(methods=("origin", "cota"), tasks=1, **ONE)
    found = row(paired.build(of(plan, lambda c, t: scored(c, t, 0.5))), method="cota")
    assert (found["p"], found["p_holm"], found["detectable"], found["difference_scored_ci_lo"]) == (None,) * 4


def test_out_of_range_is_refused_by_every_reader() -> None:
    source = of(cells(methods=("origin", "cota"), tasks=2, **ONE), lambda c, t: make_episode(c, t, reward=1.5))
    for module in (paired, iqm, table2):
        with pytest.raises(UsageError, match=r"outside\s+\[0, 1\]"):
            module.build(of(source.cells, lambda c, t: make_episode(c, t, reward=1.5)))


def test_a_long_latex_table_is_cut_into_parts() -> None:
    lines = [[Entry(str(i))] for i in range(50)]
    text = render.latex(Table("t", "Title.", [Column("i")], lines, ["Said once."], ["Noted once."]))
    assert text.count(r"\begin{table}") == text.count(r"\end{table}") == 3
    assert (text.count("Said once."), text.count("Noted once.")) == (1, 1)
    assert [text.count(f"Title ({i} of 3).") for i in (1, 2, 3)] == [1, 1, 1]
    assert all(f"\n{i} \\\\" in text for i in range(50))
