"""The page: complete, self-contained, and harmless whatever a model or an environment wrote."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from harness import provenance
from harness.records import Action, Candidate, Episode, Review, Vote
from harness.rows import FIELDS
from harness.tracking.plan import PlannedCell
from harness.tracking.tracked import Tracked
from reports.frames import open_source
from reports.page import figure_of, render_page
from reports.page.anatomy import anatomy, summed
from reports.page.origins import harmless, origins
from reports.page.sample import choose, sample, unpacked
from reports.page.view import LONG, clip, view_of
from reports.table import Column, Entry, Table
from reports.tables import build_all
from reports.write import write_report
from tests.synthetic import make_episode, planned_cells, write_ledger, write_plan

HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)>\x1b[31m\x00</script><!-- \u2028 ]]>"
SMALL: dict[str, Any] = {"methods": ("origin", "cota"), "actors": ("weak",), "environments": ("webshop", "retail")}


def study(folder: Path, cells: list[PlannedCell], **changes: Any) -> Tracked:
    write_plan(folder, cells)
    write_ledger(folder, [make_episode(cell, task, **changes) for cell in cells for task in cell.tasks])
    return open_source(folder)


@pytest.fixture
def source(tmp_path: Path) -> Tracked:
    return study(tmp_path / "demo", planned_cells(seeds=(0, 1), tasks=3, **SMALL))


def page_of(source: Tracked, **options: Any) -> str:
    return render_page(source, list(build_all(source)), **options)


class Elements(HTMLParser):
    """Every element and its attributes, with the text of scripts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        if tag not in ("meta", "link", "img", "br", "input"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def data_of(page: str) -> dict[str, Any]:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.S)
    assert found
    return dict(json.loads(found[1]))


def views(page: str) -> Iterator[dict[str, Any]]:
    for block in data_of(page)["blocks"]:
        yield from unpacked(block["body"])["views"].values()


def test_every_part_is_there(source: Tracked) -> None:
    page = page_of(source)
    elements = Elements(page)
    assert elements.open == []
    sections = {attrs.get("id") for tag, attrs in elements.found if tag == "section"}
    assert {"performance", "tables", "anatomy", "cost", "cells", "episodes", "origins"} <= sections
    assert "SIMULATED: actor, user." in page
    assert "weak (simulated)" in page
    for table in build_all(source):
        for row in table.body:
            assert all(entry.text.replace("<", "&lt;") in page for entry in row)
    for cell in source.cells:
        assert page.count(f"#episode={cell.key}") == 1


def test_nothing_is_loaded_from_anywhere(source: Tracked) -> None:
    links = {cell.key: f"http://127.0.0.1:5000/#/{cell.key}" for cell in source.cells}
    page = page_of(source, links=links)
    for tag, attrs in Elements(page).found:
        assert not (attrs.get("src") or "data:").removeprefix("data:").startswith(("http", "/"))
        if tag in ("link", "script", "img", "iframe"):
            assert (attrs.get("href") or attrs.get("src") or "data:").startswith("data:")
    assert not re.search(r"url\(|@import", page)
    assert all(f'href="{link}"' in page for link in links.values())


def test_only_web_addresses_become_links(source: Tracked) -> None:
    page = page_of(source, links={cell.key: "javascript:alert(1)" for cell in source.cells})
    assert "javascript:" not in page


def hostile_episode(cell: PlannedCell, task: str, text: str) -> Episode:
    action = Action(text, text)
    review = Review(
        proposal=action, thought=text, candidates=(Candidate(action, text),), votes=(Vote(0, "A", "B", True),), fired=True,
        message=text, recommended=(action,), response="novel", fail_open=(text,),
    )  # fmt: skip
    plain = make_episode(cell, task)
    step = replace(plain.steps[0], observation=text, reviews=(review,), executed=action, thought=text)
    return replace(
        plain, task=text, reason=text, final_observation=text, steps=(step,), simulated=(text,), info={"unscored": text}
    )


