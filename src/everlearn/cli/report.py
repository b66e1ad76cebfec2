"""`everlearn report`: runs that exist as one table on the terminal, one plot and one page."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from everlearn.cli.messages import print_message

if TYPE_CHECKING:
    from everlearn.report import LoadedRun

# Of the report's tables, what fits on a terminal; the page has all of it.
COLUMNS = (
    "method",
    "seeds",
    "average accuracy",
    "interval",
    "forgetting",
    "stored",
    "training",
)
NO_PICTURES: dict[str, tuple[str, bytes]] = {}


def report(
    folders: Annotated[list[Path], typer.Argument(help="Folders of runs.", show_default=False)],
    out: Annotated[
        Path | None, typer.Option(help="Folder to write to.", show_default="the first one")
    ] = None,
    title: Annotated[str | None, typer.Option(help="Title of the page.")] = None,
) -> None:
    """Print a table of runs, and write a plot and a page about them.

    A folder of `everlearn reproduce` gives the page of its experiments, one of `everlearn tune` its table.
    """
    check_plots()
    from everlearn.experiments.framework.pages import read_scale, write_experiments_report
    from everlearn.experiments.framework.tuning import is_tuning_folder

    scale = read_scale(folders[0]) if len(folders) == 1 else None
    if scale is None:
        write_report(folders, out or folders[0], title or "Everlearn report")
        return
    if is_tuning_folder(folders[0], scale):
        if out or title:
            raise ValueError(
                f"{folders[0]} holds trials of everlearn tune, which have a table and no page; leave out "
                "--out and --title"
            )
        print_tuning(folders[0], scale)
        return
    page = write_experiments_report(folders[0], scale, out or folders[0] / "report", (), title)
    print_message(f"open {page} in a browser")


def print_tuning(folder: Path, scale: str, methods: Sequence[str] = ()) -> None:
    """Print the trials of some methods, or of all with a grid, as a table."""
    from everlearn.experiments.framework.grids import GRIDS
    from everlearn.experiments.framework.results_folder import ResultsFolder
    from everlearn.experiments.framework.tuning import tuning_table
    from everlearn.report.tables.formats import to_markdown

    print(to_markdown(tuning_table(ResultsFolder(folder, scale), methods or tuple(GRIDS))))


def write_report(
    folders: Sequence[Path],
    out: Path,
    title: str,
    pictures: dict[str, tuple[str, bytes]] = NO_PICTURES,
    command: str | None = None,
) -> None:
    """Print the table of some runs, write their page, and say where it is."""
    from everlearn.report import write_comparison
    from everlearn.report.comparison import report_command
    from everlearn.runs.load import load_runs

    command = command or report_command(folders, out)
    runs = load_runs(folders)
    page = write_comparison(runs, out, title, pictures, command)
    print_table(runs)
    print_message(f"page, plot and table are in {out}; open {page} in a browser")


def check_plots() -> None:
    """Raise ImportError now if a package of the report is missing, not after hours of training."""
    for package in ("matplotlib", "jinja2"):
        if find_spec(package) is None:
            raise ImportError(
                f"reports need {package}, which is missing; run: pip install 'everlearn[plot]'"
            )


def print_table(runs: Sequence[LoadedRun]) -> None:
    """Print what runs add up to, the best first."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    from everlearn.report import group_runs, make_tables

    lines: dict[str, dict[str, str]] = {}
    for table in make_tables(group_runs(runs)):
        if table.head[0] == COLUMNS[0]:
            for row in table.rows:
                lines.setdefault(row[0], {}).update(zip(table.head, row, strict=True))
    summary = Table(COLUMNS[0], box=SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    for head in COLUMNS[1:]:
        summary.add_column(head.removeprefix("average "), justify="right", no_wrap=True)
    for line in lines.values():
        summary.add_row(*(line.get(head, "") for head in COLUMNS))
    Console().print(summary)
