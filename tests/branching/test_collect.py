"""Branch collection: verified prefixes, what a branch is, determinism, resume after a kill, refusals."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from harness.actors.mock import MockActor
from harness.actors.simulated import SimulatedActor
from harness.environments.mock import MockEnvironment
from harness.errors import UsageError
from harness.loop import Limits, Streams
from methods.branching import collect as module
from methods.branching.collect import UNITS, collect, evaluation_panel, read_about
from methods.branching.export import TABLES
from methods.branching.points import count_points
from methods.branching.recordfile import RecordFile
from methods.branching.rollouts import BranchStreams
from methods.branching.spec import Throughput, make_spec
from methods.branching.splits import LeakError
from methods.branching.tables import read_rows
from methods.branching.unit import Bench, collect_unit
from methods.candidates.environment import EnvironmentCandidates
from tests.branching.helpers import SEQUENTIAL, Drifting, Leaky, NoSnapshots, branched, corridor

ROOT = Path(__file__).parents[2]


def unit(environment: MockEnvironment, actor: Any = None, **changes: Any) -> dict[str, Any]:
    spec = corridor(**changes)
    limits = Limits(spec.budget(environment), replans=0)
    actor = actor or SimulatedActor("weak")
    return collect_unit(Bench(spec, environment, actor, EnvironmentCandidates(), limits), "train-0", 0)


def tables(folder: Path) -> dict[str, bytes]:
    return {name: (folder / f"{name}.parquet").read_bytes() for name in TABLES}


def timeless(record: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in record.items() if key not in ("seconds", "attempt")}


def test_shape_of_a_unit() -> None:
    record = unit(MockEnvironment(5), continuations=3)
    assert record["status"] == "done"
    assert len(record["views"]) == len(record["turns"]) == record["base"]["steps"]
    assert len(record["points"]) == record["chosen"] == count_points(record["base"]["steps"])
    for point in record["points"]:
        base, *others = point["branches"]
        assert base["base"]
        assert base["canonical"] == record["turns"][point["step"]][1]
        assert {b["canonical"] for b in others} == {"left", "right", "wait"} - {base["canonical"]}
        assert all(len(b["returns"]) == 3 for b in point["branches"])
        assert all(point["step"] + max(b["lengths"]) <= 9 for b in point["branches"])
    assert set(record["seconds"]) == {"base", "branch", "verify"}


def test_returns_are_those_of_the_continued_episode() -> None:
    """An actor that always goes right reaches the end iff enough steps remain after the branch action."""
    record = unit(MockEnvironment(5), MockActor("right"), max_steps=5)
    for point in record["points"]:
        returns = {branch["action"]: branch["returns"] for branch in point["branches"]}
        assert returns == {"right": [1.0, 1.0], "wait": [0.0, 0.0], "left": [0.0, 0.0]}


def test_a_prefix_that_does_not_reproduce_is_dropped_and_counted() -> None:
    record = unit(Drifting(8), MockActor("right"), max_steps=12)
    assert [point["step"] for point in record["points"]] in ([0], [1])
    assert record["dropped"]["prefix not reproduced"] >= 2
    assert sum(record["dropped"].values()) == record["chosen"] - 1 == 3


def test_a_snapshot_that_leaks_between_branches_is_caught() -> None:
    record = unit(Leaky(8), MockActor("right"), max_steps=12)
    assert record["points"] == []
    assert record["dropped"]["base action not reproduced"] == record["chosen"] > 0


def test_without_snapshots_replay_gives_the_same_branches() -> None:
    assert timeless(unit(NoSnapshots(5))) == timeless(unit(MockEnvironment(5)))


def test_siblings_share_streams_and_continuations_do_not() -> None:
    one, two = (BranchStreams("mock", "train-0", 7, (), m) for m in (0, 1))
    base = Streams("mock", "train-0", 7)
    assert one.seed_for("actor", 4) != two.seed_for("actor", 4) != base.seed_for("actor", 4)
    assert one.seed_for("actor") == two.seed_for("actor") == base.seed_for("actor")
    assert one == BranchStreams("mock", "train-0", 7, (), 0)


def test_same_seed_same_bytes_in_any_number_of_processes(tmp_path: Path) -> None:
    first, again, spread, other = (tmp_path / name for name in "abcd")
    for folder in (first, again):
        assert branched(folder, tasks=12).complete
    branched(spread, Throughput(workers=2, backend="threading"), tasks=12)
    branched(other, tasks=12, seed=1)
    assert tables(first) == tables(again) == tables(spread)
    assert tables(first)["branches"] != tables(other)["branches"]


KILLED = """
import os, signal, sys
from pathlib import Path
from methods.branching.collect import collect
from tests.branching.helpers import SEQUENTIAL, corridor
def progress(done, total, record):
    if done == 7:
        os.kill(os.getpid(), signal.SIGKILL)