def test_hostile_text_stays_text(tmp_path: Path) -> None:
    cells = planned_cells(
        study="demo", methods=("origin", "<b>m</b>"), actors=('a"><i>',), environments=("webshop",), seeds=(0,), tasks=2
    )
    write_plan(tmp_path / "demo", cells)
    write_ledger(tmp_path / "demo", [hostile_episode(cell, task, HOSTILE) for cell in cells for task in cell.tasks])
    page = page_of(open_source(tmp_path / "demo"))
    tags = [tag for tag, _ in Elements(page).found]
    assert tags.count("script") == 2
    assert not {"img", "i", "b"} & set(tags) - {"i", "b"}
    assert not any(name.startswith("on") for _, attrs in Elements(page).found for name in attrs)
    assert "alert(1)</script>" not in page
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f\u2028]", page)
    for view in views(page):
        assert view["steps"][0]["sees"].startswith("<script>alert(1)</script>")  # as text, for the script to set
        assert "\\x1b[31m\\x00" in view["steps"][0]["sees"]
        assert "\x1b" not in json.dumps(view)


def test_a_huge_answer_is_cut_with_a_notice(tmp_path: Path) -> None:
    cells = planned_cells(methods=("origin",), actors=("weak",), environments=("webshop",), seeds=(0,), tasks=1)
    write_plan(tmp_path / "demo", cells)
    huge = "<" * 10_000_000
    episode = make_episode(cells[0], "webshop-0")
    step = replace(episode.steps[0], observation=huge, thought=huge, executed=Action(huge, huge))
    write_ledger(tmp_path / "demo", [replace(episode, steps=(step, *episode.steps[1:]))])
    page = page_of(open_source(tmp_path / "demo"))
    assert len(page) < 150_000
    (view,) = views(page)
    assert view["steps"][0]["sees"].endswith(f"({10_000_000 - LONG:,} more characters)")


def test_what_is_embedded_and_what_is_not(tmp_path: Path) -> None:
    cells = planned_cells(seeds=(0, 1), tasks=8, **SMALL)
    source = study(tmp_path / "demo", cells)
    found = sample(source, limit=10)
    assert (found.shown, found.recorded) == (10, 64)
    # Whole blocks: every method of a task, so that two can be set side by side.
    assert all(set(block["ends"]) == {"origin", "cota"} for block in found.blocks)
    assert {block["environment"] for block in found.blocks} == {"webshop", "retail"}
    page = page_of(source, episodes=10)
    assert "10 of 64 recorded episodes are in this page" in page
    assert "--episodes N" in page
    assert len(list(views(page))) == 10
    assert sample(source, limit=0).blocks == []
    assert "No episode is recorded here" in page_of(source, episodes=0)
    assert page_of(source, episodes=10) == page


def test_tasks_that_methods_end_differently_come_first(tmp_path: Path) -> None:
    cells = planned_cells(seeds=(0,), tasks=6, methods=("origin", "cota"), actors=("weak",), environments=("retail",))
    write_plan(tmp_path / "demo", cells)
    made = [
        make_episode(cell, task, reward=float(task == "retail-4" and cell.method == "cota"), success=False)
        for cell in cells
        for task in cell.tasks
    ]
    write_ledger(tmp_path / "demo", made)
    assert [place[2] for place in choose(open_source(tmp_path / "demo"), 2)] == ["retail-4"]


def test_a_renamed_label_is_the_one_of_now(tmp_path: Path) -> None:
    """Rows keep the labels of their time; page and viewer use those of the plan."""
    cells = planned_cells(seeds=(0,), tasks=2, **SMALL)
    study(tmp_path / "demo", cells)
    now = [replace(cell, actor="feeble", environment=cell.environment.replace("webshop", "shop")) for cell in cells]
    (tmp_path / "demo" / "study.json").unlink()
    write_plan(tmp_path / "demo", now)
    source = open_source(tmp_path / "demo")
    assert {(block["actor"], block["environment"]) for block in sample(source).blocks} == {
        ("feeble", "shop"),
        ("feeble", "retail"),
    }
    assert "feeble (simulated)" in page_of(source)


