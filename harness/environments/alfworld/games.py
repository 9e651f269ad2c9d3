"""Where games come from: generated ones, or a folder of official ones.

Both are addressed by id, never by position: `test/0003-heat` for a generated game, and for an official one its folder
below the tree, `valid_unseen/pick_.../trial_...`.  Official splits keep their names; `validation` and `test` mean
`valid_seen` and `valid_unseen` there, so that one study file works with both sources.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from harness.environments.alfworld import package
from harness.environments.alfworld.generate import KINDS, SHARES, draw
from harness.errors import EpisodeError, UsageError, nearest
from harness.seeds import digest

SIZES = {"train": 3000, "validation": 300, "test": 300}
OFFICIAL = ("train", "valid_seen", "valid_unseen")
ALIASES = {"validation": "valid_seen", "test": "valid_unseen"}
GET = "Get the games with `alfworld-download` (it fills ~/.cache/alfworld), then set ALFWORLD_DATA to that folder."
_FILE = "game.tw-pddl"
_SOLVABLE = re.compile(rb'"solvable":\s*(true|false)')


@dataclass(frozen=True, slots=True)
class Game:
    """One game as text. `walkthrough` is there only for official games."""

    task_id: str
    domain: str
    grammar: str
    problem: str
    source: str
    walkthrough: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """Content hash: all that the engine is given."""
        return digest([self.domain, self.grammar, self.problem])


class Games(Protocol):
    """A source of games."""

    def tasks(self, split: str) -> Sequence[str]:
        """Ids of a split in a fixed order. Raises `UsageError`."""

    def load(self, task_id: str) -> Game:
        """One game. Raises `UsageError` for an unknown id, `EpisodeError` for a file that cannot be read."""

    def content(self, task_id: str) -> str:
        """Content hash of one game, of a broken one too: it has to be in the panel for its episode to fail."""


def _split_error(split: str, valid: Sequence[str]) -> UsageError:
    return UsageError(f"alfworld has no split {split!r}.{nearest(split, valid)}")


class EmbeddedGames:
    """Generated games, made when they are asked for (0.7 ms each) and stored nowhere."""

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed

    def tasks(self, split: str) -> Sequence[str]:
        if split not in SIZES:
            raise _split_error(split, list(SIZES))
        kinds = list(KINDS)
        return [f"{split}/{i:04d}-{kinds[i % len(kinds)]}" for i in range(SIZES[split])]

    def load(self, task_id: str) -> Game:
        split, _, rest = task_id.partition("/")
        number = rest.partition("-")[0]
        at = int(number) if number.isdecimal() and number.isascii() else -1
        if split not in SHARES or not 0 <= at < SIZES[split] or self.tasks(split)[at] != task_id:
            raise UsageError(
                f"alfworld has no generated game {task_id!r}. Valid: `test/0000-pick` to `test/{SIZES['test'] - 1:04d}-"
                f"{list(KINDS)[(SIZES['test'] - 1) % len(KINDS)]}`, and so for the splits {', '.join(SIZES)}."
            )
        drawn = draw(self.seed, split, at)
        grammar = package.grammar().replace("UNKNOWN GOAL", drawn.sentence)
        return Game(task_id, package.domain(), grammar, drawn.problem, f"generated game {task_id} (seed {self.seed})")

    def content(self, task_id: str) -> str:
        return self.load(task_id).key


class OfficialGames:
    """A `json_2.1.1` tree; `folder` is the tree, a folder that holds it, or "official" for `$ALFWORLD_DATA`."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self._listed: dict[str, list[str]] = {}

    def root(self) -> Path:
        """The tree. Raises `UsageError` when there is none, with how to get it."""
        named = Path(self.folder).expanduser()
        where = f"games={self.folder!r}"
        if self.folder == "official":
            value = os.environ.get("ALFWORLD_DATA")
            named = Path(value).expanduser() if value else Path.home() / ".cache" / "alfworld"
            where = f"ALFWORLD_DATA={value!r}" if value else f"ALFWORLD_DATA is not set and {named} was tried"
        if named.is_file():
            raise UsageError(
                f"alfworld: {named} ({where}) is a file. Unpack the archive and name the folder that holds the splits "
                f"{', '.join(OFFICIAL)}."
            )
        for tree in (named, named / "json_2.1.1"):
            if any((tree / split).is_dir() for split in OFFICIAL):
                return tree
        problem = "holds none of the splits " + ", ".join(OFFICIAL) if named.is_dir() else "does not exist"
        raise UsageError(f"alfworld: the games folder {named} ({where}) {problem}. {GET} Or use games='embedded'.")

    def tasks(self, split: str) -> Sequence[str]:
        name = ALIASES.get(split, split)
        if name not in OFFICIAL:
            raise _split_error(split, [*OFFICIAL, *ALIASES])
        if name not in self._listed:
            root = self.root()
            if not (root / name).is_dir():
                there = [other for other in OFFICIAL if (root / other).is_dir()]
                raise UsageError(f"alfworld: {root} has no split {name!r}, only {', '.join(there)}. {GET}")
            found = sorted(path for path in (root / name).rglob(_FILE) if _playable(path))
            if not found:
                raise UsageError(f"alfworld: {root / name} holds no file {_FILE}. {GET}")
            self._listed[name] = [path.parent.relative_to(root).as_posix() for path in found]
        return self._listed[name]

    def load(self, task_id: str) -> Game:
        return _read(task_id, self._path(task_id))

    def content(self, task_id: str) -> str:
        path = self._path(task_id)
        try:
            return _read(task_id, path).key
        except EpisodeError:
            return hashlib.sha256(path.read_bytes()).hexdigest() if os.access(path, os.R_OK) else digest(["unreadable"])

    def _path(self, task_id: str) -> Path:
        root = self.root()
        path = root / task_id / _FILE
        parts = Path(task_id).parts
        if not parts or parts[0] not in OFFICIAL or ".." in parts or not path.is_file():
            known = self.tasks(parts[0]) if parts and parts[0] in OFFICIAL else [f"{OFFICIAL[-1]}/..."]
            raise UsageError(f"alfworld has no game {task_id!r} in {root}.{nearest(task_id, known[:5])}")
        return path


def _playable(path: Path) -> bool:
    """As the official loader: no sliced objects, none in a movable receptacle, none known to be unsolvable.

    The flag stands near the end of a file of 100 kB, so the end is read first.  A file without the flag stays in: if
    it is broken, its episode says so.
    """
    if "movable" in str(path.parent) or "Sliced" in str(path.parent):
        return False
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - 4096))
        found = _SOLVABLE.findall(file.read())
        if not found:
            file.seek(0)
            found = _SOLVABLE.findall(file.read())
    return not found or found[-1] == b"true"


def _read(task_id: str, path: Path) -> Game:
    """Raises `EpisodeError`: one bad file is one failed episode, the other games stay playable."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        texts = [data[name] for name in ("pddl_domain", "grammar", "pddl_problem")]
        walkthrough = data.get("walkthrough") or ()
        if not all(isinstance(text, str) and text.strip() for text in texts):
            raise ValueError("domain, grammar or problem is empty")
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        reason = f"no key {error}" if isinstance(error, KeyError) else str(error) or type(error).__name__
        raise EpisodeError(
            "environment", f"the game file {path} is broken ({reason}); download it again with `alfworld-download`"
        ) from error
    domain, grammar, problem = texts
    return Game(task_id, domain, grammar, problem, str(path), tuple(str(step) for step in walkthrough))
