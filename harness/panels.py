"""Panels: which tasks a study runs on, frozen by content.

A panel is a list of (task id, fingerprint); its digest goes into every cell key of its environment.  Making one may
need a heavy environment, so a results folder keeps its panels in `panels.json`, filed under what decides them (plugin,
version, parameters, split, selection).  The rule for believing that file:

* to see what is done and what is left, a kept panel is believed: looking costs nothing, and finished rows stay
  true for the panel they were run on, whatever happened to the data since;
* before any episode is run in an environment, its panel is made anew from the data and compared; a difference is
  refused with the tasks named.  Besides, a worker checks the fingerprint of its task before each episode, because its
  machine may hold other data.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harness import registry
from harness.codec import clean
from harness.errors import UsageError, nearest
from harness.seeds import digest
from harness.study import EnvironmentPart, Study

SHOWN = 5


@dataclass(frozen=True, slots=True)
class Panel:
    """Tasks of one environment in order, each with its content hash; `spec` is the hash of what selected them."""

    environment: str
    spec: str
    tasks: tuple[tuple[str, str], ...]

    @property
    def digest(self) -> str:
        """First 16 hex digits over ids and fingerprints in order; what a study may pin."""
        return digest([list(task) for task in self.tasks])[:16]

    @property
    def ids(self) -> tuple[str, ...]:
        """Task ids in order."""
        return tuple(task for task, _ in self.tasks)

    def to_json(self) -> dict[str, Any]:
        """As stored in `panels.json`."""
        return {"spec": self.spec, "digest": self.digest, "tasks": [list(task) for task in self.tasks]}


def from_json(label: str, data: Mapping[str, Any]) -> Panel:
    """A stored panel. Raises `UsageError` when it does not agree with its own digest."""
    try:
        panel = Panel(label, data["spec"], tuple((str(task), str(print_)) for task, print_ in data["tasks"]))
        fits = panel.digest == data["digest"]
    except (KeyError, TypeError, ValueError) as error:
        raise UsageError(f"The stored panel of {label!r} is damaged ({error!r}); delete panels.json.") from error
    if not fits:
        raise UsageError(f"The stored panel of {label!r} does not have the digest it states; delete panels.json.")
    return panel


def spec_of(part: EnvironmentPart) -> str:
    """Hash of everything in a study that decides which tasks there are."""
    version = getattr(registry.load("environments", part.plugin or ""), "version", "")
    return digest([part.plugin, version, part.params, part.split, part.tasks, part.first])[:16]


def make(label: str, part: EnvironmentPart) -> Panel:
    """Build the environment and take the fingerprints of the selected tasks. Raises `UsageError`."""
    name = part.plugin or ""
    environment = registry.create("environments", name, part.params)
    try:
        ids = select(label, part, task_ids(name, environment, part.split))
        tasks = []
        for task in ids:
            with registry.explained("environments", name, f"fingerprint({task!r})"):
                print_ = environment.fingerprint(task)
            if not isinstance(print_, str) or not print_:
                raise UsageError(f"Environment plugin {name!r}: fingerprint({task!r}) gives {print_!r}, no text.")
            tasks.append((task, print_))
        panel = Panel(label, spec_of(part), tuple(tasks))
    finally:
        with registry.explained("environments", name, "close()"):
            environment.close()
    return panel


def task_ids(name: str, environment: Any, split: str) -> list[str]:
    """The ids of a split. Raises `UsageError` when they are no distinct texts: an episode's row is found by them."""
    with registry.explained("environments", name, f"tasks({split!r})"):
        given = environment.tasks(split)
    if isinstance(given, str) or not isinstance(given, Sequence):
        kind = "None" if given is None else type(given).__name__
        raise UsageError(f"Environment plugin {name!r}: tasks({split!r}) gives {kind} where a list of ids belongs.")
    odd = [repr(task) for task in given if not isinstance(task, str) or not task or clean(task) is not task]
    if odd:
        raise UsageError(f"Environment plugin {name!r}: task ids must be text; tasks({split!r}) has {_some(odd)}.")
    repeated = [task for task, count in Counter(given).items() if count > 1]
    if repeated:
        raise UsageError(f"Environment plugin {name!r}: tasks({split!r}) repeats {_some(repeated)}; ids are unique.")
    return list(given)


def select(label: str, part: EnvironmentPart, available: list[str]) -> list[str]:
    """The tasks that `tasks` and `first` mean, in the split's order. Raises `UsageError` when there are too few."""
    if isinstance(part.tasks, list):
        known = set(available)
        for task in part.tasks:
            if task not in known:
                some = nearest(task, known) if len(known) <= 50 else f" Ids look like {', '.join(available[:3])}."
                raise UsageError(f"environments.{label}.tasks: split {part.split!r} has no task {task!r}.{some}")
        return list(part.tasks)
    chosen = available[part.first :]
    if part.tasks != "all":
        chosen = chosen[: part.tasks]
    if not chosen or (part.tasks != "all" and len(chosen) < part.tasks):
        raise UsageError(
            f"environments.{label}: split {part.split!r} has {len(available)} tasks; "
            f"first: {part.first} and tasks: {part.tasks} ask for more."
        )
    return chosen


def panels(study: Study, kept: Mapping[str, Panel] | None = None, fresh: Iterable[str] = ()) -> dict[str, Panel]:
    """Panels of all environments: kept ones where they belong to the same spec, else made; `fresh` are made anyway.

    Raises:
        UsageError: a panel made anew differs from the kept one, or from the study's pin.
    """
    found, anew = {}, set(fresh)
    for label, part in study.environments.items():
        old = (kept or {}).get(label)
        same = old is not None and old.spec == spec_of(part)
        if old is not None and same and label not in anew:
            found[label] = old
        else:
            found[label] = _made(study, label, part)
            if old is not None and same:
                _compare(label, old, found[label])
        _pinned(label, part, found[label])
    return found


def _made(study: Study, label: str, part: EnvironmentPart) -> Panel:
    try:
        return make(label, part)
    except UsageError as error:
        raise UsageError(f"{study.where('environments', label)}: {error}") from error


def _compare(label: str, old: Panel, new: Panel) -> None:
    if old.tasks == new.tasks:
        return
    before, after = dict(old.tasks), dict(new.tasks)
    changed = [task for task in before if task in after and before[task] != after[task]]
    parts = [("changed", changed), ("gone", [t for t in before if t not in after])]
    parts.append(("new", [t for t in after if t not in before]))
    said = "; ".join(f"{len(tasks)} {word}: {_some(tasks)}" for word, tasks in parts if tasks) or "another order"
    raise UsageError(
        f"The tasks of environment {label!r} are not those this study was begun with ({said}). Panel {old.digest} is "
        f"recorded, the data now gives {new.digest}. Bring the old data back, or begin anew in another folder "
        "(--results DIR) or under another `study:` name."
    )


def _some(tasks: list[str]) -> str:
    more = f" and {len(tasks) - SHOWN} more" if len(tasks) > SHOWN else ""
    return ", ".join(tasks[:SHOWN]) + more


def _pinned(label: str, part: EnvironmentPart, panel: Panel) -> None:
    if part.panel is not None and not panel.digest.startswith(part.panel[:16]):
        raise UsageError(
            f"environments.{label}.panel pins {part.panel}, but the data gives {panel.digest} "
            f"({len(panel.tasks)} tasks: {_some(list(panel.ids))}). Get the data that the study was written for, "
            f"or set `panel: {panel.digest}` if these tasks are meant."
        )
