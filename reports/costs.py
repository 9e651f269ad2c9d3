"""Costs: tokens, money and time of the episodes of a group (paper appendix B.10, table 11).

`full` is what the episodes used, `billed` what was paid for: a response cache gives answers that cost nothing a second
time.  Unknown stays unknown and makes a sum unknown.  A price is known only for a listed model; a role that used no
tokens costs nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache

from harness.models.prices import Cost, PriceTable, load_prices
from harness.records import Usage
from harness.rows import Row
from harness.tracking.metrics import total
from reports.frames import Group

NOTHING = Cost(0.0, 0.0)
UNKNOWN = Cost(None, None)


@dataclass(frozen=True, slots=True)
class Spent:
    """Tokens of one role over a group; None is unknown."""

    prompt: float | None
    completion: float | None
    reasoning: float | None
    billed_prompt: float | None
    billed_completion: float | None
    cost: Cost

    @property
    def full(self) -> float | None:
        """Prompt and completion tokens, as if nothing had been cached here."""
        return _plus(self.prompt, self.completion)

    @property
    def billed(self) -> float | None:
        """Prompt and completion tokens less those that the response cache gave."""
        return _plus(self.billed_prompt, self.billed_completion)


def spent(group: Group, role: str) -> Spent:
    """Tokens and price of `actor`, `advisor` or `simulator` over every recorded episode of a group."""
    sums = {name: total(group.rows, f"{role}_{name}") for name in ("prompt", "completion", "reasoning")}
    return Spent(
        **sums,
        billed_prompt=_minus(sums["prompt"], total(group.rows, f"{role}_saved_prompt")),
        billed_completion=_minus(sums["completion"], total(group.rows, f"{role}_saved_completion")),
        cost=price(group, role),
    )


def hours(group: Group) -> float | None:
    """Summed working time of the recorded episodes, in hours: wall time less what was waited in queues."""
    seconds = total([row for row in group.rows if row["outcome"] != "skipped"], "work_s")
    return None if seconds is None else seconds / 3600


def price(group: Group, role: str) -> Cost:
    """What a role's tokens cost by the price table in force on the day of each episode."""
    used = [row for row in group.rows if row[f"{role}_prompt"] != 0 or row[f"{role}_completion"] != 0]
    if not used:
        return NOTHING
    model = model_of(group, role)
    if model is None:
        return UNKNOWN
    costs = [_cost(model, row, role) for row in used]
    return Cost(_sum([cost.billed for cost in costs]), _sum([cost.full for cost in costs]))


def model_of(group: Group, role: str) -> str | None:
    """The one model behind a role, or None when the plan names none or several."""
    part = {"actor": "actor.", "advisor": "method.", "simulator": "environment."}[role]
    names = {
        str(value)
        for name, value in group.cells[0].params.items()
        if name.startswith(part) and name.endswith(".model") and value is not None
    }
    return names.pop() if len(names) == 1 else None


@cache
def prices() -> PriceTable:
    """The price table that comes with the package."""
    return load_prices()


def _cost(model: str, row: Row, role: str) -> Cost:
    def count(name: str) -> int | None:
        value = row[f"{role}_{name}"]
        return None if value is None else int(value)

    usage = Usage(
        prompt=count("prompt"),
        completion=count("completion"),
        cached=count("cached"),
        saved_prompt=count("saved_prompt"),
        saved_completion=count("saved_completion"),
    )
    day = datetime.fromtimestamp(float(row["started_at"] or 0), tz=UTC).date()
    return prices().cost(model, usage, day)


def _plus(a: float | None, b: float | None) -> float | None:
    return None if a is None or b is None else a + b


def _minus(a: float | None, b: float | None) -> float | None:
    return None if a is None or b is None else a - b


def _sum(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if len(known) == len(values) else None
