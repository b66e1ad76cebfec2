"""`everlearn quickstart`: the first look, drawn in seconds and gathered on one page."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from everlearn.cli.say import tell

if TYPE_CHECKING:
    from everlearn.sheets.html import Figure
    from everlearn.stream import Stream

COLORS = ("white", "red", "orange", "yellow", "lime", "cyan", "blue", "purple", "pink")
WORDS = {
    "Shapes": "A class is a shape. Each follows from the seed and its number; they never run out.",
    "A task": "Training images of the first task. Every image comes with its class and its factors.",
    "Factors": "One shape under one factor at a time, from its lowest value to its highest.",
    "The stream": "Ten new shapes come with every task. The line below holds those met so far.",
}


def quickstart(
    out: Annotated[Path, typer.Option(help="Folder to write to.")] = Path("out/quickstart"),
    seed: Annotated[int, typer.Option(help="Everything follows from it.")] = 0,
) -> None:
    """Draw shapes, factors and a walk through a stream, and gather them on a page."""
    from rich.console import Console

    from everlearn.disk import write_file
    from everlearn.sheets.html import picture_page
    from everlearn.stream import Stream

    stream, console = Stream(seed=seed), Console()
    with console.status("drawing"):
        figures = draw_figures(stream, out)
        numbers = count(stream)
    write_file(out / "stream.json", stream.to_json().encode())
    page = picture_page("Everlearn", "A stream is a pure function of a seed.", numbers, figures)
    write_file(out / "index.html", page.encode())
    _print_table(numbers)
    tell(f"pictures, page and stream file are in {out}; open {out / 'index.html'} in a browser")


def draw_figures(stream: "Stream", out: Path) -> "list[Figure]":
    """Draw every picture of the page."""
    from everlearn import sheets
    from everlearn.render.canvas import Canvas
    from everlearn.sheets.html import Figure

    colorful = stream.with_changes(canvas=Canvas(channels=3, colors=COLORS))
    paths = (
        sheets.save(sheets.shape_sheet(stream, 96, 12), out / "shapes.png"),
        sheets.save(sheets.factor_sheet(stream[0]), out / "factors.png"),
        sheets.save(sheets.sweep_sheet(colorful), out / "sweep.png"),
        sheets.save_film(sheets.stream_film(stream), out / "stream.gif", 0.3),
    )
    return [Figure(*item, path) for item, path in zip(WORDS.items(), paths, strict=True)]


def count(stream: "Stream") -> dict[str, str]:
    """What is in the stream, and how fast it is drawn here."""
    from everlearn import bench
    from everlearn.render.threads import usable_cores

    task, cores, size = stream[0], usable_cores(), stream.canvas.size
    images = len(stream) * (len(task.train) + len(task.val) + len(task.test))
    bench.warm_up()
    rate = bench.cpu_rate(size, cores)
    return {
        "tasks": f"{len(stream):,}",
        "shapes": f"{len(stream) * stream.classes_per_task:,}",
        "images": f"{images:,}",
        "size of the stream's file": f"{len(stream.to_json())} bytes",
        f"images of {size} x {size} drawn a second ({cores} core{'s'[: cores - 1]})": f"{rate:,.0f}",
    }


def _print_table(numbers: dict[str, str]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(title="The stream", show_header=False)
    table.add_column(style="bold")
    table.add_column(justify="right")
    for name, value in numbers.items():
        table.add_row(name, value)
    Console().print(table)
