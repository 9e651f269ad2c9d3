"""Recipe: from groups and a base model to an artefact; what comparator and critic training share."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from harness.cache import read_json
from harness.models.weights import Kind, load_parts, need_torch, pad_id, pick_device, resolve
from methods.judges.focus import closed
from methods.judges.prompt import FILE, Encoder, Prompt, load_prompt
from methods.training import tiny
from methods.training.artefact import (
    CARD,
    CHECKPOINTS,
    CURVES,
    IDENTITY,
    Artefact,
    find,
    hardware,
    make_identity,
    write_curves,
    write_json,
)
from methods.training.data import Group, Pair
from methods.training.fit import Fitted, Job, Progress, fit
from methods.training.settings import RECIPE, Settings

Examples = Callable[[Sequence[Group], Encoder, int, int], list[dict[str, Any]]]


@dataclass(frozen=True, slots=True)
class Recipe:
    """All that decides a judge; `groups` are (train, validation), `data` their hashes, `card` their counts."""

    kind: Kind
    base: str
    revision: str | None
    settings: Settings
    data: Mapping[str, str]
    card: Mapping[str, Any]
    groups: tuple[Sequence[Group], Sequence[Group]]
    examples: Examples
    collator: Callable[[int], Any]
    device: str

    def identity(self) -> dict[str, Any]:
        """What makes this judge this judge."""
        return make_identity(
            {
                "kind": self.kind,
                "base": _base_identity(self.base),
                "revision": self.revision,
                "settings": asdict(self.settings),
                "prompt": asdict(load_prompt(self.settings.prompt)),
                "data": dict(self.data),
                "recipe": RECIPE,
            }
        )


def train_judge(recipe: Recipe, out: Path, progress: Progress | None = None) -> Artefact:
    """Train into `out`, or return what is there."""
    identity = recipe.identity()
    found = find(out, identity)
    if found is not None:
        return found
    device = pick_device(recipe.device)
    work = out / CHECKPOINTS
    work.mkdir(parents=True, exist_ok=True)
    write_json(work / IDENTITY, identity)
    prompt = load_prompt(recipe.settings.prompt)
    with _seeded(recipe.settings.seed), _threads(recipe.base, device):
        model, tokenizer = _base(recipe, prompt)
        encoder = Encoder(tokenizer, prompt)
        sets = [recipe.examples(g, encoder, recipe.settings.per_row, recipe.settings.max_tokens) for g in recipe.groups]
        collator = recipe.collator(pad_id(model, tokenizer))
        job = Job(model, tokenizer, collator, sets[0], sets[1], work, device, recipe.kind == "classifier")
        fitted = fit(job, recipe.settings, progress)
    card = _card(recipe, fitted, sets, device)
    return _finish(out, identity, card, fitted, tokenizer, prompt)


def _finish(
    out: Path, identity: Mapping[str, Any], card: Mapping[str, Any], fitted: Fitted, tokenizer: Any, prompt: Prompt
) -> Artefact:
    """Write the artefact; its identity comes last, because a folder with one is a finished judge."""
    tiny.save(tokenizer, fitted.model, out)
    prompt.save(out)
    write_curves(out / CURVES, fitted.history)
    write_json(out / CARD, card)
    write_json(out / IDENTITY, identity)
    shutil.rmtree(out / CHECKPOINTS, ignore_errors=True)
    return Artefact(out, identity, card)


def _base(recipe: Recipe, prompt: Prompt) -> tuple[Any, Any]:
    if recipe.base != "tiny":
        return load_parts(recipe.base, recipe.kind, recipe.revision, need_torch().float32)
    documents = list(_texts(recipe.groups[0], prompt))
    named = {
        f"{g.environment}/{g.task_id}" for g in recipe.groups[0] if prompt.style != "focused" or not closed(g.view)
    }
    tokenizer = tiny.make_tokenizer(documents, closed=(text for task, text in documents if task not in named))
    return tiny.make_model(tokenizer, recipe.kind, recipe.settings.seed), tokenizer


def _texts(groups: Sequence[Group], prompt: Prompt) -> Iterator[tuple[str, str]]:
    for group in groups:
        task = f"{group.environment}/{group.task_id}"
        yield task, prompt.prefix(group.view)
        for item in group.items:
            if isinstance(item, Pair):
                yield task, prompt.pair(group.view, item.first, item.second)
            else:
                yield task, prompt.single(group.view, item.action)


def _base_identity(base: str) -> Any:
    """A recipe by its sizes, a folder by its weights' identity or content, a hub model by its name."""
    if base == "tiny":
        return tiny.describe()
    folder = Path(base).expanduser()
    if folder.is_dir():
        if (folder / IDENTITY).exists():
            return {"judge": read_json(folder / IDENTITY)["hash"]}
        resolve(base)
        return {"folder": folder.name, "files": _files_hash(folder)}
    return base


def _files_hash(folder: Path) -> str:
    import hashlib

    sums = hashlib.sha256()
    for path in [*sorted(folder.glob("*.safetensors")), folder / "config.json"]:
        with path.open("rb") as file:
            sums.update(hashlib.file_digest(file, "sha256").digest())
    return sums.hexdigest()


def _card(recipe: Recipe, fitted: Fitted, sets: Sequence[Sequence[Mapping[str, Any]]], device: str) -> dict[str, Any]:
    weights = sum(p.numel() for p in fitted.model.parameters())
    tokens = [sum(len(e["prefix"]) + sum(map(len, e["suffixes"])) for e in part) for part in sets]
    apart = [sum(len(e["prefix"]) * len(e["suffixes"]) + sum(map(len, e["suffixes"])) for e in part) for part in sets]
    return {
        "kind": "comparator" if recipe.kind == "lm" else "critic",
        "base": recipe.base,
        "revision": recipe.revision,
        "parameters": weights,
        "settings": asdict(recipe.settings),
        "data": dict(recipe.card),
        "examples": [sum(len(e["suffixes"]) for e in part) for part in sets],
        "tokens_an_epoch": tokens[0],
        "tokens_an_epoch_without_sharing": apart[0],
        "steps": fitted.steps,
        "best_validation_loss": fitted.best,
        "seconds": round(fitted.seconds, 2),
        "cpu_seconds": round(fitted.cpu_seconds, 2),
        "resumed": fitted.resumed,
        "hardware": hardware(device),
    }


@contextmanager
def _threads(base: str, device: str) -> Iterator[None]:
    """One thread for the tiny model: its operations are too small to share, and on a busy machine waiting for the
    other threads made training fifteen times slower."""
    torch = need_torch()
    before = torch.get_num_threads()
    if base == "tiny" and device == "cpu":
        torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextmanager
def _seeded(seed: int) -> Iterator[None]:
    """Run with torch's generators seeded, and put them back."""
    torch = need_torch()
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        yield


__all__ = ["FILE", "Recipe", "train_judge"]
