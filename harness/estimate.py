"""Estimate: what is planned, done and left, and what the rest will take, before anything is spent.

Expectations come from earlier rows where there are any (mean over the same method, actor and environment), else from
what plugins declare in a class attribute `estimate`: per step `calls`, `prompt`, `completion`, `seconds`, for an
environment also `steps` per episode, for a method also `turns`: further turns of the actor.  What nobody declared is
unknown and said to be.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any

from harness import registry
from harness.grid import Cell, Plan
from harness.ledger import RETRYABLE, Key
from harness.models.rates import rate_of, table
from harness.study import TOOLS

KINDS: Mapping[str, registry.Kind] = {
    "environment": "environments",
    "actor": "actors",
    "method": "methods",
    **{tool: "candidates" if tool == "candidates" else "judges" for tool in TOOLS},
}
Heads = Mapping[Key, Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Cost:
    """Calls, tokens, seconds of working time and dollars at most; None is unknown and makes a sum unknown."""

    calls: float | None = 0.0
    prompt: float | None = 0.0
    completion: float | None = 0.0
    seconds: float | None = 0.0
    dollars: float | None = 0.0

    def __add__(self, other: Cost) -> Cost:
        return Cost(*(_plus(getattr(self, f.name), getattr(other, f.name)) for f in fields(self)))

    def times(self, factor: float) -> Cost:
        """Scaled; nothing times unknown is nothing."""
        if factor == 0:
            return Cost()
        values = (getattr(self, f.name) for f in fields(self))
        return Cost(*(None if value is None else value * factor for value in values))


UNKNOWN = Cost(None, None, None, None, None)
DECLARED = ("calls", "prompt", "completion", "seconds")


def _plus(a: float | None, b: float | None) -> float | None:
    return None if a is None or b is None else a + b


@dataclass(frozen=True, slots=True)
class Line:
    """One method x actor x environment: episodes by state over all seeds, and the expected cost of those left."""

    method: str
    actor: str
    environment: str
    planned: int
    done: int
    failed: int
    skipped: int
    left: int
    cost: Cost
    basis: str


@dataclass(frozen=True, slots=True)
class Outlook:
    """Where a study stands; `again` says how many of `left` are failures to be run again."""

    lines: tuple[Line, ...]
    again: int

    def total(self, name: str) -> int:
        """Sum of `planned`, `done`, `failed`, `skipped` or `left`."""
        return sum(getattr(line, name) for line in self.lines)

    @property
    def cost(self) -> Cost:
        """Expected cost of all that is left."""
        found = Cost()
        for line in self.lines:
            found = found + line.cost
        return found


def outlook(plan: Plan, heads: Heads, retry_failed: bool = True) -> Outlook:
    """Where a study stands, from its plan and the ledger's header lines."""
    lines = []
    again = 0
    groups: dict[tuple[str, str, str], list[tuple[Cell, bool]]] = {}
    for cell, skipped in [*((cell, False) for cell in plan.cells), *((cell, True) for cell, _ in plan.skipped)]:
        groups.setdefault((cell.method, cell.actor, cell.environment), []).append((cell, skipped))
    for labels, members in groups.items():
        count = Counter(state for cell, skipped in members for state in _states(cell, skipped, heads))
        retried = count["failed"] if retry_failed else 0
        left = count["left"] + retried
        again += retried
        each, basis = _expected(members[0][0], [h for cell, _ in members for h in _rows(cell, heads)])
        planned = sum(len(cell.tasks) for cell, _ in members)
        parts = (planned, count["done"], count["failed"], count["skipped"], left)
        lines.append(Line(*labels, *parts, each.times(left), basis if left else ""))
    return Outlook(tuple(lines), again)


def state(status: str | None) -> str:
    """`done`, `failed`, `skipped` or `left`: the four that a plan's episodes fall into."""
    if status is None:
        return "left"
    return "failed" if status in RETRYABLE else "skipped" if status == "skipped" else "done"


def _states(cell: Cell, skipped: bool, heads: Heads) -> Iterator[str]:
    for task in cell.tasks:
        head = heads.get((cell.key, task))
        yield "skipped" if skipped else state(head["status"] if head else None)


def _rows(cell: Cell, heads: Heads) -> list[Mapping[str, Any]]:
    found = (heads.get((cell.key, task)) for task in cell.tasks)
    return [head for head in found if head is not None and state(head["status"]) == "done"]


def _expected(cell: Cell, rows: list[Mapping[str, Any]]) -> tuple[Cost, str]:
    if rows:
        spent = Cost()
        for head in rows:
            spent = spent + Cost(*_used(head["usage"].values()), head["wall_s"], _paid(cell, head["usage"]))
        return spent.times(1 / len(rows)), f"mean of {len(rows)} rows"
    return _declared(cell)


