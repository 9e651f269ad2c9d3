"""The command `cota-bench report`: found by the command line through its entry point; imports nothing heavy."""

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
    out: Annotated[Path | None, typer.Option(help="Where to write; default: results/STUDY/report.")] = None,
    episodes: Annotated[int, typer.Option(min=0, help="At most so many episodes are embedded in the page.")] = 400,
) -> None:
    """Write tables and page of a study from its ledger, or from MLflow with identical numbers."""
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
    links = source.links if tracked else cell_links(folder)
    paths = write_report(source, out or folder / "report", episodes=episodes, links=links)
    typer.echo(f"From {source.origin}: {len(source.rows)} episodes. Wrote {len(paths)} files. Read: {paths[-1]}")


def study_name(study: str) -> str:
    """The name under which a study's results are kept."""
    if not study.endswith((".yaml", ".yml")):
        return study
    from harness.study import load_study

    return load_study(study).study
