"""Whatever web pages a report has: what models and data wrote is text there, never markup or a script."""

from __future__ import annotations

from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

from harness.records import Action, Candidate, Episode
from tests.synthetic import make_episode, planned_cells, write_ledger

pytest.importorskip("pandas")
EVIL = "</script></style></textarea>--><script>alert(1)</script><img src=x onerror=alert(1)>\"'`${alert(1)}]]>\u2028</title>"


class Elements(HTMLParser):
    """Elements and attributes that could run something."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self.scripts = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.scripts += tag == "script"
        self.found += [f"{tag} {name}" for name, value in attrs if name.startswith("on") and "alert" in (value or "")]
        self.found += [f"{tag} {name}" for name, value in attrs if (value or "").strip().lower().startswith("javascript:")]
        self.found += [tag for name, value in attrs if (name, value) == ("src", "x")]


def spoilt(episode: Episode) -> Episode:
    """The episode with hostile text wherever a model or a data set writes."""
    action = Action(EVIL, EVIL)
    reviews = [
        tuple(
            replace(review, proposal=action, thought=EVIL, message=EVIL, fail_open=(EVIL,), recommended=(action,),
                    candidates=tuple(Candidate(action, EVIL) for _ in review.candidates))
            for review in step.reviews
        )
        for step in episode.steps
    ]  # fmt: skip
    steps = tuple(
        replace(step, observation=EVIL, thought=EVIL, executed=action, reviews=found)
        for step, found in zip(episode.steps, reviews, strict=True)
    )
    return replace(episode, steps=steps, task=EVIL, reason=EVIL, final_observation=EVIL, info={EVIL: EVIL})


def written(folder: Path, evil: bool) -> dict[str, str]:
    """Every web page that a report of a small study consists of."""
    from reports.write import write_report

    cells = planned_cells(methods=("origin", "cota"), actors=("weak",), environments=("webshop",), seeds=(0,), tasks=3)
    tasks = [(cell, task) for cell in cells for task in cell.tasks]
    made = [make_episode(cell, task, "failed" if i == 0 else "done") for i, (cell, task) in enumerate(tasks)]
    write_ledger(folder, [spoilt(episode) if evil else episode for episode in made])
    write_report(folder, folder / "report")
    pages = sorted(path for path in folder.rglob("*") if path.suffix in (".html", ".htm", ".svg"))
    return {path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8") for path in pages}


def test_what_was_written_is_never_markup(tmp_path: Path) -> None:
    plain, evil = written(tmp_path / "plain", False), written(tmp_path / "evil", True)
    assert plain.keys() == evil.keys()
    pages = {name: text for name, text in evil.items() if not name.endswith(".svg")}
    if not pages:
        pytest.skip("this version writes no web page")
    for name, text in evil.items():
        counts = []
        for page in (plain[name], text):
            parser = Elements()
            parser.feed(page)
            assert parser.found == [], name
            counts.append(parser.scripts)
        assert counts[0] == counts[1], f"{name} has another script"
