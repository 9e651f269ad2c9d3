"""Games for the ALFWorld tests: the shared official ones (skipped when absent), unpacked once, and played prefixes."""

from __future__ import annotations

import functools
import os
import random
import shutil
import tarfile
import tempfile
import weakref
from pathlib import Path

import pytest

from harness.environments.alfworld import AlfWorld
from harness.records import Observation, Outcome

SHARED = Path(os.environ.get("COTA_BENCH_SHARED") or Path(__file__).parents[2] / "../shared/data") / "alfworld"
needs_shared = pytest.mark.skipif(not SHARED.is_dir(), reason=f"no official ALFWorld games at {SHARED}")
_KEEP: list[object] = []


@functools.cache
def official(name: str = "valid_unseen") -> Path:
    """A tree with the games of one archive, removed when the tests end."""
    folder = Path(tempfile.mkdtemp(prefix="alfworld-test-"))
    _KEEP.append(weakref.finalize(_KEEP_ALIVE, shutil.rmtree, folder, ignore_errors=True))
    with tarfile.open(SHARED / f"{name}.tar.xz") as archive:
        archive.extractall(folder, filter="data")
    return folder


class _Token:
    """Lives as long as the test process."""


_KEEP_ALIVE = _Token()


def stratified(env: AlfWorld, split: str, each: int) -> list[str]:
    """The first `each` games of every task type."""
    by_kind: dict[str, list[str]] = {}
    for task in env.tasks(split):
        kind = task.split("/")[1].split("-")[0] if env.games != "embedded" else task.split("-")[-1]
        by_kind.setdefault(kind, []).append(task)
    return [task for tasks in by_kind.values() for task in tasks[:each]]


def wander(env: AlfWorld, steps: int, seed: int, start: Observation) -> list[tuple[str, Outcome]]:
    """Play some sensible and some senseless commands, without winning as long as there is a choice."""
    rng = random.Random(seed)
    played: list[tuple[str, Outcome]] = []
    commands = start.actions
    for _ in range(steps):
        oracle = env.oracle()
        assert oracle is not None
        best = oracle.expert()
        safe = [c for c in commands if oracle.value(env.canonical(c)) < 1.0]
        command = best.text if rng.random() < 0.5 and best.text in safe else rng.choice(safe)
        played.append((command, env.step(env.canonical(command))))
        commands = played[-1][1].observation.actions
    return played
