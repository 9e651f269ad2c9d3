"""Prompts of the judges: state first, candidates after, one letter demanded (paper appendix B.4).

Everything up to the end of the state is the *prefix*, shared by all comparisons of a review and, because views are
append-only, mostly by those of the next step; the candidates are the *suffix*.  The two are tokenised apart, so the
boundary between them is a token boundary by construction and a prefix's tokens never depend on what follows.  Training
and scoring build prompts here and nowhere else.  What every comparison repeats is kept short: it is run once a suffix.
"""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Literal

from harness.errors import UsageError, nearest
from methods.judges.focus import focus_action, focus_state, focus_versus

Style = Literal["full", "focused"]
FILE = "prompt.json"
_MARK = "\u241fstate\u241f"

SYSTEM = (
    "You judge the next action of an interactive agent. Whichever action is taken, the same agent carries on "
    "afterwards by itself. Of two actions, A and B, choose the one that leads to the better final result. Reply with "
    "one letter: A or B only when that action is clearly better, in every other case T."
)
CRITIC_SYSTEM = (
    "You judge the next action of an interactive agent. The same agent carries on afterwards by itself. Estimate how "
    "good the final result will be if the action below is taken now."
)


@dataclass(frozen=True, slots=True)
class Prompt:
    """Wording of a judge's prompt.

    Attributes:
        system: system part; empty for none.
        state: holds `{state}`, the rendered view; must end the shared prefix.
        candidates: holds `{first}` and `{second}`; may hold `{versus}`, how the two differ by `focus_versus`.
        action: holds `{action}`; the critic's counterpart of `candidates`.
        style: `full` shows the whole view, `focused` what `methods.judges.focus` picks out of it.
    """

    system: str = SYSTEM
    state: str = "Task and what has happened so far:\n{state}\n"
    candidates: str = "\nA: {first}\nB: {second}\nBetter (A, B or T)?"
    action: str = "\nAction: {action}"
    style: Style = "full"

    def prefix(self, view: str) -> str:
        """The user part up to the end of the state."""
        return self.state.replace("{state}", focus_state(view) if self.style == "focused" else view)

    def pair(self, view: str, first: str, second: str) -> str:
        """The user part after the state, for two candidates."""
        shown = {"first": self._shown(view, first), "second": self._shown(view, second)}
        if "{versus}" in self.candidates:
            shown["versus"] = focus_versus(view, first, second)
        return re.sub(r"\{(first|second|versus)\}", lambda found: shown.get(found[1], ""), self.candidates)

    def single(self, view: str, action: str) -> str:
        """The user part after the state, for one action."""
        return self.action.replace("{action}", self._shown(view, action))

    def _shown(self, view: str, action: str) -> str:
        return focus_action(view, action) if self.style == "focused" else action

    def save(self, folder: Path) -> None:
        """Write into an artefact's folder."""
        (folder / FILE).write_text(json.dumps(asdict(self), indent=1) + "\n", encoding="utf-8")


FOCUSED = Prompt(
    system="", state="{state}", candidates=" A {first} B {second} ? {versus}", action=" A {action} ?", style="focused"
)
CRITIC = Prompt(system=CRITIC_SYSTEM)
PRESETS: dict[str, Prompt] = {"full": Prompt(), "focused": FOCUSED, "critic": CRITIC}


def load_prompt(source: str | Path) -> Prompt:
    """A preset by name, an artefact's prompt by folder, or a user's own file (YAML or JSON).

    Raises:
        UsageError: no such file, an unknown key, or a wording without its place-holders.
    """
    if isinstance(source, str) and source in PRESETS:
        return PRESETS[source]
    path = Path(source) / FILE if Path(source).is_dir() else Path(source)
    if not path.exists():
        raise UsageError(f"No prompt file {path}.{nearest(str(source), PRESETS)} A file is YAML with keys of `Prompt`.")
    import yaml

    data = yaml.safe_load(path.read_text(encoding="utf-8"))
    return _checked(path, data)


def _checked(path: Path, data: Any) -> Prompt:
    valid = {field.name for field in fields(Prompt)}
    if not isinstance(data, dict):
        raise UsageError(f"{path} must be a mapping with keys of {', '.join(sorted(valid))}.")
    for key in data:
        if key not in valid:
            raise UsageError(f"{path}: unknown key {key!r}.{nearest(str(key), valid)}")
    prompt = Prompt(**data)
    if prompt.style not in ("full", "focused"):
        raise UsageError(f"{path}: unknown style {prompt.style!r}.{nearest(prompt.style, ('full', 'focused'))}")
    wanted = {"state": ("{state}",), "candidates": ("{first}", "{second}"), "action": ("{action}",)}
    for key, names in wanted.items():
        for name in names:
            if getattr(prompt, key).count(name) != 1:
                raise UsageError(f"{path}: `{key}` must hold {name} exactly once.")
    if not prompt.state.rstrip().endswith("{state}"):
        raise UsageError(f"{path}: `state` must end with {{state}}: what follows it is not shared between comparisons.")
    return prompt


class Encoder:
    """Prompts to token ids with a model's own chat template."""

    def __init__(self, tokenizer: Any, prompt: Prompt) -> None:
        self.tokenizer = tokenizer
        self.prompt = prompt
        self._letters: tuple[int, int, int] | None = None
        messages = [{"role": "system", "content": prompt.system}] if prompt.system else []
        messages.append({"role": "user", "content": _MARK})
        text = tokenizer.apply_chat_template(
            messages, tokenize=False, add_generation_prompt=True, enable_thinking=False
        )
        self.head, _, self.tail = text.partition(_MARK)

    def ids(self, text: str) -> list[int]:
        """Token ids of a piece of text, nothing added."""
        found: list[int] = self.tokenizer(text, add_special_tokens=False)["input_ids"]
        return found

    def prefix(self, view: str) -> list[int]:
        """Ids of the shared part of a view's prompts."""
        return self.ids(self.head + self.prompt.prefix(view))

    def pair(self, view: str, first: str, second: str) -> list[int]:
        """Ids of what follows the prefix for two candidates, up to where the letter is due."""
        return self.ids(self.prompt.pair(view, first, second) + self.tail)

    def single(self, view: str, action: str) -> list[int]:
        """Ids of what follows the prefix for one action."""
        return self.ids(self.prompt.single(view, action) + self.tail)

    def letters(self) -> tuple[int, int, int]:
        """Ids of A, B and T. Raises `UsageError` when one of them is not a single token."""
        if self._letters is None:  # asked for at each vote
            found = [self.ids(letter) for letter in "ABT"]
            if any(len(ids) != 1 for ids in found):
                raise UsageError(
                    f"This tokenizer has no single tokens for A, B and T ({found}); take another base model."
                )
            self._letters = found[0][0], found[1][0], found[2][0]
        return self._letters


def shorten(prefix: list[int], limit: int, block: int = 256) -> tuple[list[int], int]:
    """Cut a prefix to `limit` tokens out of its middle: (ids, tokens cut).

    A quarter of the limit stays at the front (rules and task); what is cut grows in whole blocks, so that over the
    steps of an episode most cuts are the same and the kept cache stays valid.
    """
    over = len(prefix) - limit
    if over <= 0:
        return prefix, 0
    front = limit // 4
    cut = min(-(-over // block) * block, len(prefix) - front - 1)
    return prefix[:front] + prefix[front + cut :], cut
