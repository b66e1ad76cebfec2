"""`everlearn run` and `everlearn resume`: a method learns a stream in a folder."""

import json
from pathlib import Path
from typing import Annotated

import typer

from everlearn.cli.jobs import RunRequest, make_job, parse_trackers, run_to_end, start
from everlearn.cli.messages import print_message
from everlearn.cli.options import with_plan_options, with_stream_options
from everlearn.cli.report import print_table
from everlearn.cli.stream_options import StreamOptions

Preset = Annotated[
    str,
    typer.Option(
        help="Stream, evaluation and settings: toy, latents-nc, latents-nic, quickstart, small, pictures, "
        "paper, paper-exact, environments, vase-a, vase-b, vase-sprites."
    ),
]
Device = Annotated[str, typer.Option(help="auto (a GPU where there is one), cpu, cuda, cuda:0 ...")]
SaveSeconds = Annotated[
    float, typer.Option(help="Write a checkpoint after so long, when a task ends.", min=0)
]
Log = Annotated[
    str | None,
    typer.Option(
        help="Log numbers, in the run's folder, to: tensorboard, wandb, mlflow, with commas between."
    ),
]
_SETTINGS = "Any setting of a method is an option, too; `everlearn methods METHOD` lists them."
Words = Annotated[
    list[str] | None, typer.Argument(metavar="METHOD", help=_SETTINGS, show_default=False)
]


@with_plan_options
@with_stream_options
def run(
    changes: StreamOptions,
    plan_options: StreamOptions,
    arguments: Words = None,
    preset: Preset = "small",
    out: Annotated[
        Path | None,
        typer.Option(help="Folder.", show_default="out/runs/METHOD-PRESET-seedSEED"),
    ] = None,
    device: Device = "auto",
    save_seconds: SaveSeconds = 30.0,
    log: Log = None,
) -> None:
    """Let a method learn a stream; `everlearn methods` lists the methods."""
    from everlearn.cli.method_options import parse_methods

    settings = parse_methods(arguments or ())
    if len(settings) > 1:
        several = " ".join(settings)
        raise ValueError(f"run takes one method; for several: everlearn compare {several}")
    [(method, changes_to_method)] = settings.items()
    request = RunRequest(preset, changes, plan_options, device, save_seconds, parse_trackers(log))
    job = make_job(out, method, changes_to_method, request)
    start(job)
    _print_result(job.folder)


def resume(
    folder: Annotated[Path, typer.Argument(help="The run's folder.", show_default=False)],
    data: Annotated[
        Path | None, typer.Option(help="Folder of the data sets.", show_default="EVERLEARN_DATA")
    ] = None,
    log: Log = None,
) -> None:
    """Go on with a run from its last checkpoint."""
    from everlearn.runs import Run

    trackers, kept = parse_trackers(log), Run.open(folder)
    if kept.finished:
        print_message(f"{folder} is finished already")
        return
    from everlearn.runs import launch as runs

    rows, stream = runs.resume(folder, data), json.loads(kept.stream)
    name = f"{kept.settings['method']}, seed {stream.get('seed', 0)}"
    run_to_end(rows, folder, name, stream.get("tasks"), trackers)
    _print_result(folder)


def _print_result(folder: Path) -> None:
    from everlearn.runs.load import load_runs

    print_table(load_runs(folder))
    print_message(f"the run is in {folder}; for a page of it: everlearn report {folder}")