def _used(usages: Iterable[list[int | None]]) -> tuple[float | None, float | None, float | None]:
    sums: list[float | None] = [0.0, 0.0, 0.0]
    for usage in usages:
        sums = [_plus(a, b) for a, b in zip(sums, usage, strict=True)]
    return sums[0], sums[1], sums[2]


def _paid(cell: Cell, usage: Mapping[str, list[int | None]]) -> float | None:
    """Dollars of one row at the rates of the parts that spent the tokens; several advisors pay the dearest rate."""
    total: float | None = 0.0
    for role, (_, prompt, completion) in usage.items():
        parts = ("actor",) if role == "actor" else TOOLS if role == "advisor" else ("environment",)
        rate = rate_of({part: cell.spec[part]["params"] for part in parts if part in cell.spec})
        total = _plus(total, None if rate is None else rate.of(prompt, completion))
    return total


def _declared(cell: Cell) -> tuple[Cost, str]:
    silent = []
    step = Cost()
    steps: float = cell.identity["environment"]["max_steps"]
    for role, kind in KINDS.items():
        if role not in cell.spec:
            continue
        said = getattr(registry.load(kind, cell.spec[role]["plugin"]), "estimate", None)
        if said is None:
            silent.append(f"{role} {cell.spec[role]['plugin']}")
            continue
        steps = min(steps, said.get("steps", steps))
        values = [said.get(name, 0.0) for name in DECLARED]
        rate = rate_of(cell.spec[role]["params"])
        dollars = None if rate is None else rate.of(values[1], values[2])
        each = Cost(values[0], values[1], values[2], values[3], dollars)
        step = step + each.times(1 + _turns(cell) if role == "actor" else 1)
    if silent:
        return UNKNOWN, f"unknown: no rows yet, and no estimate from {', '.join(silent)}"
    return step.times(steps), "declared by the plugins"


def _turns(cell: Cell) -> float:
    """Extra turns that a method asks of the actor at each step, on average."""
    said = getattr(registry.load("methods", cell.spec["method"]["plugin"]), "estimate", None) or {}
    return float(said.get("turns", 0.0))


def render(view: Outlook, workers: int) -> str:
    """The outlook as plain text, one line a method, actor and environment."""
    names = ("method", "actor", "environment")
    widths = [max([len(n), *(len(getattr(line, n)) for line in view.lines)]) for n in names]
    head = "  ".join(n.ljust(w) for n, w in zip(names, widths, strict=True))
    lines = [head + "  planned   done  failed  skipped   left"]
    shown = [line for line in view.lines if line.skipped < line.planned] or view.lines
    for line in shown:
        labels = "  ".join(getattr(line, n).ljust(w) for n, w in zip(names, widths, strict=True))
        lines.append(f"{labels}  {line.planned:7d}{line.done:7d}{line.failed:8d}{line.skipped:9d}{line.left:7d}")
    if len(shown) < len(view.lines):
        lines.append(f"and {len(view.lines) - len(shown)} combinations that the study skips as a whole")
    counts = ", ".join(f"{view.total(name)} {name}" for name in ("done", "failed", "skipped", "left"))
    lines.append(f"{view.total('planned')} episodes planned: {counts}" + _retries(view))
    if view.total("left"):
        lines.extend(_costs(view, workers))
    return "\n".join(lines)


def _retries(view: Outlook) -> str:
    return f" ({view.again} of them failed before and are run again)" if view.again else ""


def _costs(view: Outlook, workers: int) -> Iterator[str]:
    cost = view.cost
    tokens = f"{_number(cost.prompt)} prompt and {_number(cost.completion)} completion tokens"
    wall = None if cost.seconds is None else cost.seconds / workers
    calls = f"{_number(cost.calls)} model calls"
    yield f"expected for what is left: {calls}, {tokens}, {clock(wall)} on {workers} worker(s)"
    if cost.dollars != 0:
        price = "an unknown price" if cost.dollars is None else f"at most {cost.dollars:,.2f} {table().currency}"
        yield f"  {price} at endpoints elsewhere (prices of {table().version}; their prefix cache not counted)"
    for basis in sorted({line.basis for line in view.lines if line.basis.startswith("unknown")}):
        yield f"  {basis}"


def _number(value: float | None) -> str:
    return "unknown" if value is None else f"{value:,.0f}"


def clock(seconds: float | None) -> str:
    """`1 h 05 min`, `2 min 03 s`, `4.2 s` or `unknown time`."""
    if seconds is None:
        return "unknown time"
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02d} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02d} min"
