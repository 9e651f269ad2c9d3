"""Commands in Markdown: fenced `bash` blocks and inline code, with the HTML comment before a block.

`<!-- run: yes -->` before a block: its commands are run, in the order of the page, in a folder of the page's own.
`<!-- needs: gpu -->` (or endpoint, network, minutes, results ...): only checked against the real command line.
Without a comment, a block's commands are run when they are cheap (see `CHEAP`).
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
CHEAP = {"list", "plan", "doctor", "check"}
BLOCK = re.compile(r"(?:^<!-- *([a-z]+): *(.*?) *-->\n)?^[ \t]*```(?:bash|sh|shell|console)\n(.*?)^[ \t]*```", re.M | re.S)
INLINE = re.compile(r"(?<!`)`(?!`)([^`\n]+)`(?!`)")
NAMES = ("cota-bench", ".venv/bin/cota-bench")


@dataclass(frozen=True)
class Command:
    """One `cota-bench` command: where it stands, its words, and how far it is to be tried."""

    page: str
    words: tuple[str, ...]
    fenced: bool
    mark: str = ""  # run, needs, command, or nothing

    def __str__(self) -> str:
        return f"{self.page}: cota-bench {' '.join(self.words)}"

    @property
    def runs(self) -> bool:
        """Whether a test really runs it."""
        cheap = not self.words or self.words[0] in CHEAP or "--help" in self.words or "--dry-run" in self.words
        return self.fenced and (self.mark == "run" or (self.mark == "" and cheap))


def pages() -> list[Path]:
    """README and every page of the documentation."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def split(line: str) -> Iterator[tuple[str, ...]]:
    """Simple commands of a shell line, each as words, variables set in front left out."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars="&|;")
    lexer.whitespace_split = True
    lexer.commenters = "#"
    words: list[str] = []
    for word in [*lexer, ";"]:
        if set(word) <= set("&|;"):
            while words and re.fullmatch(r"[A-Z_]+=\S*", words[0]):
                del words[0]
            if words:
                yield tuple(words)
            words = []
        else:
            words.append(word)


def lines(block: str) -> list[str]:
    """Lines of a block, continued ones joined, prompts taken off."""
    joined = re.sub(r"\\\n\s*", " ", block)
    return [line.strip().removeprefix("$ ") for line in joined.splitlines() if line.strip()]


def blocks(text: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """(mark, words) of each simple command in a fenced block."""
    for found in BLOCK.finditer(text):
        for line in lines(found[3]):
            for words in split(line):
                yield found[1] or "", words


def commands(path: Path) -> Iterator[Command]:
    """Every `cota-bench` command of a page, fenced and inline."""
    text, page = path.read_text(encoding="utf-8"), path.relative_to(ROOT).as_posix()
    for mark, words in blocks(text):
        if words[0] in NAMES:
            yield Command(page, words[1:], True, mark)
    plain = re.sub(r"```.*?```", "", text, flags=re.S)
    for code in INLINE.findall(plain):
        if code.split(" ")[0] in NAMES:
            for words in split(code.replace("\\|", "|").replace("[STUDY]", "STUDY")):
                if words[0] in NAMES:
                    yield Command(page, words[1:], False)
