"""`everlearn draw`: pictures of shapes, factors, a stream and its scenario."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from everlearn.cli.messages import print_written
from everlearn.cli.options import with_stream

if TYPE_CHECKING:
    from everlearn.stream import ArrayStream, Environments, Stream

Out = Annotated[Path, typer.Option(help="File to write.")]
Start = Annotated[int, typer.Option(help="The first task to draw.")]
app = typer.Typer()


@app.callback(invoke_without_command=True)
def draw(context: typer.Context) -> None:
    """Draw shapes, factors, a stream or its scenario."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@app.command()
@with_stream
def shapes(
    stream: "Stream",
    out: Out = Path("out/shapes.png"),
    count: Annotated[int, typer.Option(help="How many shapes.")] = 100,
    columns: Annotated[int, typer.Option(help="Shapes a row.")] = 10,
) -> None:
    """Draw a contact sheet of the stream's shapes."""
    _check_file(out, ".png")
    _check_shapes(stream)
    from everlearn.stream.preview import save, shape_sheet

    print_written(save(shape_sheet(stream, count, columns), out))


@app.command()
@with_stream
def factors(
    stream: "Stream | ArrayStream | Environments",
    out: Out = Path("out/factors.png"),
    task: Annotated[
        int, typer.Option(help="Index of the task, from 0; pictures count tasks from 1.")
    ] = 0,
    count: Annotated[int, typer.Option(help="How many images.")] = 24,
    columns: Annotated[int, typer.Option(help="Images a row.")] = 8,
) -> None:
    """Draw training images of a task with their factors."""
    _check_file(out, ".png")
    _check_images(stream)
    from everlearn.stream.preview import factor_sheet, save

    print_written(save(factor_sheet(stream[task], count, columns), out))


@app.command()
@with_stream
def sweep(
    stream: "Stream",
    out: Out = Path("out/sweep.png"),
    shape: Annotated[int, typer.Option(help="Which shape: a class id.")] = 0,
    steps: Annotated[int, typer.Option(help="Images a factor.")] = 9,
) -> None:
    """Draw one shape, swept through one factor after another."""
    _check_file(out, ".png")
    _check_shapes(stream)
    from everlearn.stream.preview import save, sweep_sheet

    print_written(save(sweep_sheet(stream, shape, steps), out))


@app.command("stream")
@with_stream
def film(
    stream: "Stream | ArrayStream | Environments",
    out: Out = Path("out/stream.gif"),
    start: Start = 0,
    count: Annotated[int, typer.Option(help="How many tasks.")] = 8,
    views: Annotated[int, typer.Option(help="Frames a task.")] = 6,
    seconds: Annotated[float, typer.Option(help="How long a frame stays.")] = 0.3,
) -> None:
    """Draw a walk through the tasks, as a GIF that starts again at its end."""
    _check_file(out, ".gif")
    _check_images(stream)
    from everlearn.stream.preview import save_gif, stream_animation

    print_written(save_gif(stream_animation(stream, count, views, start), out, seconds))


@app.command()
@with_stream
def scenario(
    stream: "Stream | ArrayStream | Environments",
    out: Out = Path("out/scenario.png"),
    start: Start = 0,
    count: Annotated[int, typer.Option(help="How many tasks.")] = 6,
    images: Annotated[int, typer.Option(help="Images a task.")] = 8,
) -> None:
    """Draw which classes come when, with example images."""
    _check_file(out, ".png")
    _check_images(stream)
    from everlearn.stream.preview import save, scenario_sheet

    print_written(save(scenario_sheet(stream, count, images, start), out))


def _check_file(path: Path, suffix: str) -> None:
    if path.suffix.lower() != suffix:
        raise ValueError(f"--out must end in {suffix}, found {str(path)!r}")
    if path.is_dir():
        raise ValueError(f"--out must be a file, found a folder: {path}")


def _check_shapes(stream: "Stream") -> None:
    if not hasattr(stream, "style"):
        raise ValueError(
            "only a stream of shapes has shapes to draw; draw the factors, stream or scenario of this one"
        )


def _check_images(stream: "Stream | ArrayStream | Environments") -> None:
    if stream.canvas.bits != 8:
        raise ValueError(
            "points and latents are no images to draw; draw a stream of shapes or photos"
        )
