"""Extends: a study that builds on another one, so that what they share stands in one file.

    extends: main                            # a file beside this one, or a study by name
    only: {environments: [webshop]}          # labels of the base to keep; a section not named here keeps all of them

What the study itself writes comes on top: a label takes the base's label's place whole, `policy`, `rules` and
`throughput` are merged key by key, `seeds` and `skip` replace.  What speaks of a label that was left out (an override,
a skip, a training recipe) is left out with it.  Title, notes and the like are never inherited.  The result is an
ordinary document in which every value still knows the file and line it was written at.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from harness.errors import UsageError, nearest
from harness.yamlfile import Document, Path_

SECTIONS = ("environments", "actors", "judges", "candidates", "methods", "training", "diversity")
RECIPES = ("training", "diversity")
MERGED = ("policy", "rules", "throughput")
REPLACED = ("seeds", "skip")
NAMES = {"environment": "environments", "actor": "actors", "method": "methods"}
Locate = Callable[[str, Path], Document]


def extended(document: Document, locate: Locate, above: tuple[str, ...] = ()) -> Document:
    """The document with its base in it; itself when it has none.

    Args:
        document: a loaded study file.
        locate: finds the base by (what `extends` says, folder of this file).
        above: files that led here, against circles.

    Raises:
        UsageError: an unknown base, a circle, `only` without `extends`, a section or label that the base does not have.
    """
    data = document.data
    if not isinstance(data, Mapping) or data.get("extends") is None:
        if isinstance(data, Mapping) and data.get("only") is not None:
            raise UsageError(f"{document.where(('only',))}: only: it says what to keep of a base; add `extends: NAME`.")
        return document
    where = document.where(("extends",))
    if not isinstance(data["extends"], str):
        raise UsageError(f"{where}: extends: the name of one study is needed here, not {data['extends']!r}.")
    chain = (*above, str(Path(document.source).resolve()))
    try:
        found = locate(data["extends"], Path(document.source).parent)
    except UsageError as error:
        raise UsageError(f"{where}: extends: {error}") from error
    if str(Path(found.source).resolve()) in chain:
        raise UsageError(f"{where}: extends: {data['extends']!r} leads back to this study; a base stands on its own.")
    return _Joining(document, extended(found, locate, chain)).document()


class _Joining:
    """One document on top of another."""

    def __init__(self, own: Document, base: Document) -> None:
        if not isinstance(base.data, Mapping):
            raise UsageError(f"{base.source}: a study is a mapping; nothing can be built on this file.")
        self.own, self.base = own, base
        self.kept: dict[str, Any] = {}
        self.places: dict[Path_, str] = {}
        self.only = self._only(own.data.get("only") or {})

    def document(self) -> Document:
        """Both as one."""
        for section in (*SECTIONS, *MERGED):
            self._mapping(section)
        for key in REPLACED:
            if key not in self.own.data and key in self.base.data:
                self._list(key)
        merged = dict(self.own.data)
        for key, value in self.kept.items():
            mine = merged.get(key)
            merged[key] = {**value, **mine} if isinstance(value, dict) and isinstance(mine, Mapping) else value
        return self.own.joined(merged, self.places)

    def _only(self, asked: Any) -> dict[str, list[str]]:
        if not isinstance(asked, Mapping):
            raise UsageError(
                f"{self.own.where(('only',))}: only: sections with lists of labels, such as `methods: [a]`."
            )
        for section, labels in asked.items():
            where = self.own.where(("only", section))
            if section not in SECTIONS:
                raise UsageError(f"{where}: only: unknown section {section!r}.{nearest(str(section), SECTIONS)}")
            known = self.base.data.get(section) or {}
            for label in labels if isinstance(labels, list) else [labels]:
                if not isinstance(labels, list) or label not in known:
                    hint = nearest(str(label), known)
                    raise UsageError(f"{where}: only.{section}: {label!r} is no label in {self.base.source}.{hint}")
        return {section: list(labels) for section, labels in asked.items()}

    def _mapping(self, section: str) -> None:
        mine, base = self.own.data.get(section), self.base.data.get(section)
        if not isinstance(base, Mapping) or not (mine is None or isinstance(mine, Mapping)):
            return
        for label, part in base.items():
            if label in (mine or {}) or label not in self.only.get(section, base):
                continue
            if section in RECIPES and not self._speaks_of_kept(part):
                continue
            self.kept.setdefault(section, {})[label] = self._pruned(part)
            self._inherit((section, label), (section, label))

    def _list(self, key: str) -> None:
        found: list[Any] = []
        seeds = self.own.data.get("seeds")
        for index, item in enumerate(self.base.data[key] or ()):
            gone = (
                isinstance(item, Mapping)
                and isinstance(seeds, list)
                and seeds
                and item.get("seed", seeds[0]) not in seeds
            )
            if not gone and self._speaks_of_kept(item):
                self._inherit((key, index), (key, len(found)))
                found.append(item)
        self.kept[key] = found

    def _speaks_of_kept(self, part: Any) -> bool:
        """Whether every environment, actor and method that a skip or a recipe names is still there."""
        return not isinstance(part, Mapping) or all(
            part[word] in self._labels(section) for word, section in NAMES.items() if isinstance(part.get(word), str)
        )

    def _pruned(self, part: Any) -> Any:
        """A part without the overrides for what was left out."""
        if not isinstance(part, Mapping) or not isinstance(part.get("overrides"), Mapping):
            return part
        kept = {}
        for key, change in part["overrides"].items():
            environment, _, actor = str(key).partition("/")
            if environment in self._labels("environments") and (not actor or actor in self._labels("actors")):
                kept[key] = change
        return {**part, "overrides": kept}

    def _labels(self, section: str) -> set[str]:
        mine, base = self.own.data.get(section), self.base.data.get(section)
        held = set(self.only.get(section, base or ()))
        return held | set(mine) if isinstance(mine, Mapping) else held

    def _inherit(self, path: Path_, new: Path_) -> None:
        for known in self._base_places(path):
            self.places[(*new, *known[len(path) :])] = self.base.where(known)

    def _base_places(self, path: Path_) -> Iterator[Path_]:
        return (known for known in self.base.paths() if known[: len(path)] == path)
