"""Shortest plans over the true state, without a planner: each task type is a few subgoals in a fixed order.

For every object, receptacle and device that would do, the commands are written down and the shortest list wins.  The
packaged planner needs 4 ms to 27 s for the same (pick-two is the bad case); this takes about a millisecond, so a plan
can be made for the state after each action that is to be valued.  "Shortest" is within these subgoals: fetch, treat,
bring, one object after the other; a plan never takes something else out of the way first, as nothing here is ever in
the way.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from harness.environments.alfworld.world import ABLE, DEVICE, MARK, Goal, Layout, Now


class _Draft:
    """A plan being written, and the part of the state that decides what is needed next."""

    def __init__(self, layout: Layout, now: Now) -> None:
        self.layout = layout
        self.at, self.held = now.at, now.held
        self.inside, self.opened = now.inside, set(now.opened)
        self.moved: dict[str, str] = {}  # where things are that this plan has put somewhere
        self.commands: list[str] = []

    def go(self, place: str) -> None:
        if self.layout.spots[place] != self.at:
            self.commands.append(f"go to {place}")
            self.at = self.layout.spots[place]

    def reach(self, place: str) -> None:
        self.go(place)
        if place in self.layout.openable and place not in self.opened:
            self.commands.append(f"open {place}")
            self.opened.add(place)

    def put(self, place: str) -> None:
        self.reach(place)
        if self.held is not None:
            self.commands.append(f"move {self.held} to {place}")
            self.moved[self.held] = place
        self.held = None

    def fetch(self, thing: str, drop: str | None) -> None:
        """Hold `thing`; what is held instead goes into `drop`."""
        if self.held == thing:
            return
        if self.held is not None and drop is not None:
            self.put(drop)
        place = self.moved.get(thing) or self.inside[thing]
        self.reach(place)
        self.commands.append(f"take {thing} from {place}")
        self.held = thing


def plan(layout: Layout, now: Now, goal: Goal) -> list[str] | None:
    """The shortest commands that win from here (none when it is won), or None when nothing here does."""
    makers = {"look": _look, "two": _two}
    drafts = makers.get(goal.kind, _bring)(layout, now, goal)
    return min((draft.commands for draft in drafts), key=lambda found: (len(found), found), default=None)


def _candidates(layout: Layout, now: Now, goal: Goal) -> list[str]:
    """Objects of the goal's type that can be fetched (or are held) and treated."""
    able = layout.able["pickupable"]
    if goal.kind in ABLE:
        able = able & layout.able[ABLE[goal.kind]]
    there = now.inside.keys() | ({now.held} if now.held else set())
    return sorted(thing for thing in able & there if layout.things[thing] == goal.thing)


def _targets(layout: Layout, goal: Goal) -> list[str]:
    return [place for place in layout.of(goal.place) if (goal.place, goal.thing) in layout.fits]


def _drops(layout: Layout, now: Now, thing: str) -> list[str | None]:
    """Where to leave what is held before `thing` can be taken: here, where `thing` is, or the first place that fits."""
    if now.held is None or now.held == thing:
        return [None]
    fitting = [place for place in sorted(layout.places) if layout.holds(place, now.held)]
    near = {now.at, layout.spots[now.inside[thing]]}
    return [place for i, place in enumerate(fitting) if i == 0 or layout.spots[place] in near] or []


def _bring(layout: Layout, now: Now, goal: Goal) -> Iterator[_Draft]:
    """pick, clean, heat, cool."""
    mark = MARK.get(goal.kind)
    targets = _targets(layout, goal)
    for thing in _candidates(layout, now, goal):
        treated = mark is None or (mark, thing) in now.marks
        if treated and now.inside.get(thing) in layout.of(goal.place):
            yield _Draft(layout, now)
            return
        devices: list[str | None] = [None] if treated else list(layout.of(DEVICE[goal.kind]))
        for device, target, drop in itertools.product(devices, targets, _drops(layout, now, thing)):
            draft = _Draft(layout, now)
            draft.fetch(thing, drop)
            if device is not None:
                draft.go(device)
                draft.commands.append(f"{goal.kind} {thing} with {device}")
            draft.put(target)
            yield draft


def _two(layout: Layout, now: Now, goal: Goal) -> Iterator[_Draft]:
    """Two objects of a type in one receptacle."""
    things = _candidates(layout, now, goal)
    for target in layout.of(goal.place):
        there = [thing for thing in things if now.inside.get(thing) == target]
        missing = 2 - len(there)
        if missing <= 0:
            yield _Draft(layout, now)
            return
        if target not in _targets(layout, goal):
            continue
        for order in itertools.permutations([thing for thing in things if thing not in there], missing):
            for drop in _drops(layout, now, order[0]):
                draft = _Draft(layout, now)
                for thing in order:
                    draft.fetch(thing, drop)
                    draft.put(target)
                yield draft


def _look(layout: Layout, now: Now, goal: Goal) -> Iterator[_Draft]:
    """Hold the object where a lamp is that has been switched on."""
    lamps = sorted(lamp for lamp in layout.able["toggleable"] & now.inside.keys() if layout.things[lamp] == goal.place)
    for lamp, thing in itertools.product(lamps, _candidates(layout, now, goal)):
        for drop in _drops(layout, now, thing):
            draft = _Draft(layout, now)
            draft.fetch(thing, drop)
            draft.go(now.inside[lamp])
            if ("istoggled", lamp) not in now.marks:
                draft.commands.append(f"use {lamp}")
            yield draft
