"""Prompts: text files with `$placeholders`, built in or replaced file by file from a user's folder.

`<environment>.txt` is the system part (`generic.txt` where an environment has none), the others are the turns.  A
replacement is read once, checked for what it must hold, and is part of an actor's identity by its content.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, lru_cache
from importlib import resources
from pathlib import Path
from string import Template

from harness.errors import UsageError, nearest
from harness.seeds import digest

TURNS: Mapping[str, tuple[str, ...]] = {
    "opening": ("task", "observation"),
    "turn": ("observation",),
    "actions": ("actions",),
    "revise": ("message",),
    "reformat": (),
    "cut": ("first", "last"),
}
SYSTEM = ("briefing",)


@cache
def builtin() -> Mapping[str, str]:
    """Built-in prompt texts by name."""
    folder = resources.files("harness.actors") / "prompts"
    files = sorted((item for item in folder.iterdir() if item.name.endswith(".txt")), key=lambda item: item.name)
    return {item.name.removesuffix(".txt"): item.read_text(encoding="utf-8") for item in files}


@cache
def load(folder: str | None) -> Mapping[str, str]:
    """Prompt texts by name, those of `folder` in place of the built-in ones.

    Raises:
        UsageError: a folder that is none, a file whose name no prompt has, or a missing placeholder.
    """
    if folder is None:
        return builtin()
    place = Path(folder).expanduser()
    if not place.is_dir():
        raise UsageError(f"prompts: {folder!r} is no folder; give one with files such as webshop.txt.")
    texts = dict(builtin())
    for path in sorted(place.glob("*.txt")):
        try:
            texts[path.stem] = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"prompts: cannot read {path}: {error}") from error
        _check(path, texts[path.stem])
    return texts


def _check(path: Path, text: str) -> None:
    template = Template(text)
    if not template.is_valid():
        raise UsageError(f"prompts: {path} holds a lone $; write $$ for the character itself.")
    wanted = TURNS.get(path.stem, SYSTEM)
    allowed = {*wanted, *(("problem",) if path.stem == "reformat" else ())}
    found = set(template.get_identifiers())
    missing = [f"${name}" for name in wanted if name not in found]
    if missing:
        raise UsageError(f"prompts: {path} lacks the placeholder(s) {', '.join(missing)}.")
    for name in sorted(found - allowed):
        raise UsageError(f"prompts: {path} has the unknown placeholder ${name}.{nearest(name, allowed)}")


def identity(folder: str | None) -> str:
    """Hash over all prompt texts in effect."""
    return digest(dict(load(folder)))


def system(folder: str | None, environment: str, briefing: str) -> str:
    """The system part for an environment."""
    texts = load(folder)
    return _fill(texts.get(environment, texts["generic"]), briefing=briefing.strip())


@lru_cache(maxsize=2048)  # a history is written anew at each step, and all but its end was written before
def turn(folder: str | None, name: str, **values: str) -> str:
    """One turn's text."""
    return _fill(load(folder)[name], **values)


def _fill(text: str, **values: str) -> str:
    return Template(text).substitute(values | {"problem": values.get("problem", "")}).strip("\n")
