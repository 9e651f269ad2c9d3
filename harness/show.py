"""Show: one episode, step by step, readable in a terminal, or as JSON.

Everything that a model or an environment wrote is data: control characters are made visible, rich markup stays text.
No plugin is needed: an episode is read from its record alone, years later and on another machine.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from harness import ledger
from harness.codec import to_json
from harness.errors import UsageError
from harness.records import Action, Episode, Review, Step, Usage, Vote
from harness.rows import ERRORS, failed_open, winners

if TYPE_CHECKING:
    from rich.console import Console

OBSERVATION: Final = 600
THOUGHT: Final = 400
SHOWN: Final = 8
LABELS: Final = ("method", "actor", "environment", "seed")


@dataclass(frozen=True)
class Wanted:
    """Which episode: any of the labels, a prefix of the cell's key, a task id; None means any."""

    cell: str | None = None
    task: str | None = None
    method: str | None = None
    actor: str | None = None
    environment: str | None = None
    seed: int | None = None

    def fits(self, head: Mapping[str, Any]) -> bool:
        """Whether a header line of the ledger is of such an episode."""
        labels = all(getattr(self, name) in (None, head[name]) for name in LABELS)
        cell = self.cell is None or str(head["cell"]).startswith(self.cell)
        return labels and cell and self.task in (None, head["task_id"])

    def text(self) -> str:
        """As asked, for messages."""
        names = ("cell", *LABELS, "task")
        return ", ".join(f"{name} {getattr(self, name)}" for name in names if getattr(self, name) is not None)


Labels = Mapping[str, Mapping[str, Any]]


def present_labels(folder: Path) -> dict[str, dict[str, Any]]:
    """Labels of each cell as the study calls it now; a record keeps those of the time it was run.

    Raises:
        UsageError: a damaged `study.json`.
    """
    from harness.results import stored_study

    stored = stored_study(folder) or {}
    # Cells that the study has now come last, so that they win over what is only remembered.
    cells = [*stored.get("skipped", []), *sorted(stored.get("cells", []), key=lambda c: bool(c.get("current", True)))]
    return {cell["key"]: {name: cell[name] for name in LABELS} for cell in cells}


def wanted_of(text: str, folder: Path) -> Wanted:
    """What a person means by one word: a task id, CELL:TASK with any prefix of the cell, or labels.

    Labels are `method/actor/environment/seed/task`; a task id may itself hold slashes and colons.
    """
    tasks = {task for _, task in ledger.read_heads(folder)}
    cell, colon, task = text.partition(":")
    parts = text.split("/", 4)
    if text in tasks:
        return Wanted(task=text)
    if colon and cell and not set(cell) - set("0123456789abcdef"):
        return Wanted(cell=cell, task=task)
    if len(parts) == 5 and parts[3].lstrip("-").isdigit():
        method, actor, environment, seed, task = parts
        return Wanted(method=method, actor=actor, environment=environment, seed=int(seed), task=task)
    return Wanted(task=text)


def find(folder: Path, wanted: Wanted) -> list[Episode]:
    """Every episode of a results folder that fits, last attempts only, in the order written.

    Raises:
        UsageError: no such folder, or nothing fits; the message names the nearest that there is.
    """
    if not (folder / ledger.FILE).is_file():
        raise UsageError(f"There is no ledger in {folder}. Run the study first, or name another with --results.")
    now = present_labels(folder)
    heads = {key: {**head, **now.get(key[0], {})} for key, head in ledger.read_heads(folder).items()}
    keys = {key for key, head in heads.items() if wanted.fits(head)}
    if not keys:
        raise UsageError(_nothing(folder, wanted, list(heads.values())))
    found = ledger.read(folder)
    last = {(frame.head["cell"], frame.head["task_id"]): frame for frame in found.frames}
    return [found.episode(last[key]) for key in heads if key in keys]


def one(folder: Path, wanted: Wanted) -> Episode:
    """The episode that was asked for.

    Raises:
        UsageError: none fits, or several do; the message lists them and how to tell them apart.
    """
    found = find(folder, wanted)
    if len(found) == 1:
        return found[0]
    now = present_labels(folder)
    lines = [f"  {_line(episode, now.get(episode.cell, {}))}" for episode in found[:SHOWN]]
    more = [f"  and {len(found) - SHOWN} more"] if len(found) > SHOWN else []
    asked = wanted.text() or "nothing"
    raise UsageError(
        "\n".join(
            [
                f"{len(found)} episodes fit ({asked} was asked for):",
                *lines,
                *more,
                "Name one as CELL:TASK or METHOD/ACTOR/ENVIRONMENT/SEED/TASK.",
            ]
        )
    )


def as_json(episode: Episode) -> str:
    """The whole record as indented JSON, the form of the ledger."""
    return json.dumps(to_json(episode), indent=2, ensure_ascii=True, allow_nan=False)


