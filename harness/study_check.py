"""What is wrong with a study, said so that it can be put right: file, line, path in the file, nearest valid name.

Pydantic finds wrong keys and types; `check` finds what only the registry knows (plugins, parameters, what a method
needs) and labels that point nowhere.  All problems of a file are in one message.
"""

from __future__ import annotations

import types
from collections.abc import Iterator, Mapping, Sequence, Set
from typing import TYPE_CHECKING, Any, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError

from harness import registry
from harness.errors import UsageError, nearest

if TYPE_CHECKING:
    from harness.study import Change, MethodChange, Study
    from harness.yamlfile import Document, Path_

Problem = tuple["Path_", str]
SECTIONS: dict[str, registry.Kind] = {
    "environments": "environments",
    "actors": "actors",
    "judges": "judges",
    "candidates": "candidates",
    "methods": "methods",
}
CALLS = {"comparator": "compare", "critic": "score", "candidates": "draw"}


def report(problems: list[Problem], document: Document) -> UsageError:
    """One message for all problems, in the order of the file."""
    lines = [f"{document.where(path)}: {dotted(path)}: {text}" for path, text in problems]
    head = "" if len(lines) == 1 else f"{len(lines)} problems in {document.source}:\n"
    return UsageError(head + "\n".join(dict.fromkeys(lines)))


def dotted(path: Path_) -> str:
    """`methods.cota.params.k` or `skip[0].method`."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else str(part)
    return text or "the study"


def complain(error: ValidationError, document: Document, model: type[BaseModel]) -> UsageError:
    """Pydantic's findings in the words of the file."""
    found: dict[Path_, list[str]] = {}
    for item in error.errors():
        path = _inside(item["loc"], document.data, keep_last=item["type"] == "missing")
        found.setdefault(path, []).append(_words(item, path, model))
    problems = [(path, " or: ".join(dict.fromkeys(texts))) for path, texts in found.items()]
    return report(problems, document)


def _inside(loc: tuple[str | int, ...], data: Any, keep_last: bool) -> Path_:
    """The part of pydantic's location that is in the file (it adds names of union members)."""
    path: list[str | int] = []
    for index, part in enumerate(loc):
        here = isinstance(data, Mapping) and part in data
        here = here or (isinstance(data, list) and isinstance(part, int) and part < len(data))
        if here:
            path.append(part)
            data = data[part]
        elif keep_last and index == len(loc) - 1:
            path.append(part)
        else:
            break
    return tuple(path)


def _words(item: Any, path: Path_, model: type[BaseModel]) -> str:
    if item["type"] == "extra_forbidden":
        return f"unknown key {path[-1]!r}.{nearest(str(path[-1]), _fields(model, path[:-1]))}"
    if item["type"] == "missing":
        return f"the key {path[-1]!r} is needed here."
    if item["type"] == "string_pattern_mismatch":
        return f"{item['input']!r} does not fit: letters, digits and _ . + - only, at most 64 characters."
    if item["type"] == "literal_error":
        given = str(item["input"])
        return f"{item['input']!r} is not valid.{nearest(given, [str(v) for v in _literals(item)])}"
    text = item["msg"].removeprefix("Value error, ").removeprefix("Input ")
    shown = repr(item["input"])
    return f"{text}, not {shown if len(shown) < 60 else shown[:57] + '...'}."


def _literals(item: Any) -> list[str]:
    words = str(item.get("ctx", {}).get("expected", "")).replace(" or ", ", ")
    return [word.strip().strip("'") for word in words.split(",") if word.strip()]


def _fields(model: Any, path: Path_) -> list[str]:
    for part in path:
        if isinstance(model, type) and issubclass(model, BaseModel):
            field = model.model_fields.get(str(part))
            model = _plain(field.annotation) if field else None
        else:
            model = _plain(get_args(model)[-1]) if get_args(model) else None
    return list(model.model_fields) if isinstance(model, type) and issubclass(model, BaseModel) else []


def _plain(hint: Any) -> Any:
    if get_origin(hint) in (Union, types.UnionType):
        rest = [arg for arg in get_args(hint) if arg is not type(None)]
        return rest[0] if len(rest) == 1 else None
    return hint


def check(study: Study, document: Document) -> None:
    """Everything the types cannot say. Raises `UsageError` with all that is wrong."""
    problems = [*_parts(study), *_labels(study)]
    if not problems:
        problems = list(_tools(study))
    if problems:
        raise report(problems, document)