def test_anatomy_counts_what_happened(tmp_path: Path) -> None:
    cells = planned_cells(seeds=(0,), tasks=5, **SMALL)
    source = study(tmp_path / "demo", cells)
    episodes = list(source.records())
    found = anatomy(source)
    assert found is not None
    assert found.methods == ["cota"]
    reviews = [(step.index, review) for e in episodes for step in e.steps for review in step.reviews]
    rows = source.rows
    for step in range(4):
        here = [review for index, review in reviews if index == step]
        assert summed(rows, "reviews_by_step")[str(step)] == [len(here), sum(review.fired for review in here)]
    won = [sum(vote.won for vote in review.votes) for _, review in reviews]
    assert summed(rows, "reviews_by_winners") == {str(n): won.count(n) for n in set(won)}
    ties = sum(len(review.fail_open) for _, review in reviews)
    assert found.fail_opens is not None
    assert sum(int(row[-1].text) for row in found.fail_opens.body if row[-1].text != "–") == ties


def test_no_anatomy_without_interventions(tmp_path: Path) -> None:
    cells = planned_cells(methods=("origin",), actors=("weak",), seeds=(0,), tasks=2)
    source = study(tmp_path / "demo", cells)
    assert anatomy(source) is None
    assert 'id="anatomy"' not in page_of(source)


@pytest.mark.parametrize("status", ["failed", "skipped"])
def test_a_page_of_nothing_but_failures(tmp_path: Path, status: Any) -> None:
    cells = planned_cells(seeds=(0,), tasks=2, **SMALL)
    page = page_of(study(tmp_path / "demo", cells, status=status))
    assert Elements(page).open == []
    assert "no scored episode" in page or "n=0" in page


def test_a_plan_without_any_episode(tmp_path: Path) -> None:
    write_plan(tmp_path / "demo", planned_cells(seeds=(0,), tasks=2, **SMALL))
    page = page_of(open_source(tmp_path / "demo"))
    assert "No episode is recorded" in page
    assert "unknown" in page


def test_new_tables_and_figures_appear(source: Tracked) -> None:
    table = Table(
        "own",
        "My own table.",
        [Column("x"), Column("y", "g"), Column("z", "g")],
        [[Entry("1"), Entry("2"), Entry("<3>")]],
    )
    figures = [figure_of("a", b"<svg onload='x()'/>", "About a."), figure_of("b", b"<svg/>")]
    assert all(figure.source.startswith("data:image/svg+xml;base64,") for figure in figures)
    page = render_page(source, [table], figures)
    assert "My own table." in page
    assert "&lt;3&gt;" in page
    assert '<th class="group" colspan="2">g</th>' in page
    assert "About a." in page
    assert "onload" not in page


def test_origins_say_what_ran_and_hide_secrets(source: Tracked, tmp_path: Path) -> None:
    folder = tmp_path / "demo"
    assert origins(source)["runs"] == []
    provenance.record(folder)
    provenance.record(folder)
    (run,) = [dict(run) for run in origins(source)["runs"]]
    assert re.match(r"[0-9a-f]{40}|unknown", run["commit"])
    assert "cores" in run["processor"]
    study = {
        "api_key": "sk-1",
        "api_key_env": "NAME",
        "url": "http://me:pw@host/v1",
        "max_tokens": 5,
        "list": [{"token": "x"}],
    }
    told = json.dumps(harmless(study))
    assert not any(word in told for word in ("sk-1", "me:pw", '"x"'))
    assert '"max_tokens": 5' in told
    labels = [label for label, _, _ in origins(source)["panels"]]
    assert labels == ["webshop", "retail"]


def test_the_report_writes_it(source: Tracked, tmp_path: Path) -> None:
    paths = write_report(tmp_path / "demo", tmp_path / "out", episodes=2)
    assert paths[-1].name == "report.html"
    assert "2 of 24 recorded episodes" in paths[-1].read_text(encoding="utf-8")


def test_clip_and_view_are_total() -> None:
    assert clip("a\r\nb\tc", 10) == "a\nb\tc"
    assert clip("x" * 12, 10) == "x" * 10 + " … (2 more characters)"
    (cell,) = planned_cells(methods=("cota",), actors=("weak",), environments=("retail",), seeds=(0,), tasks=1)
    from harness.codec import to_json

    found = view_of(to_json(make_episode(cell, "retail-0", steps=90)))
    assert (len(found["steps"]), found["more"]) == (80, 10)
    assert found["steps"][0]["reviews"][0]["candidates"][0]["votes"] == ["A/B"]
    assert "reviews_by_step" in [name for name, _, _ in FIELDS]
