"""Comparable: whether a number of ours may be held against a published one, and if not, why.

Same model, same official data, same slice, same step limit, everything planned scored, nothing simulated: only then
does "outside the interval" say something about the method.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from harness.tracking.plan import PlannedCell
from reports.frames import Group
from reports.measured import Line
from reports.names import ACTORS, environment_plugin, published_actor, published_environment
from reports.published import published

STAND_IN: Final = ACTORS[0]  # what an actor without a published namesake is shown beside
MODEL_USER: Final = "LLM user"  # a customer played by a model, as the paper's is
BASE: Final = "Qwen2.5-0.5B"


def counterpart(cell: PlannedCell) -> str:
    """The published actor beside which a cell is shown: its namesake, else the paper's source of branches."""
    return published_actor(cell) or STAND_IN


def reasons(group: Group) -> list[str]:
    """Why a group's numbers are not comparable with the paper's; empty when they are."""
    cell = next((cell for cell in group.cells if not cell.skipped), group.cells[0])
    found = [f"simulated {part}" for part in group.simulated if part != MODEL_USER]
    if published_actor(cell) is None and "simulated actor" not in found:
        found.append(f"other model ({cell.params.get('actor.params.model') or cell.actor})")
    found += _data(cell) + _slice(cell)
    if group.incomplete:
        found.append(f"incomplete ({len(group.of('scored'))} of {group.planned} scored)")
    return found


def _data(cell: PlannedCell) -> list[str]:
    """The official data that the paper used, by what the plan shows of the environment's parameters."""
    plugin = environment_plugin(cell)
    if plugin == "webshop" and cell.params.get("environment.params.catalogue", "synthetic") == "synthetic":
        return ["generated catalogue"]
    if plugin == "alfworld" and cell.params.get("environment.params.games", "embedded") == "embedded":
        return ["generated games"]
    if plugin == "retail" and cell.params.get("environment.params.data", "") is None:
        return ["tasks of tau2, not tau3"]
    return []


def _slice(cell: PlannedCell) -> list[str]:
    line = next((row for row in published("table3") if row["environment"] == published_environment(cell)), None)
    if line is None:
        return []
    found = []
    tasks = slice_of(line, counterpart(cell))["tasks"]
    if len(cell.tasks) != tasks:
        found.append(f"other panel ({len(cell.tasks)} tasks, not {tasks})")
    steps = cell.params.get("environment.max_steps")
    if steps is not None and int(steps) != int(line["max_steps"]):
        found.append(f"other step limit ({steps}, not {line['max_steps']})")
    return found


def slice_of(line: Mapping[str, str], actor: str) -> dict[str, int]:
    """Tasks, repeats and step limit of a published actor, from a row of table 3."""
    kind = "deepseek" if actor.startswith("DeepSeek") else "local"
    return {
        "tasks": int(line[f"{kind}_tasks"]),
        "repeats": int(line[f"{kind}_repeats"]),
        "max_steps": int(line["max_steps"]),
    }


def measure_reasons(notes: tuple[str, ...], row: Line) -> list[str]:
    """Why a measure's row is not comparable, by what the measure says of its data, models and hardware."""
    said = " ".join(notes)
    found = ["simulated source"] if "simulated" in said.lower() else []
    if "base model" in said and BASE not in said:
        found.append("other base model")
    hardware = row.get("hardware")
    if hardware is not None and "H200" not in str(hardware):
        found.append(f"other hardware ({hardware})")
    return found
