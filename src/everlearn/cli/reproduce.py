"""`everlearn reproduce`: any figure or table by one command, or all of them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from everlearn.cli.jobs import read_log, see_through
from everlearn.cli.report import check_plots
from everlearn.cli.run import Device, Log
from everlearn.cli.say import tell

if TYPE_CHECKING:
    from types import ModuleType

    from everlearn.experiments.lab import Lab

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
    log: Log = None,
) -> None:
    """Make a figure or table: run what is missing, go on with what was stopped, then draw."""
    if not name:
        _list()
        return
    from everlearn.experiments import EXPERIMENTS, find_experiment
    from everlearn.experiments.lab import Lab
    from everlearn.experiments.pages import mark, write_pages

    chosen = EXPERIMENTS if name == ALL else {name: find_experiment(name)}
    parts = _read_only(only, list(chosen.values()), scale)
    if not parts:
        check_plots()
    follow = partial(see_through, log=read_log(log))
    lab = Lab(out / scale, scale, device, parts, follow, data)
    mark(lab.folder, scale)
    _carry_out(lab, chosen)
    if parts:
        return
    names = [] if name == ALL else [name]
    page = write_pages(lab.folder, scale, lab.folder / "-".join(["report", *names]), names)
    tell(f"rows are in {lab.folder}; open {page} in a browser")


def _read_only(text: str, chosen: Sequence[ModuleType], scale: str) -> list[str]:
    """Read names of runs and measurements with commas between, all of which there must be."""
    from everlearn.experiments import names_of

    names = [name.strip() for name in text.split(",")] if text else []
    unknown = set(names).difference(*(names_of(module, scale) for module in chosen))
    if unknown:
        raise ValueError(
            f"--only names {', '.join(sorted(map(repr, unknown)))}, which these experiments have not; runs "
            "are called as their folders, as er-5k-seed0, measurements as their files, as fig6-random"
        )
    return names


def _carry_out(lab: Lab, chosen: dict[str, ModuleType]) -> None:
    for number, (name, module) in enumerate(chosen.items(), 1):
        typer.echo(f"[{number} of {len(chosen)}] {name}: {module.TITLE}", err=True)
        module.run(lab)


def _list() -> None:
    from rich.console import Console
    from rich.table import Table

    from everlearn.experiments import EXPERIMENTS

    table = Table("name", "what it is", "from", "cost, small", "cost, paper")
    for name, module in EXPERIMENTS.items():
        costs = module.COST
        table.add_row(name, module.TITLE, module.SOURCE, costs["small"], costs["paper"])
    Console().print(table)
    tell("to make one: everlearn reproduce NAME --scale small; or all of them: reproduce all")
