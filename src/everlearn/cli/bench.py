"""`everlearn bench`: how fast this machine draws."""

import math
from typing import Annotated

import typer

app = typer.Typer()


@app.callback(invoke_without_command=True)
def bench(context: typer.Context) -> None:
    """Measure speeds on this machine."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@app.command()
def render(
    device: Annotated[str, typer.Option(help="cpu, cuda, cuda:0, ...")] = "cpu",
    size: Annotated[str, typer.Option(help="Sides in pixels, with commas between.")] = "32,64,128",
    seconds: Annotated[float, typer.Option(help="How long to measure each number.")] = 1.0,
) -> None:
    """Draw grey images for a while and print how many a second there were."""
    if not (math.isfinite(seconds) and 0 < seconds <= 600):
        raise ValueError(f"--seconds must lie above 0 and up to 600, found {seconds}")
    sizes = _parse_sizes(size)
    from rich.console import Console

    from everlearn.render import check_device

    check_device(device)
    from rich.table import Table

    table = Table("image", "drawn by", "images a second", title="Drawing")
    for side in sizes:
        for name, rate in _rates(device, side, seconds):
            table.add_row(f"{side} x {side}", name, f"{rate:,.0f}")
    Console().print(table)


def _rates(device: str, side: int, seconds: float) -> list[tuple[str, float]]:
    """Who drew, and how many images a second."""
    from everlearn.render import benchmark as measure
    from everlearn.render.thread_pool import available_cores

    if device != "cpu":
        return [(device, measure.gpu_rate(side, device, seconds=seconds))]
    measure.warm_up()
    threads = sorted({1, available_cores()})
    rates = [measure.cpu_rate(side, count, seconds) for count in threads]
    return [(f"{n} core{'s'[: n - 1]}", rate) for n, rate in zip(threads, rates, strict=True)]


def _parse_sizes(text: str) -> list[int]:
    from everlearn.render.canvas import MAX_SIZE

    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdecimal() and 4 <= int(part) <= MAX_SIZE for part in parts):
        raise ValueError(f"--size must be sides of 4 .. {MAX_SIZE} pixels, found {text!r}")
    return [int(part) for part in parts]
