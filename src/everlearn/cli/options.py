"""The options that describe a stream, in one place for every command that takes one."""

from collections.abc import Callable
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Any, NamedTuple

import typer

from everlearn.cli.settings import build_stream


class Choice(NamedTuple):
    """An option: its type, the default to show (the stream's own) and what it is."""

    kind: Any
    default: str
    help: str


CHOICES = {
    "stream": Choice(
        Path, "", "A stream file (JSON) or name (paper, small, ...); other options change it."
    ),
    "name": Choice(str, "", "A data set instead of shapes: mnist, fashion-mnist, omniglot, ..."),
    "data": Choice(Path, "EVERLEARN_DATA", "Folder of the data sets."),
    "seed": Choice(int, "0", "Everything follows from it."),
    "tasks": Choice(int, "500", "How many tasks."),
    "classes": Choice(int, "10", "Classes a task."),
    "values": Choice(int, "5", "Values of scale, orientation, x and y in the grid."),
    "size": Choice(int, "64", "Side of an image in pixels."),
    "channels": Choice(int, "1", "1 (grey) or 3 (red, green, blue)."),
    "colors": Choice(str, "white", "Colours of the shapes: names or #rrggbb, with commas between."),
    "background": Choice(str, "darkgray", "Colour behind the shape."),
    "mark": Choice(str, "black", "Colour of the half that shows the orientation."),
    "no-mark": Choice(bool, "", "Draw no mark."),
    "parity": Choice(bool, "no-parity", "Hard edges on whole pixels, as the original package."),
    "scenario": Choice(str, "class", "What comes when: a name, or name:setting=value,..."),
    "online": Choice(bool, "no-online", "Every training image may be seen once only."),
    "imbalance": Choice(float, "1", "Training images of the largest class to the smallest."),
    "split": Choice(str, "0.96,0.024,0.016", "Train, val and test: shares, or rows a task."),
    "test": Choice(str, "grid", "Factors of test images: grid or continuous."),
    "orientation-grid": Choice(str, "paper", "Angles of the grid: paper or even."),
    "min-distance": Choice(float, "0", "Redraw a shape nearer than this to another of its block."),
    "first-class": Choice(int, "0", "Id of the first class."),
}


def takes_stream(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of a stream in the place of its argument `stream`."""
    names = {choice.replace("-", "_"): choice for choice in CHOICES}

    def with_options(**given: Any) -> None:
        described = {choice: given.pop(name) for name, choice in names.items()}
        command(stream=build_stream(described), **given)

    own = [p for p in signature(command).parameters.values() if p.name != "stream"]
    more = [_parameter(name, choice) for name, choice in names.items()]
    with_options.__signature__ = Signature([*own, *more])  # type: ignore[attr-defined]
    with_options.__name__, with_options.__doc__ = command.__name__, command.__doc__
    return with_options


def _parameter(name: str, choice: str) -> Parameter:
    kind, default, words = CHOICES[choice]
    flag = f"--{choice}/--no-{choice}" if kind is bool and default else f"--{choice}"
    option = typer.Option(
        None, flag, help=words, show_default=default or False, rich_help_panel="The stream"
    )
    return Parameter(name, Parameter.KEYWORD_ONLY, default=option, annotation=kind | None)