def _parts(study: Study) -> Iterator[Problem]:
    for section, kind in SECTIONS.items():
        for label, part in getattr(study, section).items():
            path = (section, label)
            if not _is_label(label):
                text = "it may hold no '/', '\\' or control character, no space around it and no '.' at its beginning."
                yield path, f"{label!r} cannot be a label: {text}"
            yield from _plugin(kind, part, path)
            for key, change in getattr(part, "overrides", {}).items():
                where = (section, label, "overrides", key)
                environment, _, actor = key.partition("/")
                if environment not in study.environments:
                    yield where, f"unknown environment {environment!r}.{nearest(environment, study.environments)}"
                elif "/" in key and actor not in study.actors:
                    yield where, f"unknown actor {actor!r}.{nearest(actor, study.actors)}"
                else:
                    merged = part.resolved(environment, actor)
                    yield from _plugin(kind, merged, where, only=set(change.params))


def _is_label(text: str) -> bool:
    """Labels become folders of trained judges, names of runs and rows of tables."""
    plain = text.isprintable() and not set("/\\") & set(text)
    return bool(text) and plain and text == text.strip() and text[0] != "."


def _plugin(kind: registry.Kind, part: Change, path: Path_, only: set[str] | None = None) -> Iterator[Problem]:
    """`only`: the parameters written at `path`, where the others were checked elsewhere."""
    name = part.plugin or ""
    try:
        valid = registry.parameters(kind, name)
    except UsageError as error:
        yield (*path, "plugin"), str(error)
        return
    unknown = [key for key in part.params if key not in valid and (only is None or key in only)]
    for key in unknown:
        text = f"{kind[:-1]} plugin {name!r} has no parameter {key!r}.{nearest(key, valid)}"
        yield (*path, "params", key), text
    for key in part.params:
        known = key in valid and (only is None or key in only)
        wrong = registry.misfit(valid[key], part.params[key]) if known else None
        if wrong is not None:
            yield (*path, "params", key), f"{wrong}."
    missing = [key for key, p in valid.items() if p.default is p.empty and key not in part.params]
    if missing:
        yield (*path, "params"), f"{kind[:-1]} plugin {name!r} needs the parameter(s) {', '.join(missing)}."


def _labels(study: Study) -> Iterator[Problem]:
    for label, part in study.methods.items():
        changes = [(("methods", label), part), *((("methods", label, "overrides", k), c) for k, c in _over(part))]
        for path, change in changes:
            for word in ("comparator", "critic", "adviser", "candidates"):
                named = getattr(change, word)
                known = study.candidates if word == "candidates" else study.judges
                if named is not None and named not in known:
                    section = "candidates" if word == "candidates" else "judges"
                    yield (*path, word), f"{named!r} is not under `{section}:`.{nearest(named, known)}"
    for index, skip in enumerate(study.skip):
        for word in ("method", "actor", "environment"):
            named = getattr(skip, word)
            known = getattr(study, f"{word}s")
            if named is not None and named not in known:
                yield ("skip", index, word), f"unknown {word} {named!r}.{nearest(named, known)}"
        if skip.seed is not None and skip.seed not in study.seeds:
            seeds = [str(seed) for seed in study.seeds]
            yield ("skip", index, "seed"), f"unknown seed {skip.seed}.{nearest(str(skip.seed), seeds)}"


def _over(part: Any) -> list[tuple[str, MethodChange]]:
    return list(part.overrides.items())


def _tools(study: Study) -> Iterator[Problem]:
    for label, part in study.methods.items():
        for environment in study.environments:
            for actor in study.actors:
                resolved = part.resolved(environment, actor)
                needs = getattr(registry.load("methods", resolved.plugin or ""), "needs", None)
                if not isinstance(needs, Set | Sequence) or isinstance(needs, str):
                    text = f"method plugin {resolved.plugin!r} does not state what it needs: give its class "
                    yield ("methods", label), text + "`needs = frozenset()` (comparator, critic, adviser, candidates)."
                    continue
                for word in ("comparator", "critic", "adviser", "candidates"):
                    yield from _tool(study, label, word, getattr(resolved, word), word in needs, resolved.plugin)


def _tool(
    study: Study, label: str, word: str, named: str | None, needed: bool, plugin: str | None
) -> Iterator[Problem]:
    section = "candidates" if word == "candidates" else "judges"
    known = getattr(study, section)
    if needed and named is None:
        options = f"Labels under `{section}:`: {', '.join(sorted(known)) or 'none yet'}."
        yield ("methods", label), f"method plugin {plugin!r} needs `{word}: <label>`. {options}"
    elif named is not None and not needed:
        yield ("methods", label, word), f"method plugin {plugin!r} uses no {word}; remove this line."
    elif named is not None and word in CALLS:
        target = registry.load(SECTIONS[section], known[named].plugin)
        if not hasattr(target, CALLS[word]):
            text = f"{named!r} (plugin {known[named].plugin!r}) cannot be a {word}: it has no {CALLS[word]}()."
            yield ("methods", label, word), text
