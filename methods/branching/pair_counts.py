"""Counts of what pairing made: Table 4 of the paper, and the balance of labels behind it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from methods.branching.folders import Folder
from methods.branching.splits import SPLITS, Split
from methods.branching.tables import write_card


@dataclass
class PairCounts:
    """What was seen and what was kept.

    Attributes:
        labels: all physical pairs by label, before ties were dropped, by (environment, split).
        left_out: tasks left out because a task of another split has the same content, by environment.
        physical: physical pairs kept, by (environment, split).
        rows: rows written (both orders), by (environment, split, label).
        kinds: physical pairs kept, by (environment, kind).
        critic: critic records, by (environment, split).
    """

    labels: Mapping[tuple[str, Split], Mapping[str, int]]
    left_out: Mapping[str, int]
    physical: Counter[tuple[str, Split]] = field(default_factory=Counter)
    rows: Counter[tuple[str, Split, str]] = field(default_factory=Counter)
    kinds: Counter[tuple[str, str]] = field(default_factory=Counter)
    critic: Counter[tuple[str, Split]] = field(default_factory=Counter)

    @property
    def environments(self) -> list[str]:
        """Names, sorted."""
        return sorted({environment for environment, _ in self.labels})

    def table4(self) -> list[dict[str, Any]]:
        """One row an environment in the shape of Table 4: physical pairs, and rows (both orders) a split."""
        return [
            {"environment": name, "physical_pairs": sum(self.physical[name, split] for split in SPLITS)}
            | {split: self.rows_of(name, split) for split in SPLITS}
            for name in self.environments
        ]

    def rows_of(self, environment: str, split: Split) -> int:
        """Rows of one file and environment."""
        return sum(self.rows[environment, split, label] for label in "ABT")

    def tie_share(self, environment: str, split: Split) -> float | None:
        """Share of T among the rows; None without rows."""
        total = self.rows_of(environment, split)
        return self.rows[environment, split, "T"] / total if total else None

    def warnings(self) -> list[str]:
        """What a reader should know before training on this."""
        found = []
        for name in self.environments:
            found += [f"{name}: no pairs in {split}" for split in SPLITS if not self.rows_of(name, split)]
            if name in self.left_out:
                found.append(f"{name}: {self.left_out[name]} tasks left out, their content is in another split")
        return found

    def as_json(self) -> dict[str, Any]:
        """Everything, for the card."""
        return {
            "table4": self.table4(),
            "labels_before": {f"{name}/{split}": dict(c) for (name, split), c in sorted(self.labels.items())},
            "rows": {"/".join(key): number for key, number in sorted(self.rows.items())},
            "kinds": {"/".join(key): number for key, number in sorted(self.kinds.items())},
            "critic_records": {"/".join(key): number for key, number in sorted(self.critic.items())},
            "warnings": self.warnings(),
        }


def write_pair_card(
    out: Path, folders: Sequence[Folder], counts: PairCounts, settings: Mapping[str, Any]
) -> dict[str, Any]:
    """Write the data card of a pair folder and return it."""
    card = {
        "kind": "pairs",
        **settings,
        "margins": {folder.about["environment"]: folder.margin for folder in folders},
        "branches": {folder.about["hash"]: folder.about["identity"] for folder in folders},
        "simulated": sorted({part for folder in folders for part in folder.about["simulated"]}),
        **counts.as_json(),
    }
    rows: dict[str, Mapping[Any, int]] = {"pairs": counts.rows, "critic": counts.critic}
    files = {"pairs": "{}.parquet", "critic": "critic-{}.parquet"}
    # `datasets` refuses a split without rows, so only the others are named.
    tables = {
        name: [
            {"split": split, "path": files[name].format(split)}
            for split in SPLITS
            if any(key[1] == split and number for key, number in counted.items())
        ]
        for name, counted in rows.items()
    }
    write_card(out, "Pairs for comparators, records for critics", card, tables)
    return card
