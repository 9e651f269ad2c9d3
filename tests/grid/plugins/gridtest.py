"""Tiny plugins for the tests of grid and scheduler, found through real entry points (also in worker processes)."""

from __future__ import annotations

import ctypes
import os
import random
import signal
import sys
import time
from pathlib import Path
from typing import ClassVar

from harness.environments.mock import MockEnvironment
from harness.protocols import Execute, Withhold
from harness.records import Advice, Ballot, Candidate, Proposal, Review, Usage
from harness.seeds import digest


class Plain:
    """Lets everything pass."""

    paper: ClassVar = {"title": "none", "section": "none", "defaults": "none"}
    needs = frozenset()
    version = "1"
    throughput = frozenset({"pause"})

    def __init__(self, note: str = "", pause: float = 0.0) -> None:
        self.note = note
        self.pause = pause

    def review(self, state, proposal, desk):
        time.sleep(self.pause)
        return Execute(proposal.action, Review(proposal.action))


class Judged:
    """Draws candidates and asks the comparator; advises `right` when it wins."""

    paper: ClassVar = {"title": "none", "section": "none", "defaults": "none"}
    needs = frozenset({"comparator", "candidates"})
    version = "1"

    def __init__(self, k: int = 2) -> None:
        self.k = k

    def review(self, state, proposal, desk):
        drawn = desk.candidates(self.k)
        ballots = desk.comparator().compare(desk.question(), [(c.action, proposal.action) for c in drawn])
        winners = tuple(c.action for c, b in zip(drawn, ballots, strict=True) if b.label == "A")
        review = Review(proposal.action, candidates=drawn, fired=bool(winners), recommended=winners)
        if winners:
            return Withhold(Advice("better", winners), review)
        return Execute(proposal.action, review)


class Judge:
    """Says A for `right`."""

    needs_oracle = False
    throughput = frozenset({"device"})

    def __init__(self, device: str = "cpu", margin: float = 0.5) -> None:
        self.device = device
        self.margin = margin

    def compare(self, question, pairs):
        return [Ballot("A" if a.canonical == "right" else "B") for a, _ in pairs]


class Pool:
    """Environment pool in an order drawn from the desk's seed."""

    def draw(self, desk, k):
        pool = list(desk.pool())
        random.Random(desk.seed).shuffle(pool)
        return [Candidate(action, "t-pool") for action in pool]


class RandomActor:
    """Draws its action from the stream it is given."""

    simulated = True
    estimate: ClassVar = {"calls": 1, "prompt": 10, "completion": 2, "seconds": 0.01}

    def __init__(self, skill: float = 0.5) -> None:
        self.skill = skill

    def propose(self, state, mind):
        rng = random.Random(mind.seed)
        word = "right" if rng.random() < self.skill else rng.choice(["left", "wait"])
        return Proposal(mind.parse(word), f"thought {rng.random()}", Usage(1, 10, 2))

    def replan(self, state, proposal, advice, mind):
        return Proposal(advice.recommended[0] if advice.recommended else proposal.action, "", Usage(1, 12, 2))


class FaultActor(RandomActor):
    """Does something terrible in some task, as often as `times` says (counted in files of `folder`)."""

    def __init__(self, folder: str, fault: str = "raise", task: str = "test-1", times: int = 10**6) -> None:
        super().__init__(1.0)
        self.folder, self.fault, self.task, self.times = folder, fault, task, times

    def propose(self, state, mind):
        if state.task_id == self.task and state.step == 0:
            done = len(list(Path(self.folder).glob(f"{self.task}.*")))
            if done < self.times:
                Path(self.folder, f"{self.task}.{done}").write_text(str(os.getpid()))
                self.strike()
        return super().propose(state, mind)

    def strike(self):
        if self.fault == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        elif self.fault == "exit":
            sys.exit(3)
        elif self.fault == "interrupt":
            raise KeyboardInterrupt
        elif self.fault == "hold":
            ctypes.PyDLL(None).sleep(60)  # holds the interpreter lock
        elif self.fault == "sleep":
            time.sleep(60)
        raise RuntimeError("as asked")


class FileEnvironment(MockEnvironment):
    """Its tasks' content is in a file, one line a task."""

    name = "t-file"
    version = "1"

    def __init__(self, path: str, length: int = 3) -> None:
        super().__init__(length)
        self.path = path

    def tasks(self, split):
        return [f"{split}-{i}" for i in range(len(Path(self.path).read_text().splitlines()))]

    def fingerprint(self, task_id):
        line = Path(self.path).read_text().splitlines()[int(task_id.partition("-")[2])]
        return digest([self.length, task_id, line])
