"""Diversity: how many distinct actions repeated sampling of the actor gives, against as many candidates (section 4.5).

Prefixes are verified decision points of collected branches, chosen by hash.  One durable record a prefix, in parallel,
resumable by the same call; the rows are made from the records.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.errors import UsageError
from harness.interrupt import shield_worker
from harness.measures import Cell
from harness.registry import create, load
from harness.seeds import digest, seed_of
from methods.branching.collect import UNITS
from methods.branching.diversity_unit import Prefix, SampleBench, sample_unit
from methods.branching.export import state_json
from methods.branching.parallel import forget, kept, run_all
from methods.branching.recordfile import RecordFile
from methods.branching.spec import Plug, Throughput

Progress = Callable[[int, int, dict[str, Any]], None]


@dataclass(frozen=True)
class DiversitySpec:
    """What is compared.

    Attributes:
        environment: plugin of the prefixes.
        actor: who is sampled, usually the source actor at a high temperature.
        candidates: the source that is compared with it.
        samples: how often the actor is asked.
        k: how many candidates are drawn.
        prefixes: how many decision points.
        seed: chooses them.
        trajectory_seed: the seed of the collection, which names the streams of its episodes.
    """

    environment: Plug
    actor: Plug
    candidates: Plug
    samples: int = 8
    k: int = 4
    prefixes: int = 300
    seed: int = 0
    trajectory_seed: int = 0

    def identity(self) -> str:
        """What decides a record, as a hash; the number of prefixes does not."""
        parts = [plug.model_dump(mode="json") for plug in (self.environment, self.actor, self.candidates)]
        return digest([parts, self.samples, self.k, self.trajectory_seed])[:16]


def measure_diversity(
    spec: DiversitySpec, branches: Path, out: Path, throughput: Throughput, progress: Progress | None = None
) -> list[dict[str, Any]]:
    """Sample at every chosen prefix, or go on where an earlier call stopped; the records come back.

    Raises:
        UsageError: no prefixes in `branches`, or another process writes `out`.
    """
    chosen = choose(spec, branches)
    identity = spec.identity()
    with RecordFile(out) as file:
        todo = [(spec, prefix, throughput.call_s) for prefix in chosen if not _finished(file, prefix.key, identity)]
        for done, record in enumerate(run_all(work, todo, throughput), start=1):
            file.append(record | {"diversity": identity})
            if progress is not None:
                progress(done, len(todo), record)
        return [file.read(prefix.key) for prefix in chosen]


def _finished(file: RecordFile, key: str, identity: str) -> bool:
    done = key in file and file.head(key)["status"] not in ("failed", "timeout")
    return done and bool(file.read(key)["diversity"] == identity)


def choose(spec: DiversitySpec, branches: Path) -> list[Prefix]:
    """The prefixes, by hash of their names; all there are when fewer were collected than asked for."""
    if not (branches / UNITS).exists():
        raise UsageError(f"{branches} holds no branches to take prefixes from. Make them with `cota-bench collect`.")
    file = RecordFile(branches / UNITS)
    every = [(key, point["step"]) for key in file.keys() for point in file.read(key).get("points", ())]  # noqa: SIM118
    every.sort(key=lambda named: seed_of(consumer="diversity", seed=spec.seed, key=named[0], step=named[1]))
    if not every:
        raise UsageError(f"{branches} has no verified decision point. Collect more tasks.")
    return list(_prefixes(spec, file, every[: spec.prefixes]))


def _prefixes(spec: DiversitySpec, file: RecordFile, names: Sequence[tuple[str, int]]) -> Iterator[Prefix]:
    for key, step in names:
        record = file.read(key)
        text, canonical, _ = record["turns"][step]
        yield Prefix(
            key=f"{key}@{step}",
            task_id=record["task_id"],
            trajectory=record["trajectory"],
            seed=spec.trajectory_seed,
            step=step,
            state=state_json(record, step),
            thoughts=tuple(record.get("thoughts", ())[:step]),
            action=(text, canonical),
        )


def work(spec: DiversitySpec, prefix: Prefix, call_s: float | None) -> dict[str, Any]:
    """One prefix in this worker; whatever happens, a record."""
    shield_worker()
    try:
        bench = kept((spec.identity(), call_s), lambda: _bench(spec, call_s))
        record = sample_unit(bench, prefix)
        if bench.broken:
            forget(close=False)
    except Exception as error:  # noqa: BLE001  becomes the prefix's record
        forget(close=False)
        record = {"key": prefix.key, "task_id": prefix.task_id, "status": "failed", "boundary": "harness"}
        record |= {"reason": f"{type(error).__name__}: {error}", "attempt": 1}
    return record


def _bench(spec: DiversitySpec, call_s: float | None) -> SampleBench:
    return SampleBench(
        create("environments", spec.environment.plugin, spec.environment.params),
        create("actors", spec.actor.plugin, spec.actor.params),
        create("candidates", spec.candidates.plugin, spec.candidates.params),
        spec.samples,
        spec.k,
        call_s,
    )


def rows(spec: DiversitySpec, records: Sequence[dict[str, Any]]) -> list[dict[str, Cell]]:
    """Two rows in the shape and words of the published figures: actor samples, and candidates; intervals by task."""
    done = [record for record in records if record["status"] == "done"]
    tasks = [record["task_id"] for record in done]
    sampler = "simulated actor, more noise" if simulated(spec) else "actor at high temperature"
    return [
        _row(sampler, spec.samples, [record["samples"] for record in done], tasks),
        _row("COTA candidate mechanism", spec.k, [record["candidates"] for record in done], tasks),
    ]


def simulated(spec: DiversitySpec) -> bool:
    """Whether the samples are those of a simulated actor, where noise plays the part of temperature."""
    return bool(getattr(load("actors", spec.actor.plugin), "simulated", False))


def _row(name: str, asked: int, drawn: Sequence[Sequence[str | None]], tasks: Sequence[str]) -> dict[str, Cell]:
    from methods.training.scores import bootstrap

    distinct = [float(len(set(actions) - {None})) for actions in drawn]
    several = len(set(tasks)) > 1
    mean = sum(distinct) / len(distinct) if distinct else None
    low, high = bootstrap(distinct, tasks) if several else (None, None)
    found: dict[str, Cell] = {"sampler": name, "samples_per_prefix": asked}
    for end, value in (("", mean), ("_lo", low), ("_hi", high)):
        found[f"distinct_actions_mean{end}"] = value
        found[f"unique_action_utilization_pct{end}"] = None if value is None else 100 * value / asked
    # All of them, and all the same: a prefix with a sample that is no action did not collapse to one.
    collapsed = sum(len(actions) == asked and set(actions) == {actions[0]} != {None} for actions in drawn)
    without = sum(action is None for actions in drawn for action in actions)
    return found | {
        "prefixes": len(drawn),
        "prefixes_collapsed_to_one": collapsed,
        "samples_without_action": without,
        "n": len(drawn),
    }
