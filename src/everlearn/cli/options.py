"""The options of a stream and of exams, in one place for every command that takes them."""

from collections.abc import Callable
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Any, NamedTuple

import typer

from everlearn.cli.settings import build_stream

Command = Callable[..., None]


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
    "first-classes": Choice(int, "", "Classes of the first task of a data set, if not as others."),
}


# The same words as those of everlearn.exam.Plan, which is not loaded for a help text.
EXAMS = {
    "every": Choice(str, "", "Test after so many tasks, and after the last."),
    "test-tasks": Choice(str, "", "Test so many of the tasks met, evenly spread; none: all."),
    "test-images": Choice(str, "", "Test on so many images a task; none: all."),
    "ahead": Choice(str, "", "Test so many tasks to come, too, and the learner before it learns."),
    "within": Choice(bool, "no-within", "Test each task among its own classes only, too."),
    "whole": Choice(
        str,
        "",
        "Test on all classes of the stream, met or not, after so many tasks, and after the last; "
        "0: never.",
    ),
    "theta": Choice(bool, "theta", "Measure errors of maps, of a learner that tells them."),
    "probe": Choice(str, "", "Probe the tasks met after so many steps; 0: never."),
    "probe-images": Choice(str, "", "Images a task of a probe."),
    "one-shot": Choice(str, "", "Numbers of new classes to tell apart at the end: 10,100."),
    "open-set": Choice(bool, "no-open-set", "Tell known from unknown classes at the end."),
    "finals": Choice(str, "", "Numbers of tasks after which to do as at the end, too: 200."),
    "codes": Choice(
        str,
        "",
        "Train probes on codes after so many steps, before the first and after every task; 0: never.",
    ),
    "code-images": Choice(str, "", "Images a task that probes of codes are trained on."),
    "code-tests": Choice(str, "", "Images a task that probes of codes are tested on, at most."),
    "code-ahead": Choice(
        bool, "no-code-ahead", "Probe the codes of all tasks from the start, met or not."
    ),
    "latents": Choice(bool, "no-latents", "Describe every latent of codes after every task."),
    "disentanglement": Choice(
        bool, "no-disentanglement", "Measure how codes hold factors after every task."
    ),
}


def takes_stream(command: Command) -> Command:
    """Give a command the options of a stream in the place of its argument `stream`."""
    parameters = [_parameter(name, choice, "The stream") for name, choice in CHOICES.items()]
    return _replace(command, "stream", parameters, build_stream)


def takes_changes(command: Command) -> Command:
    """Give a command the same options in the place of `changes`: what was typed, or None."""
    title = "The stream (what is not given is the preset's)"
    parameters = [_parameter(name, choice, title, False) for name, choice in CHOICES.items()]
    return _replace(command, "changes", parameters, dict)


def takes_plan(command: Command) -> Command:
    """Give a command the options of a plan in the place of `exams`: what was typed, or None."""
    title = "The exams (what is not given is the preset's)"
    parameters = [_parameter(name, choice, title, False) for name, choice in EXAMS.items()]
    return _replace(command, "exams", parameters, dict)


def _replace(
    command: Command, place: str, parameters: list[Parameter], use: Callable[[dict[str, Any]], Any]
) -> Command:
    """A command with options in the place of one argument, which is made of them."""

    def with_options(**given: Any) -> None:
        typed = {dashed(one.name): given.pop(one.name) for one in parameters}
        command(**{place: use(typed)}, **given)

    own = [p for p in signature(command).parameters.values() if p.name != place]
    with_options.__signature__ = Signature([*own, *parameters])  # type: ignore[attr-defined]
    with_options.__name__, with_options.__doc__ = command.__name__, command.__doc__
    return with_options


def dashed(name: str) -> str:
    """A name as it is typed."""
    return name.replace("_", "-")


def _parameter(name: str, choice: Choice, panel: str, shown: bool = True) -> Parameter:
    kind, default, words = choice
    flag = f"--{name}/--no-{name}" if kind is bool and default else f"--{name}"
    told = (shown and default) or False
    option = typer.Option(None, flag, help=words, show_default=told, rich_help_panel=panel)
    place = name.replace("-", "_")
    return Parameter(place, Parameter.KEYWORD_ONLY, default=option, annotation=kind | None)
