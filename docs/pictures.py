"""Pictures of the documentation, taken from a real run in a real browser.

    cota-bench run quickstart && cota-bench run small && python docs/pictures.py results

Needs Chromium (`apt-get install chromium`). Look at what it made before committing it.
"""

from __future__ import annotations

import io
import sys
import time
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from harness.tracking.ui import start_ui  # noqa: E402
from tests.browser import Browser  # noqa: E402

# The assistant and the note about shared views stand in front of what is to be seen.
CLOSE = """['mlflow.assistant.chat_panel.close', 'mlflow.experiment_page.shared_view.dismiss'].forEach((id) =>
  document.querySelector(`[data-component-id="${id}"]`)?.click())"""
CHOOSE = """(() => {{ const select = document.getElementById('{}'); select.value = '{}';
  select.dispatchEvent(new Event('change')); }})()"""


def save(browser: Browser, name: str) -> None:
    """A picture of what is in view, with few colours so that it stays small."""
    from PIL import Image

    path = HERE / name
    browser.picture(path)
    picture = Image.open(io.BytesIO(path.read_bytes())).convert("RGB")
    picture.quantize(128).save(path, optimize=True)
    print(f"{path}: {path.stat().st_size // 1024} KiB")


def report(results: Path) -> None:
    """The page of a study: its head in light, its viewer in dark."""
    with Browser(1180, 900) as browser:
        browser.open((results / "quickstart" / "report" / "report.html").resolve().as_uri())
        browser.wait("!!document.getElementById('viewer').dataset.ready")
        save(browser, "report.png")
        browser.dark(True)
        browser.open((results / "small" / "report" / "report.html").resolve().as_uri())
        browser.wait("!!document.getElementById('viewer').dataset.ready")
        for name, value in (("left", "cota"), ("right", "origin")):
            browser.run(CHOOSE.format(name, value))
        browser.wait("document.getElementById('viewer').dataset.ready === 'cota|origin'")
        browser.key("d")
        browser.run("document.getElementById('parting').scrollIntoView(true)")
        save(browser, "report-episodes.png")
        browser.run("document.getElementById('anatomy').scrollIntoView(true)")
        save(browser, "report-anatomy.png")


def mlflow(results: Path) -> None:
    """The comparison in the MLflow page, and the report among a run's artefacts."""
    ui = start_ui(results / "quickstart", 0)
    try:
        with Browser(1280, 1000) as browser:
            browser.open(ui.link)
            browser.wait("document.querySelectorAll('svg.main-svg').length > 3")
            browser.run(CLOSE)
            time.sleep(5)  # the page draws its charts again in the new width
            save(browser, "mlflow-comparison.png")
    finally:
        ui.stop()


if __name__ == "__main__":
    where = Path(sys.argv[1] if len(sys.argv) > 1 else "results")
    report(where)
    mlflow(where)
