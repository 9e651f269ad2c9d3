"""Pairs from branches: both orders, ties, splits, counts, the A/B variant, critic records, leaks."""

from __future__ import annotations

from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest

from harness.errors import UsageError
from methods.branching.pairing import label_of
from methods.branching.pairs import _write, make_pairs
from methods.branching.splits import SPLITS, LeakError, Panel, split_of
from methods.branching.tables import Writer, read_rows
from tests.branching.helpers import branched


@pytest.fixture(scope="module")
def branches(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("branches")
    branched(folder, tasks=80)
    return folder


def rows_in(folder: Path, prefix: str = "") -> list[dict[str, Any]]:
    return [row for split in SPLITS for row in read_rows(folder / f"{prefix}{split}.parquet")]


def test_every_physical_pair_is_there_in_both_orders(branches: Path, tmp_path: Path) -> None:
    counts = make_pairs([branches], tmp_path)
    rows = rows_in(tmp_path)
    by_pair = defaultdict(list)
    for row in rows:
        by_pair[row["pair_id"]].append(row)
    for one, other in by_pair.values():
        assert (one["order"], other["order"]) == (0, 1)
        assert (one["first"], one["q_first"]) == (other["second"], other["q_second"])
        assert (one["view"], one["group"], one["split"]) == (other["view"], other["group"], other["split"])
        assert {one["label"], other["label"]} in ({"A", "B"}, {"T"})
        assert one["label"] == label_of(one["q_first"], one["q_second"], 0.0)
    assert len({row["first"] for row in rows if row["order"] == 0}) > 1
    (table4,) = counts.table4()
    assert table4["physical_pairs"] == len(by_pair)
    assert sum(table4[split] for split in SPLITS) == len(rows) == 2 * len(by_pair)


def test_ties_are_a_fifth_and_all_decisive_pairs_stay(branches: Path, tmp_path: Path) -> None:
    counts = make_pairs([branches], tmp_path)
    for split in SPLITS:
        before = counts.labels["mock", split]
        assert counts.rows["mock", split, "A"] == counts.rows["mock", split, "B"] == before["A"] + before["B"]
    assert counts.tie_share("mock", "train") == pytest.approx(0.2, abs=0.01)
    assert counts.labels["mock", "train"]["T"] > counts.rows["mock", "train", "T"] / 2


def test_tasks_are_where_their_name_says_and_more_tasks_move_none(branches: Path, tmp_path: Path) -> None:
    make_pairs([branches], tmp_path / "many")
    branched(tmp_path / "small", tasks=30)
    make_pairs([tmp_path / "small"], tmp_path / "few")
    few, many = ({r["task_id"]: r["split"] for r in rows_in(tmp_path / name, "critic-")} for name in ("few", "many"))
    assert few.items() <= many.items()
    assert all(split == split_of("mock", task_id) for task_id, split in many.items())
    assert set(many.values()) == set(SPLITS)


def test_no_ties_in_the_ab_variant(branches: Path, tmp_path: Path) -> None:
    abt, ab = make_pairs([branches], tmp_path / "abt"), make_pairs([branches], tmp_path / "ab", ab_only=True)
    assert {row["label"] for row in rows_in(tmp_path / "ab")} == {"A", "B"}
    assert ab.rows["mock", "train", "A"] == abt.rows["mock", "train", "A"]


def test_a_margin_turns_small_differences_into_ties(branches: Path, tmp_path: Path) -> None:
    wide = make_pairs([branches], tmp_path / "wide", margins={"mock": 0.6})
    sharp = make_pairs([branches], tmp_path / "sharp")
    assert wide.labels["mock", "train"]["T"] > sharp.labels["mock", "train"]["T"]
    decisive = [row for row in rows_in(tmp_path / "wide") if row["label"] != "T"]
    assert decisive
    assert all(abs(row["q_first"] - row["q_second"]) > 0.6 for row in decisive)
    with pytest.raises(UsageError, match="margin of mock is -1"):
        make_pairs([branches], tmp_path / "no", margins={"mock": -1})


def test_same_input_same_bytes(branches: Path, tmp_path: Path) -> None:
    for name in ("a", "b"):
        make_pairs([branches], tmp_path / name, seed=3)
    make_pairs([branches], tmp_path / "c", seed=4)
    a, b, c = ((tmp_path / name / "train.parquet").read_bytes() for name in "abc")
    assert a == b != c


def test_critic_records(branches: Path, tmp_path: Path) -> None:
    make_pairs([branches], tmp_path)
    rows = rows_in(tmp_path, "critic-")
    steps = list(read_rows(branches / "steps.parquet"))
    returns = sum(len(row["returns"]) for row in read_rows(branches / "branches.parquet"))
    assert Counter(row["depth"] for row in rows) == {0: len(steps), 1: returns}
    assert all(0 <= row["outcome"] <= 1 and row["remaining"] >= 0 for row in rows)
    last = [row for row in rows if row["depth"] == 0 and row["remaining"] == 0]
    assert len(last) == 80
    assert all(row["step"] + row["remaining"] <= 8 for row in rows)


def test_an_evaluation_task_among_the_branches_fails_loudly_and_writes_nothing(branches: Path, tmp_path: Path) -> None:
    fingerprint = next(read_rows(branches / "steps.parquet"))["fingerprint"]
    for panel in (Panel(frozenset({"train-17"})), Panel(frozenset(), frozenset({fingerprint}))):
        with pytest.raises(LeakError, match="evaluation panel"):
            make_pairs([branches], tmp_path / "out", panels={"mock": panel})
    assert not (tmp_path / "out").exists()


def test_a_leak_in_what_was_written_removes_it(branches: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Splits that depend on more than the task are caught after the fact, whatever the reason."""
    from methods.branching import pairs

    calls = iter(range(10**9))
    monkeypatch.setattr(pairs, "split_of", lambda environment, task: SPLITS[next(calls) % 3])
    with pytest.raises(LeakError):
        make_pairs([branches], tmp_path)
    assert not list(tmp_path.glob("*.parquet"))


def test_nothing_to_learn_is_said(tmp_path: Path) -> None:
    branched(tmp_path / "b", tasks=3, actor={"plugin": "mock", "params": {"action": "wait"}})
    with pytest.raises(UsageError, match="nothing to learn"):
        make_pairs([tmp_path / "b"], tmp_path / "p")
    with pytest.raises(UsageError, match=r"collect.json is missing"):
        make_pairs([tmp_path], tmp_path / "p")


def test_branches_of_two_actors_are_joined(branches: Path, tmp_path: Path) -> None:
    branched(tmp_path / "other", tasks=20, actor={"plugin": "simulated", "params": {"competence": "medium"}})
    both = make_pairs([branches, tmp_path / "other"], tmp_path / "p")
    alone = make_pairs([branches], tmp_path / "q")
    assert both.table4()[0]["physical_pairs"] > alone.table4()[0]["physical_pairs"]


def test_an_interrupted_table_does_not_replace_a_whole_one(tmp_path: Path) -> None:
    columns = {"name": "string"}
    whole = Writer(tmp_path / "t.parquet", columns)
    whole.add({"name": "kept"})
    whole.close()
    with pytest.raises(KeyboardInterrupt):
        _write(tmp_path, "x-", columns, _stopped)
    broken = Writer(tmp_path / "t.parquet", columns)
    broken.add({"name": "lost"})
    broken.discard()
    assert [row["name"] for row in read_rows(tmp_path / "t.parquet")] == ["kept"]
    assert [path.name for path in tmp_path.iterdir()] == ["t.parquet"]


def _stopped(add: Any) -> None:
    add("train", {"name": "half"})
    raise KeyboardInterrupt


def test_a_damaged_table_is_a_message(tmp_path: Path) -> None:
    path = tmp_path / "pairs.parquet"
    path.write_bytes(b"PAR1 is not enough")
    with pytest.raises(UsageError, match=r"pairs\.parquet is damaged .* Remove it"):
        list(read_rows(path))
