"""The commands `cota-bench report` and `compare`, found through their entry points; they import nothing heavy."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def report(
    study: Annotated[str, typer.Argument(help="Name of a study, or path of its YAML file.")],
    results: Annotated[Path, typer.Option(help="Folder that holds one folder a study.")] = Path("results"),
    mlflow: Annotated[bool, typer.Option("--mlflow", help="Read the tracking store instead of the ledger.")] = False,
    tracking_uri: Annotated[
        str | None,
        typer.Option(help="Read this MLflow store; default: MLFLOW_TRACKING_URI, else SQLite in the folder."),
    ] = None,
    against: Annotated[
        str | None, typer.Option(help="`paper` adds a table of the published values beside these.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Where to write; default: results/STUDY/report.")] = None,
    episodes: Annotated[int, typer.Option(min=0, help="At most so many episodes are embedded in the page.")] = 400,
) -> None:
    """Write the tables, figures and page of a study from its ledger, or from MLflow with identical numbers."""
    from harness.cli.tracked import study_folder
    from harness.tracking.client import resolve_uri
    from harness.tracking.links import cell_links
    from reports.frames import open_source
    from reports.write import write_report

    tracked = mlflow or tracking_uri is not None
    # A store may be read where there is no results folder; the ledger is in it.
    folder = results / study_name(study) if tracked else study_folder(study, results)
    name = folder.name
    source = open_source(resolve_uri(tracking_uri, results), name) if tracked else open_source(folder)
    links = cell_links(folder, tracking_uri)
    paths = write_report(source, out or folder / "report", against=against, episodes=episodes, links=links)
    typer.echo(f"From {source.origin}: {len(source.rows)} episodes. Wrote {len(paths)} files. Read: {paths[-1]}")


def study_name(study: str) -> str:
    """The name under which a study's results are kept."""
    if not study.endswith((".yaml", ".yml")):
        return study
    from harness.study import load_study

    return load_study(study).study


def compare(
    a: Annotated[str, typer.Argument(help="A study, STUDY:METHOD, or a results folder.")],
    b: Annotated[str, typer.Argument(help="The base: the same.")],
    results: Annotated[Path, typer.Option(help="Folder that holds one folder a study.")] = Path("results"),
    out: Annotated[Path | None, typer.Option(help="Also write to this .md or .csv.")] = None,
) -> None:
    """Hold two studies, methods or results folders against each other: paired differences and flips by task."""
    from rich.console import Console

    from reports.compare import compare as compare_
    from reports.compare_tables import show, write

    found = compare_(a, b, results)
    show(found, Console())
    if out is not None:
        typer.echo(f"Wrote {', '.join(map(str, write(found, out)))}")
