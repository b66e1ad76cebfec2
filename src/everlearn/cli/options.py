"""The options of a stream and of plan_options, in one place for every command that takes them."""

from collections.abc import Callable
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Any, NamedTuple

import typer

from everlearn.cli.stream_options import build_stream

Command = Callable[..., None]


class Option(NamedTuple):
    """An option: its type, the default to show (that of the stream) and its help text."""

    kind: Any
    default: str
    help: str


STREAM_OPTIONS = {
    "stream": Option(
        Path, "", "A stream file (JSON) or name (paper, small, ...); other options change it."
    ),
    "name": Option(str, "", "A data set instead of shapes: mnist, fashion-mnist, omniglot, ..."),
    "data": Option(Path, "EVERLEARN_DATA", "Folder of the data sets."),
    "seed": Option(int, "0", "Everything follows from it."),
    "tasks": Option(int, "500", "How many tasks."),
    "classes": Option(int, "10", "Classes a task."),
    "values": Option(int, "5", "Values of scale, orientation, x and y in the grid."),
    "size": Option(int, "64", "Side of an image in pixels."),
    "channels": Option(int, "1", "1 (grey) or 3 (red, green, blue)."),
    "colors": Option(str, "white", "Colours of the shapes: names or #rrggbb, with commas between."),
    "background": Option(str, "darkgray", "Colour behind the shape."),
    "mark": Option(str, "black", "Colour of the half that shows the orientation."),
    "no-mark": Option(bool, "", "Draw no mark."),
    "parity": Option(bool, "no-parity", "Hard edges on whole pixels, as the original package."),
    "scenario": Option(str, "class", "What comes when: a name, or name:setting=value,..."),
    "online": Option(bool, "no-online", "Every training image may be seen once only."),
    "imbalance": Option(float, "1", "Training images of the largest class to the smallest."),
    "split": Option(str, "0.96,0.024,0.016", "Train, val and test: shares, or rows a task."),
    "test": Option(str, "grid", "Factors of test images: grid or continuous."),
    "orientation-grid": Option(str, "paper", "Angles of the grid: paper or even."),
    "min-distance": Option(float, "0", "Redraw a shape nearer than this to another of its block."),
    "first-class": Option(int, "0", "Id of the first class."),
    "first-classes": Option(int, "", "Classes of the first task of a data set, if not as others."),
}


# The help texts of everlearn.evaluation.Plan, which would load torch.
PLAN_OPTIONS = {
    "eval-split": Option(str, "", "Images to evaluate on: test, or val to choose settings."),
    "every": Option(str, "", "Test after every so many tasks, and after the last."),
    "max-test-tasks": Option(
        str, "", "Test at most so many of the tasks learned, evenly spread; none: all."
    ),
    "test-images-per-task": Option(
        str, "", "Test on so many images per task, always the same; none: all."
    ),
    "future-tasks": Option(
        str, "", "Also test so many tasks that come next, and the untrained learner."
    ),
    "within-task": Option(
        bool,
        "no-within-task",
        "Also test each task with the answers restricted to its own classes.",
    ),
    "all-classes-every": Option(
        str,
        "",
        "Test on all classes, seen or not, after every so many tasks and after the last; 0: never.",
    ),
    "diagonal-images": Option(
        str,
        "",
        "Test each task right after it is learned, and the next one before, on so many images; 0: never.",
    ),
    "theta": Option(
        bool, "theta", "Measure the errors of predicted affine maps, if the learner has any."
    ),
    "probe-every": Option(
        str, "", "Test the tasks seen so far on a few images after every so many steps; 0: never."
    ),
    "probe-images": Option(str, "", "Images per task of such a probe, always the same."),
    "one-shot": Option(
        str, "", "Numbers of new classes for one-shot classification at the end: 10,100."
    ),
    "open-set": Option(bool, "no-open-set", "Measure open-set recognition at the end."),
    "final-after": Option(
        str,
        "",
        "Numbers of tasks after which to measure one-shot and open-set, besides the end: 200.",
    ),
    "code-probe-every": Option(
        str,
        "",
        "Train probes on codes before learning, after every so many steps and every task; 0: never.",
    ),
    "code-train-images": Option(str, "", "Images per task to train code probes on."),
    "code-test-images": Option(str, "", "Images per task to test code probes on, at most."),
    "code-all-tasks": Option(
        bool, "no-code-all-tasks", "Probe the codes of all tasks from the start, seen or not."
    ),
    "describe-latents": Option(
        bool, "no-describe-latents", "Describe every latent of the codes after every task."
    ),
    "disentanglement": Option(
        bool, "no-disentanglement", "Measure the disentanglement of the codes after every task."
    ),
}

# Options with another name than their setting of the plan: --split is the stream's.
PLAN_FIELDS = {"eval-split": "split"}


def with_stream(command: Command) -> Command:
    """Give a command the options of a stream in the place of its argument `stream`."""
    parameters = [_parameter(name, choice, "The stream") for name, choice in STREAM_OPTIONS.items()]
    return _replace(command, "stream", parameters, build_stream)


def with_stream_options(command: Command) -> Command:
    """Give a command the same options in the place of `changes`: what was typed, or None."""
    title = "The stream (what is not given is the preset's)"
    parameters = [_parameter(name, choice, title, False) for name, choice in STREAM_OPTIONS.items()]
    return _replace(command, "changes", parameters, dict)


def with_plan_options(command: Command) -> Command:
    """Give a command the options of a plan in the place of `plan_options`: what was typed, or None."""
    title = "The evaluation plan (default: the preset's)"
    parameters = [_parameter(name, choice, title, False) for name, choice in PLAN_OPTIONS.items()]
    return _replace(command, "plan_options", parameters, dict)


def _replace(
    command: Command, place: str, parameters: list[Parameter], use: Callable[[dict[str, Any]], Any]
) -> Command:
    """A command with options in the place of one argument, which is made of them."""

    def with_options(**given: Any) -> None:
        typed = {dashed(one.name): given.pop(one.name) for one in parameters}
        command(**{place: use(typed)}, **given)

    others = [p for p in signature(command).parameters.values() if p.name != place]
    with_options.__signature__ = Signature([*others, *parameters])  # type: ignore[attr-defined]
    with_options.__name__, with_options.__doc__ = command.__name__, command.__doc__
    return with_options


def dashed(name: str) -> str:
    """A name as it is typed."""
    return name.replace("_", "-")


def _parameter(name: str, choice: Option, panel: str, show_default: bool = True) -> Parameter:
    kind, default, help_text = choice
    flag = f"--{name}/--no-{name}" if kind is bool and default else f"--{name}"
    shown_default = (show_default and default) or False
    option = typer.Option(
        None, flag, help=help_text, show_default=shown_default, rich_help_panel=panel
    )
    place = name.replace("-", "_")
    return Parameter(place, Parameter.KEYWORD_ONLY, default=option, annotation=kind | None)
