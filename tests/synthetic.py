"""Synthetic episodes for tests and measurements: shaped like real ones, made of nothing but a seed."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Iterator
from pathlib import Path

from harness.ledger import Ledger
from harness.panels import Panel
from harness.records import SCHEMA_VERSION, Action, Candidate, Episode, Review, Status, Step, Usage, Vote
from harness.seeds import digest, stream
from harness.tracking.plan import PlannedCell

METHODS = ("origin", "self-reflection", "cota")
ACTORS = ("weak", "strong")
ENVIRONMENTS = ("webshop", "alfworld", "retail")


def planned_cells(
    study: str = "demo",
    methods: Iterable[str] = METHODS,
    actors: Iterable[str] = ACTORS,
    environments: Iterable[str] = ENVIRONMENTS,
    seeds: Iterable[int] = (0, 1),
    tasks: int = 6,
) -> list[PlannedCell]:
    """A plan of every combination."""
    return [
        PlannedCell(
            key=digest([study, method, actor, environment, seed])[:16],
            study=study,
            method=method,
            actor=actor,
            environment=environment,
            seed=seed,
            split="test",
            tasks=tuple(f"{environment}-{i}" for i in range(tasks)),
            metric="mean_reward" if environment == "webshop" else "success_rate",
            params={"method.params.k": 4, "environment.version": "1"},
        )
        for environment in environments
        for actor in actors
        for method in methods
        for seed in seeds
    ]


def make_episode(
    cell: PlannedCell, task_id: str, status: Status = "done", steps: int = 4, **changes: object
) -> Episode:
    """One episode of a cell; better with a stronger actor and with cota, slower with reviews."""
    rng = stream(cell=cell.key, task=task_id)
    skill = {"weak": 0.3, "strong": 0.7}.get(cell.actor, 0.5) + (0.15 if cell.method == "cota" else 0.0)
    reward = round(min(1.0, max(0.0, rng.gauss(skill, 0.25))), 4)
    if cell.metric == "success_rate":
        reward = float(rng.random() < skill)
    reward_or_none = None if status not in ("done", "truncated") else reward
    fields: dict[str, object] = {
        "cell": cell.key,
        "study": cell.study,
        "method": cell.method,
        "actor": cell.actor,
        "environment": cell.environment,
        "seed": cell.seed,
        "split": cell.split,
        "task_id": task_id,
        "status": status,
        "reason": "the environment ended the episode",
        "reward": reward_or_none,
        "success": None if reward_or_none is None else reward_or_none >= 1.0,
        "steps": tuple(make_step(cell, rng, i, last=i == steps - 1, reward=reward) for i in range(steps)),
        "seconds": {"actor": 0.4, "environment": 0.1, "advisor": 0.2 if cell.method == "cota" else 0.0},
        "usage": {"actor": Usage(steps, 900, 80, waited_s=0.05), "advisor": Usage(2 * steps, 400, 8)},
        "boundary": "actor" if status in ("failed", "unparsed", "timeout") else None,
        "simulated": ("actor", "user") if cell.environment == "retail" else ("actor",),
        "task": f"Do {task_id}.",
        "final_observation": "The end.",
        "started_at": 1_790_000_000.0 + cell.seed,
        "wall_s": 0.55 + rng.random() + (0.3 if cell.method != "origin" else 0.0),
    }
    return Episode(**(fields | changes))  # type: ignore[arg-type]


def make_step(cell: PlannedCell, rng: random.Random, index: int, *, last: bool, reward: float) -> Step:
    """One step; methods other than origin review it, and cota's gate fires now and then."""
    proposal = Action(f"look at thing {index}", f"look:{index}")
    other = Action(f"take thing {index}", f"take:{index}")
    reviews: tuple[Review, ...] = ()
    executed = proposal
    if cell.method != "origin":
        fired = cell.method == "cota" and rng.random() < 0.5
        answer = rng.choice(("adopt", "keep", "novel")) if fired else None
        first = Review(
            proposal=proposal,
            thought=f"I think looking is right ({index}).",
            candidates=(Candidate(other, "environment"), Candidate(Action("wait", "wait"), "environment")),
            votes=(Vote(0, "A", "B", fired), Vote(1, "T", None, False)),
            fired=fired,
            message="Consider another action." if fired else "",
            recommended=(other,) if fired else (),
            response=answer,  # type: ignore[arg-type]
            fail_open=("tie",) if rng.random() < 0.1 else (),
            comparisons=4,
            usage=Usage(4, 200, 4),
            seconds=0.01,
        )
        reviews = (first,)
        executed = other if answer == "adopt" else proposal
    return Step(
        index=index,
        observation=f"You see thing {index}. " + "A long room. " * 8,
        legal_actions=12,
        reviews=reviews,
        executed=executed,
        thought=f"I think looking is right ({index}).",
        reward=reward if last else 0.0,
        done=last,
        seconds={"actor": 0.1, "environment": 0.02},
        usage={"actor": Usage(1, 200, 20)},
    )


def episodes_of(cells: Iterable[PlannedCell], steps: int = 4) -> Iterator[Episode]:
    """All episodes of a plan, tasks outermost, as a scheduler interleaves them."""
    kept = list(cells)
    for task in range(max(len(cell.tasks) for cell in kept)):
        for cell in kept:
            if task < len(cell.tasks):
                yield make_episode(cell, cell.tasks[task], steps=steps)


def write_ledger(folder: Path, episodes: Iterable[Episode]) -> Path:
    """A results folder with these episodes in its ledger."""
    with Ledger(folder) as ledger:
        for episode in episodes:
            ledger.append(episode)
    return folder


def write_plan(folder: Path, cells: Iterable[PlannedCell]) -> Path:
    """`study.json` and `panels.json` as a run of the study leaves them."""
    kept = list(cells)
    entries = [
        {
            "key": cell.key,
            "method": cell.method,
            "actor": cell.actor,
            "environment": cell.environment,
            "seed": cell.seed,
            "split": cell.split,
            "identity": {"environment": {"plugin": cell.environment}, "method": {"params": {"k": 4}}},
            "tasks": len(cell.tasks),
            "current": True,
        }
        for cell in kept
    ]
    panels = {}
    for cell in kept:
        panel = Panel(cell.environment, "spec", tuple((task, f"print-{task}") for task in cell.tasks))
        panels[cell.environment] = panel.to_json()
    folder.mkdir(parents=True, exist_ok=True)
    run = [entry for entry, cell in zip(entries, kept, strict=True) if not cell.skipped]
    left = [{**entry, "reason": cell.skipped} for entry, cell in zip(entries, kept, strict=True) if cell.skipped]
    study = {"schema": SCHEMA_VERSION, "study": kept[0].study, "resolved": {}, "cells": run, "skipped": left}
    (folder / "study.json").write_text(json.dumps(study))
    (folder / "panels.json").write_text(json.dumps({"schema": SCHEMA_VERSION, "panels": panels}))
    return folder