def show(episode: Episode, console: Console, *, full: bool = False, now: Mapping[str, Any] | None = None) -> None:
    """Print an episode step by step.

    Args:
        episode: The episode.
        console: Where to print.
        full: Whole observations and thoughts instead of their beginnings.
        now: Labels of its cell as the study calls it now, where they may differ from the record's.
    """
    from rich.panel import Panel
    from rich.text import Text

    console.print(head(episode, full=full, now=now))
    for step in episode.steps:
        for line in step_lines(step, full):
            console.print(line)
    if episode.final_observation:
        console.print(Text("then    " + cut(episode.final_observation, None if full else OBSERVATION), style="dim"))
    console.print(Panel(end(episode), title="outcome", title_align="left"))


def head(episode: Episode, *, full: bool = False, now: Mapping[str, Any] | None = None) -> Any:
    """Labels and task of an episode, in a panel."""
    from rich.panel import Panel
    from rich.text import Text

    text = Text()
    for name in ("study", "method", "actor", "environment", "seed", "split", "task_id", "cell", "attempt"):
        text.append(f"{name} ", style="dim")
        then = getattr(episode, name)
        text.append(visible(str((now or {}).get(name, then))))
        text.append("" if (now or {}).get(name, then) == then else f" (run as {visible(str(then))})", style="yellow")
        text.append("  ")
    if episode.simulated:
        text.append(f"\nsimulated: {', '.join(map(visible, episode.simulated))}", style="yellow")
    text.append("\n\n" + cut(episode.task, None if full else 2 * OBSERVATION))
    return Panel(text, title="episode", title_align="left")


def step_lines(step: Step, full: bool) -> Iterator[Any]:
    """One step as lines: what was seen, each review, what was done."""
    from rich.rule import Rule
    from rich.text import Text

    legal = f", {step.legal_actions} legal actions" if step.legal_actions else ""
    yield Rule(Text(f"step {step.index}{legal}"), align="left", style="dim")
    yield Text("sees    " + cut(step.observation, None if full else OBSERVATION), style="dim")
    if not step.reviews:
        yield _thought(step.thought, full)
    for number, review in enumerate(step.reviews):
        yield from _review(review, number, full)
    replaced = bool(step.reviews) and step.executed.canonical != step.reviews[0].proposal.canonical
    done = Text("does    ", style="dim")
    done.append(action(step.executed), style="bold green")
    done.append("  (not what was first proposed)" if replaced else "", style="yellow")
    reward = "unscored" if step.reward is None else f"{step.reward:g}"
    yield done.append(f"   reward {reward}{', done' if step.done else ''}, {_seconds(step.seconds)}", style="dim")


def _review(review: Review, number: int, full: bool) -> Iterator[Any]:
    from rich.text import Text

    if review.thought:
        yield _thought(review.thought, full)
    line = Text("says    " if number == 0 else "replan  ", style="dim")
    yield line.append(action(review.proposal), style="bold")
    for place, candidate in enumerate(review.candidates):
        votes = [vote for vote in review.votes if vote.candidate == place]
        score = review.scores[place + 1] if place + 1 < len(review.scores) else None
        won = any(vote.won for vote in votes)
        line = Text("  cand  ", style="dim").append(action(candidate.action), style="cyan" if won else "")
        line.append(f"   {visible(candidate.source)}", style="dim")
        line.append("".join(f"   {_votes(vote)}" for vote in votes))
        yield line.append("" if score is None else f"   Q {score:.3f}")
    if review.scores and review.scores[0] is not None:
        yield Text(f"  Q     {review.scores[0]:.3f} for the proposal", style="dim")
    wins = winners((vote.won for vote in review.votes), review.scores)
    counted = (
        f"{wins} of {len(review.candidates)} beat the proposal, {review.comparisons} asked" if review.candidates else ""
    )
    gate = Text("  gate  ", style="dim").append(
        "fired" if review.fired else "held", style="red" if review.fired else ""
    )
    yield gate.append(f"   {counted}   {review.seconds:.3f} s", style="dim")
    if review.recommended:
        yield Text("  advice ", style="dim").append("; ".join(map(action, review.recommended)), style="cyan")
    if review.message:
        yield Text("  told  ", style="dim").append(cut(review.message, None if full else THOUGHT))
    for cause in review.fail_open:
        yield Text("  fail open: ", style="yellow").append(visible(cause))
    if review.response:
        yield Text("  answer ", style="dim").append(review.response, style="magenta")


def _votes(vote: Vote) -> str:
    """Both orders: candidate first, then proposal first; a dot for a question that was not asked or answered."""
    orders = f"{vote.forward or '·'}/{vote.backward or '·'}"
    return f"{orders} {'wins' if vote.won else 'no win'}"


def _thought(text: str, full: bool) -> Any:
    from rich.text import Text

    return Text("thinks  " + (cut(text, None if full else THOUGHT) or "(nothing)"), style="italic dim")