collect(corridor(tasks=12), Path(sys.argv[1]), SEQUENTIAL, progress)
"""


def test_killed_and_called_again_gives_what_an_undisturbed_run_gives(tmp_path: Path) -> None:
    ended = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path / "a")], cwd=ROOT, check=False, timeout=60)
    assert ended.returncode == -signal.SIGKILL
    units = tmp_path / "a" / UNITS
    units.write_bytes(units.read_bytes()[:-5])  # and the last record was only half written
    assert len(RecordFile(units)) == 6
    seen: list[int] = []
    collect(corridor(tasks=12), tmp_path / "a", SEQUENTIAL, lambda done, total, record: seen.append(total))
    assert seen == [6] * 6
    branched(tmp_path / "b", tasks=12)
    assert tables(tmp_path / "a") == tables(tmp_path / "b")


def test_a_finished_folder_has_nothing_to_do_and_can_grow(tmp_path: Path) -> None:
    branched(tmp_path, tasks=5)
    seen: list[str] = []
    for tasks in (5, 7):
        collect(corridor(tasks=tasks), tmp_path, SEQUENTIAL, lambda done, total, record: seen.append(record["key"]))
    assert seen == ["train-5#0", "train-6#0"]


def test_failed_units_are_recorded_and_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = module.collect_unit

    def sometimes(bench: Bench, task_id: str, trajectory: int, attempt: int = 1) -> dict[str, Any]:
        if task_id == "train-2" and attempt == 1:
            raise ZeroDivisionError("boom")
        return real(bench, task_id, trajectory, attempt)

    monkeypatch.setattr(module, "collect_unit", sometimes)
    first = branched(tmp_path, tasks=4)
    assert first.statuses == {"done": 3, "failed": 1}
    assert first.reasons == {"harness: ZeroDivisionError: boom": 1}
    assert not first.complete
    assert branched(tmp_path, tasks=4).statuses == {"done": 4}


def test_another_identity_in_the_folder_is_refused_with_the_keys(tmp_path: Path) -> None:
    branched(tmp_path, tasks=2)
    with pytest.raises(UsageError, match=r"continuations: 2 there, 3 now.*seed: 0 there, 9 now"):
        branched(tmp_path, tasks=2, continuations=3, seed=9)


def test_evaluation_tasks_are_refused(tmp_path: Path) -> None:
    with pytest.raises(LeakError, match="evaluation panel"):
        branched(tmp_path, split="validation")
    assert not list(tmp_path.iterdir())


def test_the_panel_is_what_the_data_holds_unless_splits_are_named() -> None:
    class TestOnly(MockEnvironment):
        def tasks(self, split: str) -> Sequence[str]:
            if split != "test":
                raise UsageError(f"no split {split}")
            return super().tasks(split)

    assert len(evaluation_panel(TestOnly(), None).ids) == 100
    assert len(evaluation_panel(MockEnvironment(), None).fingerprints) == 200
    with pytest.raises(UsageError, match="no split validation"):
        evaluation_panel(TestOnly(), ("validation", "test"))


def test_misspelt_settings_say_what_is_valid() -> None:
    with pytest.raises(UsageError, match=r"continuation: Extra inputs.*Keys: environment, actor"):
        make_spec({"environment": "mock", "actor": "simulated", "continuation": 2})
    with pytest.raises(UsageError, match="Unknown actor 'simulatd'"):
        make_spec({"environment": "mock", "actor": "simulatd"})


def test_tables_and_card(tmp_path: Path) -> None:
    card = branched(tmp_path, tasks=6).card
    rows = list(read_rows(tmp_path / "branches.parquet"))
    assert card["counts"]["branches"] == len(rows)
    assert card["verified_share"] == 1.0
    assert card["simulated"] == ["actor", "environment"]
    assert set(card["seconds"]) == {"base", "verify", "branch"}
    assert all(row["q"] == sum(row["returns"]) / len(row["returns"]) for row in rows)
    assert "I think" not in json.dumps(rows)
    assert len(read_about(tmp_path)["panel"]["ids"]) == 200
    assert "**Simulated:** actor, environment." in (tmp_path / "README.md").read_text()


@pytest.mark.models
def test_loads_with_datasets(tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    branched(tmp_path / "data", tasks=3)
    files = str(tmp_path / "data" / "branches.parquet")
    loaded = datasets.load_dataset("parquet", data_files=files, cache_dir=str(tmp_path / "cache"))["train"]
    named = datasets.load_dataset(str(tmp_path / "data"), "steps", cache_dir=str(tmp_path / "cache"))["train"]
    assert set(loaded.column_names) == set(TABLES["branches"])
    assert set(named.column_names) == set(TABLES["steps"])
