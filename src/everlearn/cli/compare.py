"""`everlearn compare`: methods and seeds on one stream, as one table, one plot and one page."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from everlearn.cli.jobs import RunRequest, check, ensure, make_job, parse_trackers
from everlearn.cli.options import with_plan_options, with_stream_options
from everlearn.cli.report import check_plots, write_report
from everlearn.cli.run import Device, Log, Preset, SaveSeconds, Words
from everlearn.cli.stream_options import StreamOptions
from everlearn.cli.values import parse_value

TITLE = "Everlearn comparison"
DEFAULT = ("dcl-plus", "er", "fine-tuning", "joint")


@with_plan_options
@with_stream_options
def compare(
    changes: StreamOptions,
    plan_options: StreamOptions,
    arguments: Words = None,
    seeds: Annotated[str, typer.Option(help="With commas between.")] = "0,1,2",
    runs: Annotated[
        Path | None, typer.Option(help="Learn nothing: compare the runs in this folder.")
    ] = None,
    preset: Preset = "small",
    out: Annotated[
        Path | None, typer.Option(help="Folder.", show_default="out/compare-PRESET")
    ] = None,
    device: Device = "auto",
    save_seconds: SaveSeconds = 30.0,
    log: Log = None,
) -> None:
    """Let methods (by default dcl-plus, er, fine-tuning, joint) learn streams of several seeds."""
    check_plots()
    if runs is not None:
        _check_alone(arguments or (), [*changes.values(), *plan_options.values(), log])
        write_report([runs], out or runs, TITLE)
        return
    if changes["seed"] is not None:
        raise ValueError(f"compare takes several seeds: --seeds {changes['seed']}, not --seed")
    out = out or Path("out", f"compare-{preset}")
    request = RunRequest(preset, changes, plan_options, device, save_seconds, parse_trackers(log))
    folders = run_all(arguments or (), parse_seeds(seeds), out, request)
    write_report(folders, out, TITLE)


def run_all(
    arguments: Sequence[str], seeds: Sequence[int], out: Path, request: RunRequest
) -> list[Path]:
    """Have every method learn the stream of every seed; return the folders of the runs."""
    from everlearn.cli.method_options import parse_methods

    settings = parse_methods(arguments, DEFAULT)
    jobs = [
        make_job(out / f"{method}-seed{seed}", method, changes, request.with_seed(seed))
        for seed in seeds
        for method, changes in settings.items()
    ]
    for job in jobs:
        check(job)  # what is wrong is said before others take their hours
    for job in jobs:
        ensure(job)
    return [job.folder for job in jobs]


def parse_seeds(text: str) -> tuple[int, ...]:
    """Read seeds with commas between, each once."""
    seeds: tuple[int, ...] = parse_value(text, tuple[int, ...], "--seeds")
    if not seeds or len(set(seeds)) < len(seeds):
        raise ValueError(f"--seeds must be different whole numbers, such as 0,1,2; found {text!r}")
    return seeds


def _check_alone(arguments: Sequence[str], options: Sequence[Any]) -> None:
    if arguments or any(value is not None for value in options):
        raise ValueError(
            "--runs compares runs that exist: leave methods, stream and evaluation out, and --log"
        )
