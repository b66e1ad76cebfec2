"""`everlearn reproduce`: any figure or table by one command, or all of them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from everlearn.cli.jobs import parse_trackers, run_to_end
from everlearn.cli.messages import print_message
from everlearn.cli.report import check_plots
from everlearn.cli.run import Device, Log

if TYPE_CHECKING:
    from everlearn.experiments import Experiment
    from everlearn.experiments.framework.runner import Runner

ALL = "all"


def reproduce(
    name: Annotated[
        str, typer.Argument(metavar="[NAME]", help="An experiment, or all; none lists them.")
    ] = "",
    scale: Annotated[
        str, typer.Option(help="small (minutes, any machine), paper (one GPU) or tiny (seconds).")
    ] = "small",
    out: Annotated[Path, typer.Option(help="Folder; results are in its folder SCALE.")] = Path(
        "out/reproduce"
    ),
    device: Device = "auto",
    data: Annotated[
        Path | None, typer.Option(help="Folder of the data sets.", show_default="EVERLEARN_DATA")
    ] = None,
    only: Annotated[
        str,
        typer.Option(help="Make these runs and measurements only, with commas; draw nothing."),
    ] = "",
    missing: Annotated[
        bool, typer.Option("--missing", help="Print what --only would have to make, a name a line.")
    ] = False,
    log: Log = None,
) -> None:
    """Make a figure or table: run what is missing, go on with what was stopped, then draw."""
    if not name:
        _list()
        return
    from everlearn.experiments import EXPERIMENTS, find_experiment
    from everlearn.experiments.framework.pages import write_experiments_report, write_scale
    from everlearn.experiments.framework.runner import Runner

    chosen = EXPERIMENTS if name == ALL else {name: find_experiment(name)}
    if missing:
        _print_missing(list(chosen.values()), out / scale, scale)
        return
    parts = _read_only(only, list(chosen.values()), scale)
    if not parts:
        check_plots()
    run_rows = partial(run_to_end, log=parse_trackers(log))
    runner = Runner(out / scale, scale, device, parts, run_rows, data)
    write_scale(runner.folder, scale)
    _carry_out(runner, chosen)
    if parts:
        return
    names = [] if name == ALL else [name]
    out = runner.folder / "-".join(["report", *names])
    page = write_experiments_report(runner.folder, scale, out, names)
    print_message(f"rows are in {runner.folder}; open {page} in a browser")


def _read_only(text: str, chosen: Sequence[Experiment], scale: str) -> list[str]:
    """Read names of runs and measurements with commas between, all of which there must be."""
    from everlearn.experiments import result_names

    names = [name.strip() for name in text.split(",")] if text else []
    unknown = set(names).difference(*(result_names(experiment, scale) for experiment in chosen))
    if unknown:
        raise ValueError(
            f"--only names {', '.join(sorted(map(repr, unknown)))}, which these experiments have not; runs "
            "are called as their folders, as er-5k-seed0, measurements as their files, as fig6-random"
        )
    return names


def _print_missing(chosen: Sequence[Experiment], folder: Path, scale: str) -> None:
    from everlearn.experiments.framework.missing import missing_names
    from everlearn.experiments.framework.results_folder import ResultsFolder
    from everlearn.experiments.framework.scales import find_scale

    tasks = find_scale(scale).stream.tasks
    assert tasks is not None  # the streams of all scales end
    for name in missing_names(chosen, ResultsFolder(folder, scale), tasks):
        typer.echo(name)


def _carry_out(runner: Runner, chosen: dict[str, Experiment]) -> None:
    for number, (name, experiment) in enumerate(chosen.items(), 1):
        typer.echo(f"[{number} of {len(chosen)}] {name}: {experiment.TITLE}", err=True)
        experiment.run(runner)


def _list() -> None:
    from rich.console import Console
    from rich.table import Table

    from everlearn.experiments import EXPERIMENTS

    table = Table("name", "what it is", "from", "cost, small", "cost, paper")
    for name, module in EXPERIMENTS.items():
        costs = module.COST
        table.add_row(name, module.TITLE, module.SOURCE, costs["small"], costs["paper"])
    Console().print(table)
    print_message(
        "to make one: everlearn reproduce NAME --scale small; or all of them: reproduce all"
    )
