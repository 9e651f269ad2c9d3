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
        self.opened = set(now.opened)
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

    def fetch(self, thing: str, source: str | None, drop: str | None) -> None:
        """Hold `thing`, taken from `source`; what is held instead goes into `drop`."""
        if self.held == thing:
            return
        if self.held is not None and drop is not None:
            self.put(drop)
        place = self.moved.get(thing) or source
        if place is not None:
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


def _sources(now: Now, thing: str) -> list[str | None]:
    """Receptacles that `thing` can be taken from; None when it is held."""
    return [None] if now.held == thing else [*sorted(now.inside[thing])]


def _drops(layout: Layout, now: Now, thing: str) -> list[str | None]:
    """Where to leave what is held before `thing` can be taken: here, where `thing` is, or the first place that fits."""
    if now.held is None or now.held == thing:
        return [None]
    fitting = [place for place in sorted(layout.places) if layout.holds(place, now.held)]
    near = {now.at, *(layout.spots[place] for place in now.inside[thing])}
    return [place for i, place in enumerate(fitting) if i == 0 or layout.spots[place] in near]


def _bring(layout: Layout, now: Now, goal: Goal) -> Iterator[_Draft]:
    """pick, clean, heat, cool."""
    mark = MARK.get(goal.kind)
    wanted = frozenset(layout.of(goal.place))
    for thing in _candidates(layout, now, goal):
        there = now.inside.get(thing, frozenset())
        treated = mark is None or (mark, thing) in now.marks
        if treated and there & wanted:
            yield _Draft(layout, now)
            return
        devices: list[str | None] = [None] if treated else list(layout.of(DEVICE[goal.kind]))
        for source, device, drop in itertools.product(_sources(now, thing), devices, _drops(layout, now, thing)):
            # What is in a second receptacle of the right type stays in it, and need not be brought there.
            targets = [None] if (there - {source}) & wanted else _targets(layout, goal)
            for target in targets:
                draft = _Draft(layout, now)
                draft.fetch(thing, source, drop)
                if device is not None:
                    draft.go(device)
                    draft.commands.append(f"{goal.kind} {thing} with {device}")
                if target is not None:
                    draft.put(target)
                yield draft


def _two(layout: Layout, now: Now, goal: Goal) -> Iterator[_Draft]:
    """Two objects of a type in one receptacle."""
    things = _candidates(layout, now, goal)
    for target in layout.of(goal.place):
        there = [thing for thing in things if target in now.inside.get(thing, frozenset())]
        missing = 2 - len(there)
        if missing <= 0:
            yield _Draft(layout, now)
            return
        if target not in _targets(layout, goal):
            continue
        for order in itertools.permutations([thing for thing in things if thing not in there], missing):
            ways = itertools.product(_drops(layout, now, order[0]), *(_sources(now, thing) for thing in order))
            for drop, *sources in ways:
                draft = _Draft(layout, now)
                for thing, source in zip(order, sources, strict=True):
                    draft.fetch(thing, source, drop)
                    draft.put(target)
                yield draft


def _look(layout: Layout, now: Now, goal: Goal) -> Iterator[_Draft]:
    """Hold the object where a lamp is that has been switched on."""
    lamps = sorted(lamp for lamp in layout.able["toggleable"] & now.inside.keys() if layout.things[lamp] == goal.place)
    for lamp, thing in itertools.product(lamps, _candidates(layout, now, goal)):
        ways = itertools.product(sorted(now.inside[lamp]), _sources(now, thing), _drops(layout, now, thing))
        for place, source, drop in ways:
            draft = _Draft(layout, now)
            draft.fetch(thing, source, drop)
            draft.go(place)
            if ("istoggled", lamp) not in now.marks:
                draft.commands.append(f"use {lamp}")
            yield draft
