"""The typer application: signatures and help only; each command's work is in a file that it imports when it runs."""

from __future__ import annotations

import sys
from importlib.metadata import entry_points
from pathlib import Path
from typing import Annotated

import typer

from harness.errors import UsageError

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Benchmark harness for runtime intervention in LLM agents.",
)
STUDY = Annotated[str, typer.Argument(help="Name of a study in experiments/ or path of a YAML file.")]
RESULTS = Annotated[Path, typer.Option(help="Folder that holds one folder a study.")]
TRACKING = Annotated[
    str | None,
    typer.Option(envvar="MLFLOW_TRACKING_URI", help="MLflow store; default: SQLite inside the results folder."),
]
DEFAULT_RESULTS = Path("results")


def add_commands() -> None:
    """Commands of the other packages, found through entry points as plugins are."""
    for point in sorted(entry_points(group="cota_bench.commands"), key=lambda point: point.name):
        try:
            app.command(name=point.name)(point.load())
        except Exception as error:  # noqa: BLE001  said at once; the other commands stay usable
            print(f"warning: the command {point.name!r} ({point.value}) fails to import: {error}", file=sys.stderr)


def start() -> None:
    """Run the command line; errors of use become one message and exit status 2."""
    add_commands()
    try:
        app()
    except UsageError as error:
        from harness.show import visible

        print(f"error: {visible(str(error))}", file=sys.stderr)  # it may quote a task id or a model
        raise SystemExit(2) from error
    except BrokenPipeError:
        # The reader of a pipe went away (`cota-bench show ... | head`): nothing is wrong here.
        sys.stderr.close()
        raise SystemExit(0) from None


@app.command()
def run(
    study: STUDY,
    results: RESULTS = DEFAULT_RESULTS,
    tracking_uri: TRACKING = None,
    workers: Annotated[int | None, typer.Option(help="Override the study's workers.")] = None,
    backend: Annotated[str | None, typer.Option(help="loky, threading, sequential or dask.")] = None,
    address: Annotated[str | None, typer.Option(help="Scheduler of a dask cluster, tcp://HOST:8786.")] = None,
    processes: Annotated[int | None, typer.Option(help="Processes the threads are spread over.")] = None,
    no_tracking: Annotated[bool, typer.Option("--no-tracking", help="Write the ledger only.")] = False,
    no_report: Annotated[bool, typer.Option("--no-report", help="Leave the tables for later.")] = False,
) -> None:
    """Run what is missing of a study, track it, and write its tables. The same command resumes."""
    from harness.cli.run import run_command

    flags = (not no_tracking, not no_report)
    raise SystemExit(run_command(study, results, tracking_uri, workers, backend, *flags, address, processes))


@app.command()
def plan(
    study: STUDY,
    results: RESULTS = DEFAULT_RESULTS,
    explain: Annotated[str | None, typer.Option(help="Print what makes the key of the cell with this prefix.")] = None,
) -> None:
    """Show cells, episodes, what is done, and the expected calls, tokens and time, before anything is spent."""
    from harness.cli.run import plan_command

    raise SystemExit(plan_command(study, results, explain))


@app.command()
def sync(study: STUDY, results: RESULTS = DEFAULT_RESULTS, tracking_uri: TRACKING = None) -> None:
    """Rebuild MLflow from the ledger."""
    from harness.cli.tracked import sync_command

    raise SystemExit(sync_command(study, results, tracking_uri))


@app.command()
def ui(
    study: Annotated[str | None, typer.Argument(help="Open on this study's comparison.")] = None,
    results: RESULTS = DEFAULT_RESULTS,
    tracking_uri: TRACKING = None,
    port: Annotated[int, typer.Option(help="Port on 127.0.0.1; 0 takes a free one.")] = 5000,
) -> None:
    """Start the MLflow UI on this machine and print the link that opens on the comparison."""
    from harness.cli.tracked import ui_command

    raise SystemExit(ui_command(study, results, tracking_uri, port))


@app.command()
def show(
    study: STUDY,
    episode: Annotated[str, typer.Argument(help="Task id, CELL:TASK, or method/actor/environment/seed/task.")],
    results: RESULTS = DEFAULT_RESULTS,
    as_json: Annotated[bool, typer.Option("--json", help="The record itself.")] = False,
    full: Annotated[bool, typer.Option("--full", help="Whole observations and thoughts.")] = False,
    beside: Annotated[
        str | None, typer.Option(help="Another method's episode of the same task beside it, and where they part.")
    ] = None,
) -> None:
    """Show one episode step by step."""
    from harness.cli.tracked import show_command

    raise SystemExit(show_command(study, episode, results, as_json, full, beside))


@app.command()
def serve(
    study: STUDY,
    results: RESULTS = DEFAULT_RESULTS,
    gpus: Annotated[int | None, typer.Option(min=0, help="GPUs to use; default all, 0 for vLLM's CPU build.")] = None,
    max_model_len: Annotated[int, typer.Option(min=256, help="Context of each server in tokens.")] = 16_384,
    python: Annotated[
        str | None, typer.Option(envvar="COTA_BENCH_VLLM_PYTHON", help="Interpreter that has vLLM; default this one.")
    ] = None,
    vllm_args: Annotated[str, typer.Option(help="More arguments for each server, as one text.")] = "",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the commands and start nothing.")] = False,
) -> None:
    """Start vLLM for the models of a study on this machine, wait until they answer, and record their versions."""
    from harness.cli.serve import serve_command

    raise SystemExit(serve_command(study, results, gpus, max_model_len, python, vllm_args, dry_run))


@app.command()
def merge(
    folders: Annotated[list[Path], typer.Argument(help="Results folders of one study, such as anna/results/main.")],
    into: Annotated[Path, typer.Option(help="The folder to make; it may be one of them.")],
) -> None:
    """Merge results folders of one study from several people; rows that ended differently are refused."""
    from harness.cli.tracked import merge_command

    raise SystemExit(merge_command(folders, into))


@app.command(name="list")
def list_() -> None:
    """List plugins and studies, and say which plugins are broken and why."""
    from rich.console import Console

    from harness.cli.listing import show_lists

    raise SystemExit(show_lists(Console()))


@app.command()
def doctor() -> None:
    """Say what is installed, which data and keys are found, what is missing and how to get it."""
    from rich.console import Console

    from harness.cli.doctor import show_doctor

    raise SystemExit(show_doctor(Console()))


@app.command()
def check(
    name: Annotated[str, typer.Argument(help="Name of a registered plugin.")],
    kind: Annotated[str | None, typer.Option(help="methods, environments, actors, judges or candidates.")] = None,
    params: Annotated[str, typer.Option(help="Parameters as a JSON object.")] = "{}",
    split: Annotated[str | None, typer.Option(help="Split of an environment to try; default test.")] = None,
) -> None:
    """Run the conformance suite for one plugin."""
    from rich.console import Console

    from harness.cli.checking import show_check

    raise SystemExit(show_check(Console(), name, kind, params, split))
