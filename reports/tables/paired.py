"""Paired differences: each method against Origin and the contrasts of the 2x2, on the same tasks and seeds.

Not in the paper, which gives single numbers; a difference of two of them says little without the pairs behind it.
"""

from __future__ import annotations

from harness.rows import Scalar
from reports import caption
from reports.contrasts import Contrast, contrasts
from reports.frames import Tracked
from reports.table import DASH, INCOMPLETE, Column, Entry, Table, flat, number, plus, shape, signed

ORDER = 20
NEEDS = "a method beside origin, or two methods of the 2x2"


def build(source: Tracked) -> Table | None:
    """A row a contrast, environment and actor; None when there is nothing to compare."""
    found = contrasts(source)
    if not found:
        return None
    heads = ("Environment", "Actor", "Contrast")
    columns = [Column(head, numeric=False) for head in heads]
    columns += [Column(head) for head in ("Difference", "p", "Holm p", "W/T/L", "MDE", "Tasks needed", "Pairs")]
    return Table(
        name="paired",
        title=f"{source.study}: paired differences.",
        columns=columns,
        body=[_row(item) for item in found],
        caption=_caption(found) + caption.simulated_in(source),
        notes=_notes(found),
        data=[_tidy(item) for item in found],
    )


def words(item: Contrast) -> str:
    """A contrast in words: `cota − origin`."""
    if item.base.count("−"):
        return f"({item.ours}) − ({item.base})"
    return f"{item.ours} − {item.base}"


def probability(p: float | None) -> str:
    """A p-value for the eye."""
    if p is None:
        return DASH
    return "<0.001" if p < 0.001 else f"{p:.3f}"


def _row(item: Contrast) -> list[Entry]:
    digits, scale = shape(item.metric)
    found = item.result
    mark = INCOMPLETE if item.incomplete else ""
    pairs = str(found.difference.n) + (f"/{item.planned}" if item.incomplete else "")
    return [
        Entry(item.environment),
        Entry(item.actor),
        Entry(words(item)),
        signed(found.difference, digits, scale, mark),
        Entry(probability(found.p)),
        Entry(probability(item.adjusted)),
        Entry(f"{found.wins}/{found.ties}/{found.losses}" if found.difference.n else DASH),
        Entry(number(found.detectable, digits, scale)),
        Entry(DASH if found.needed is None else str(found.needed)),
        Entry(pairs),
    ]


def _caption(found: list[Contrast]) -> list[str]:
    tests = {item.result.test for item in found}
    parts = []
    if "McNemar" in tests:
        parts.append("McNemar's exact test where each task stands for one pair of successes")
    if "sign flip" in tests:
        parts.append("sign-flip permutation of whole tasks (9,999 flips, or all of them)")
    rest = [f"p: {', '.join(parts)}; two-sided."] if parts else []
    counted = sum(item.result.p is not None for item in found)
    return [
        "Mean of the differences over pairs of the same task and seed, both scored: mean reward, or percentage points "
        "of success. Brackets: 95% interval, bootstrap over tasks.",
        *rest,
        f"Holm p: corrected for the {counted} tests of this table. W/T/L: pairs won, tied and lost. MDE: the smallest "
        "true difference that these tasks would show with 80% power at the 5% level. Tasks needed: how many it takes "
        "to show a difference as large as the one seen.",
    ]


def _notes(found: list[Contrast]) -> list[str]:
    notes = []
    if any(item.incomplete for item in found):
        notes.append(f"{INCOMPLETE} Incomplete: fewer pairs are scored on both sides than planned.")
    parts = []
    for item in found:
        if item.conventions_differ:
            value = plus(item.zeros.value, *shape(item.metric))
            parts.append(f"{words(item)}, {item.actor} on {item.environment} {value} (n = {item.zeros.n})")
    if parts:
        notes.append(f"With errors counted as 0 instead of left out: {caption.listed(parts)}.")
    return notes


def _tidy(item: Contrast) -> dict[str, Scalar]:
    found = item.result
    return {
        "environment": item.environment,
        "actor": item.actor,
        "method": item.ours,
        "base": item.base,
        "kind": item.kind,
        "metric": item.metric,
        **flat("difference_scored", found.difference),
        **flat("difference_errors_zero", item.zeros),
        "p": found.p,
        "p_holm": item.adjusted,
        "test": found.test,
        "wins": found.wins,
        "ties": found.ties,
        "losses": found.losses,
        "detectable": found.detectable,
        "tasks_needed": found.needed,
        "pairs_planned": item.planned,
        "incomplete": item.incomplete,
        "simulated": ",".join(item.simulated),
    }
