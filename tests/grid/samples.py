"""Studies and records for the tests of this folder."""

from __future__ import annotations

from dataclasses import replace

from harness.codec import to_json
from harness.ledger import read_episodes
from harness.merge import timeless
from harness.records import Action, Advice, Candidate, Episode, Review, Step, Usage, Vote
from harness.study import Study, parse_study
from harness.yamlfile import loads

BASE = """
study: small
environments: {mock: {params: {length: 3}, tasks: 5, max_steps: 8}}
actors: {weak: {plugin: t-random}, strong: {plugin: t-random, params: {skill: 0.9}}}
judges: {pair: {plugin: t-judge}}
candidates: {pool: {plugin: t-pool}}
methods:
  plain: {plugin: t-plain}
  judged: {plugin: t-judged, comparator: pair, candidates: pool}
seeds: [0, 1]
throughput: {backend: sequential}
"""


def study(text: str = BASE, *changes: tuple[str, str]) -> Study:
    """A study from text, after replacements each of which must apply."""
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    return parse_study(loads(text, "study.yaml"))


def episode(task: str = "test-0", status: str = "done", cell: str = "c" * 16, **more) -> Episode:
    """A full record with two steps."""
    right, left = Action("right", "right"), Action("Left!", "left")
    review = Review(
        left, "hm", (Candidate(right, "pool"),), (Vote(0, "A", "B", True),), (0.25, None), True, "go", (right,),
        "adopt", ("timeout",), 2, Usage(1, None, 3), 0.125,
    )  # fmt: skip
    seconds, usage = {"actor": 0.5, "harness": 0.001}, {"actor": Usage(2, 20, 4), "advisor": Usage(1, None, 3)}
    steps = tuple(
        Step(
            i,
            f"at {i} é \u2028",
            3,
            (review, Review(right)),
            right,
            "why",
            0.0 if i == 0 else None,
            i == 1,
            seconds,
            usage,
        )
        for i in range(2)
    )
    scored = status in ("done", "truncated")
    made = Episode(
        cell, "small", "plain", "weak", "mock", 0, "test", task, status, "because", 1.0 if scored else None,
        True if scored else None, steps, seconds, usage, None if scored else "actor", ("actor",), "go right", "end",
        {"x": 1.5, "y": True, "z": "s"}, 1, 1e9, 0.75,
    )  # fmt: skip
    return replace(made, **more)


def advice() -> Advice:
    return Advice("better", (Action("right", "right"),))


def rows(folder) -> dict[tuple[str, str], dict]:
    """Rows of a results folder by key, times aside; the attempt is an account of the past, not of the outcome."""
    found = {}
    for item in read_episodes(folder):
        data = timeless(to_json(item))
        data.pop("attempt", None)
        assert (item.cell, item.task_id) not in found
        found[(item.cell, item.task_id)] = data
    return found
