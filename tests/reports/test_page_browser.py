"""The page in a real headless browser: nothing loaded, no error, methods set side by side, dark and light, print."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from harness.beside import WHY
from harness.records import Action
from reports.frames import open_source
from reports.page import render_page
from reports.tables import build_all
from tests.browser import Browser, chromium
from tests.synthetic import make_episode, planned_cells, write_ledger, write_plan

pytestmark = pytest.mark.skipif(chromium() is None, reason="no Chromium on this machine (apt-get install chromium)")
HOSTILE = "<script>document.title='pwned'</script><img src=x onerror=\"document.title='pwned'\">"
READY = "document.getElementById('viewer').dataset.ready === '{}'"


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three methods; `late` does something else at step 2 of retail-1, where another text is hostile."""
    folder = tmp_path_factory.mktemp("page") / "demo"
    cells = planned_cells(
        methods=("origin", "same", "late"), actors=("weak",), environments=("webshop", "retail"), seeds=(0, 1), tasks=3
    )
    write_plan(folder, cells)
    made = []
    for cell in cells:
        for task in cell.tasks:
            # The same draws for every method: only what is changed below differs.
            twin = next(
                other
                for other in cells
                if (other.method, other.environment, other.seed) == ("origin", cell.environment, cell.seed)
            )
            episode = replace(make_episode(twin, task), cell=cell.key, method=cell.method)
            if cell.method == "late":
                other = replace(episode.steps[2], executed=Action("another action", "another"), thought=HOSTILE)
                episode = replace(episode, steps=(*episode.steps[:2], other, *episode.steps[3:]), task=HOSTILE)
            made.append(episode)
    write_ledger(folder, made)
    source = open_source(folder)
    path = folder / "report.html"
    path.write_text(render_page(source, list(build_all(source))), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with Browser() as found:
        yield found


@pytest.fixture
def opened(browser: Browser, page: Path) -> Browser:
    browser.call("Page.navigate", url="about:blank")
    browser.problems.clear()
    browser.requests.clear()
    browser.dark(False)
    browser.open(page.as_uri())
    browser.wait("!!document.getElementById('viewer').dataset.ready")
    return browser


def pick(browser: Browser, **choices: str) -> None:
    for name, value in choices.items():
        browser.run(
            f"(() => {{ const s = document.getElementById('{name}'); s.value = '{value}'; s.dispatchEvent(new Event('change')); }})()"
        )
    if "right" in choices:
        browser.wait(READY.format(f"{choices['left']}|{choices['right']}" if choices["right"] else choices["left"]))


def test_opens_without_an_error_or_a_request(opened: Browser, page: Path) -> None:
    assert opened.problems == []
    assert [url for url in opened.requests if not url.startswith("data:")] == [page.as_uri()]
    blocked = opened.run("fetch('http://127.0.0.1:9/').then(() => 'loaded', (error) => error.name)")
    assert blocked == "TypeError"  # the page's own policy, before any network
    assert any("Content Security Policy" in problem for problem in opened.problems)
    assert opened.run("document.title") == "demo: report"
    assert opened.run("document.querySelectorAll('svg.chart').length") >= 4
    # Nothing sticks out of the page at the width of a laptop.
    assert opened.run("document.documentElement.scrollWidth <= window.innerWidth")


def test_two_methods_and_where_they_part(opened: Browser) -> None:
    pick(opened, environment="retail", task="retail-1", left="late", right="origin")
    assert opened.run("document.getElementById('parting').textContent") == f"Here they part: {WHY['action']}."
    parted = opened.run("[...document.querySelectorAll('.pair.parted .does')].map((e) => e.textContent)")
    assert parted[0] == "another action"
    assert parted[1].startswith("look at thing 2")
    assert opened.run("document.querySelector('.pair.parted h4').textContent").startswith("step 2")
    assert opened.run("document.querySelectorAll('.box.same').length") == 4
    border = "getComputedStyle(document.querySelector('{}')).borderTopWidth"
    assert opened.run(border.format(".pair.parted .box")) == "2px"
    assert opened.run(border.format(".pair:not(.parted) .box")) == "1px"
    pick(opened, left="same", right="origin")
    assert opened.run("document.getElementById('parting')") is None
    assert "They never part" in opened.run("document.getElementById('viewer').textContent")
    pick(opened, left="late", right="")
    assert opened.run("document.querySelectorAll('.pair.single').length") == 6
    assert opened.problems == []


def test_what_a_model_wrote_stays_text(opened: Browser) -> None:
    pick(opened, left="late", right="origin")
    assert HOSTILE in opened.run("document.getElementById('viewer').textContent")
    assert opened.run("document.querySelectorAll('#viewer script, #viewer img').length") == 0
    assert opened.run("document.title") == "demo: report"


def test_by_keyboard(opened: Browser) -> None:
    before = opened.run("document.getElementById('task').value")
    opened.key("n")
    opened.wait(
        f"document.getElementById('task').value !== '{before}' && !!document.getElementById('viewer').dataset.ready"
    )
    opened.key("p")
    opened.wait(
        f"document.getElementById('task').value === '{before}' && !!document.getElementById('viewer').dataset.ready"
    )
    pick(opened, left="late", right="origin")
    opened.key("d")
    opened.wait("document.activeElement.id === 'parting'")
    box = opened.run(
        "(() => { const r = document.getElementById('parting').getBoundingClientRect(); return r.top >= 0 && r.bottom <= innerHeight; })()"
    )
    assert box
    reachable = "[...document.querySelectorAll('a[href], button, select, summary')].every((e) => e.tabIndex === 0)"
    assert opened.run(reachable)
    named = "[...document.querySelectorAll('button, select')].every((e) => e.textContent.trim() || e.ariaLabel || e.labels.length)"
    assert opened.run(named)


def test_a_cell_links_to_its_episode(opened: Browser) -> None:
    link = opened.run("[...document.querySelectorAll('.look a')].map((a) => a.hash).pop()")
    opened.run("[...document.querySelectorAll('.look a')].pop().click()")
    opened.wait(f"location.hash === '{link}' && document.getElementById('left').value === 'late'")
    opened.wait("(document.getElementById('viewer').dataset.ready || '').startsWith('late|')")
    assert opened.run(
        "document.getElementById('viewer').textContent.includes(decodeURIComponent(location.hash.split('=')[1]))"
    )


def test_dark_and_light(opened: Browser) -> None:
    colour = "getComputedStyle(document.body).backgroundColor + getComputedStyle(document.body).color"
    light = opened.run(colour)
    assert light == "rgb(255, 255, 255)rgb(27, 31, 36)"
    opened.dark(True)
    opened.wait(f"{colour} !== '{light}'")
    assert opened.run(colour) == "rgb(20, 23, 27)rgb(231, 234, 238)"
    assert opened.run("getComputedStyle(document.querySelector('svg.chart .label')).fill") == "rgb(231, 234, 238)"
    opened.run("document.getElementById('theme').click()")
    assert opened.run(colour) == light
    opened.run("document.getElementById('theme').click()")
    assert opened.run("document.documentElement.dataset.theme") == "dark"
    opened.run("localStorage.clear()")
    assert contrast(opened) >= 4.5


def contrast(browser: Browser) -> float:
    """The lowest contrast of text against its background among plain text, soft text and links (WCAG)."""
    code = """(() => {
      const lum = (c) => { const v = c.match(/[\\d.]+/g).slice(0, 3).map((x) => x / 255).map((x) => x <= .03928 ? x / 12.92 : ((x + .055) / 1.055) ** 2.4);
        return .2126 * v[0] + .7152 * v[1] + .0722 * v[2]; };
      const back = (e) => { while (e && getComputedStyle(e).backgroundColor === 'rgba(0, 0, 0, 0)') e = e.parentElement; return getComputedStyle(e).backgroundColor; };
      return Math.min(...[...document.querySelectorAll('p, td, th, a, dt, dd, summary, .said, h2, .chip')].map((e) => {
        const [a, b] = [lum(getComputedStyle(e).color), lum(back(e))].sort((x, y) => y - x); return (a + .05) / (b + .05); }));
    })()"""
    return float(browser.run(code))


def test_contrast_in_light(opened: Browser) -> None:
    assert contrast(opened) >= 4.5


def test_prints(opened: Browser) -> None:
    opened.dark(True)
    pdf = opened.pdf()
    assert pdf.startswith(b"%PDF")
    opened.call("Emulation.setEmulatedMedia", media="print")
    assert opened.run("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert opened.run("getComputedStyle(document.getElementById('pick')).display") == "none"
    opened.call("Emulation.setEmulatedMedia", media="")