def end(episode: Episode) -> Any:
    """How it ended: status, score, counts, time and tokens by role."""
    from rich.text import Text

    ended = episode.status not in (*ERRORS, "skipped")
    missing = "none: it cannot be scored here" if ended else f"none: {episode.status} is no score"
    reward = missing if episode.reward is None else f"{episode.reward:g}"
    success = {True: "success", False: "no success", None: "success unknown"}[episode.success]
    text = Text(f"{episode.status}", style="bold").append(f"  {visible(episode.reason)}", style="")
    if episode.boundary:
        text.append(f"\nbroke: {episode.boundary}", style="red")
    text.append(f"\nreward {reward}, {success}, {len(episode.steps)} steps, {episode.wall_s:.2f} s wall", style="")
    reviews = [review for step in episode.steps for review in step.reviews]
    if reviews:
        answers = [review.response for review in reviews if review.response]
        counts = ", ".join(f"{answers.count(kind)} {kind}" for kind in ("adopt", "keep", "novel"))
        opens = sum(failed_open(review.fail_open, review.fired) for review in reviews)
        fired = sum(review.fired for review in reviews)
        text.append(f"\n{len(reviews)} reviews, {fired} fired, replans: {counts}; {opens} failed open")
    for role in dict.fromkeys([*episode.seconds, *episode.usage]):
        usage = episode.usage.get(role)
        spent = f"{dict(episode.seconds).get(role, 0.0):.2f} s"
        text.append(f"\n{role:<12}{spent:>10}{_usage(usage) if usage else ''}", style="dim")
    for key, value in episode.info.items():
        text.append(f"\n{visible(str(key))}: {cut(str(value), OBSERVATION)}", style="dim")
    return text


def _usage(usage: Usage) -> str:
    def known(count: int | None) -> str:
        return "unknown" if count is None else str(count)

    waited = f", waited {usage.waited_s:.2f} s" if usage.waited_s else ""
    return (
        f"   {usage.calls} calls, {known(usage.prompt)} prompt and {known(usage.completion)} completion tokens{waited}"
    )


def _seconds(seconds: Mapping[str, float]) -> str:
    return ", ".join(f"{role} {value:.3f} s" for role, value in seconds.items() if value >= 0.0005) or "under 1 ms"


def action(chosen: Action) -> str:
    """An action on one line."""
    return cut(chosen.text, THOUGHT, newlines=False)


def visible(text: str) -> str:
    """Text without anything that could steer a terminal: control and format characters become visible escapes."""
    return "".join(c if c in "\n\t" or c.isprintable() else _escape(c) for c in text)


def _escape(sign: str) -> str:
    return f"\\x{ord(sign):02x}" if ord(sign) < 256 else f"\\u{ord(sign):04x}"


def cut(text: str, limit: int | None, *, newlines: bool = True) -> str:
    """Visible text, indented under its label; beyond `limit` characters the number that is left out is said."""
    kept = text if limit is None or len(text) <= limit else text[:limit]
    rest = "" if len(kept) == len(text) else f" ... ({len(text) - len(kept)} more characters)"
    shown = visible(kept.replace("\r\n", "\n"))
    return (shown.replace("\n", "\n        ") if newlines else shown.replace("\n", "\\n")) + rest


def _line(episode: Episode, now: Mapping[str, Any]) -> str:
    method, actor, environment, seed = (now.get(name, getattr(episode, name)) for name in LABELS)
    labels = f"{method} x {actor} x {environment} x seed {seed}"
    return f"{episode.cell}:{episode.task_id}   {labels}   {episode.status}"


def _nothing(folder: Path, wanted: Wanted, heads: Sequence[Mapping[str, Any]]) -> str:
    """What is wrong with the question: the first part that nothing fits, with the nearest and what there is."""
    if not heads:
        return f"The ledger in {folder} has no episode yet. Run the study first: cota-bench run STUDY"
    lines = [f"No episode of {folder} has {wanted.text()}."]
    for name, column in (("cell", "cell"), *((label, label) for label in LABELS), ("task", "task_id")):
        asked = getattr(wanted, name)
        present = list(dict.fromkeys(str(head[column]) for head in heads))
        if asked is None or any(Wanted(**{name: asked}).fits(head) for head in heads):
            continue
        close = difflib.get_close_matches(str(asked), present, n=3, cutoff=0.3)
        some = ", ".join(present[:SHOWN]) + (f" and {len(present) - SHOWN} more" if len(present) > SHOWN else "")
        lines.append(
            f"There is no {name} {asked!r}."
            + (f" Nearest: {', '.join(close)}." if close else "")
            + f" There is: {some}."
        )
    if len(lines) == 1:
        lines.append("Each part exists, but not together; leave one out to see what there is.")
    return "\n".join(lines)
