"""`cota-bench sync`, `ui`, `show` and `merge`: what was recorded, looked at and put together."""

from __future__ import annotations

from pathlib import Path

from harness.errors import UsageError, nearest
from harness.study import load_study


def study_folder(study: str, results: Path) -> Path:
    """The results folder of a study, by name or by its YAML file. Raises `UsageError` with the nearest there is."""
    name = load_study(study).study if study.endswith((".yaml", ".yml")) else study
    folder = results / name
    if not folder.is_dir():
        marks = ("study.json", "ledger.jsonl.gz")  # other folders there belong to the tracking store
        there = [path.parent.name for mark in marks for path in results.glob(f"*/{mark}")]
        raise UsageError(
            f"There are no results of {name!r} in {results}.{nearest(name, there)} Run it: cota-bench run {study}"
        )
    return folder


def sync_command(study: str, results: Path, tracking_uri: str | None) -> int:
    """Rebuild MLflow from the ledger."""
    from harness.tracking.sync import sync

    result = sync(study_folder(study, results), tracking_uri)
    print(
        f"{result.uri}: {result.written} run(s) written, {result.unchanged} unchanged, "
        f"{result.incomplete} cell(s) incomplete; experiments {result.experiments[0]}, {result.experiments[1]}"
    )
    return 0


def ui_command(study: str | None, results: Path, tracking_uri: str | None, port: int) -> int:
    """Serve the MLflow UI until Ctrl-C."""
    from harness.tracking.ui import start_ui

    folder = study_folder(study, results) if study else results
    ui = start_ui(folder, port, tracking_uri=tracking_uri)
    if ui.process is None:
        return 0
    print("Ctrl-C stops the server.", flush=True)
    try:
        return ui.wait()
    except KeyboardInterrupt:
        return 0
    finally:
        ui.stop()


def show_command(study: str, episode: str, results: Path, as_json: bool, full: bool, beside: str | None = None) -> int:
    """Print one episode, alone or beside another method's."""
    from rich.console import Console

    from harness import beside as beside_
    from harness import show

    folder = study_folder(study, results)
    found = show.one(folder, show.wanted_of(episode, folder))
    if beside is not None:
        beside_.show_beside(found, beside_.partner(folder, found, beside), Console(), full=full)
    elif as_json:
        print(show.as_json(found))
    else:
        show.show(found, Console(), full=full, now=show.present_labels(folder).get(found.cell))
    return 0


def merge_command(folders: list[Path], into: Path) -> int:
    """Make one results folder of several."""
    from harness.merge import merge

    done = merge(folders, into)
    here = into.resolve()
    where = here.name if here.parent == Path("results").resolve() else f"{here.name} --results {here.parent}"
    print(f"{done.text()}\nTables and store follow: cota-bench report {where} and cota-bench sync {where}")
    return 0
