"""`everlearn export`: a stream on disk, task by task; run again, it goes on where it stopped."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from everlearn.cli.messages import print_message
from everlearn.cli.options import with_stream

if TYPE_CHECKING:
    from everlearn.stream import ArrayStream, Environments, Stream

_MOST = 10_000_000


@with_stream
def export(
    stream: "Stream | ArrayStream | Environments",
    folder: Annotated[Path, typer.Argument(help="Where to write.", show_default=False)],
    format: Annotated[
        str, typer.Option(help="npz, png (with a CSV table) or tar (shards).")
    ] = "npz",
    only: Annotated[
        str, typer.Option(help="Which tasks, such as 0:10 or 3,5,8:12.", show_default="all")
    ] = "",
) -> None:
    """Write a stream to disk; what is there already, whole, is kept."""
    from everlearn.stream.export import export as write

    if stream.tasks is None and not only:
        raise ValueError("an endless stream is exported in part: give --only, such as --only 0:10")
    chosen = parse_tasks(only, stream.tasks) if only else None
    with _bar() as show:
        place = write(stream, folder, format, chosen, show)
    print_message(f"wrote {place}")


@contextmanager
def _bar() -> Iterator[Callable[[int, int], None]]:
    """Show a progress bar where someone can see it; gives a function (done, all) to move it."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

    columns = ("tasks", BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    console = Console(stderr=True)
    hidden = not console.is_terminal
    with Progress(*columns, console=console, transient=True, disable=hidden) as bar:
        line = bar.add_task("tasks", total=None)
        yield lambda done, total: bar.update(line, completed=done, total=total)


def parse_tasks(text: str, tasks: int | None) -> list[int]:
    """Read task numbers below `tasks`: "3", "3,5", "0:10" (the end is not included)."""
    most = _MOST if tasks is None else tasks
    out: list[int] = []
    for part in text.split(","):
        low, colon, high = part.strip().partition(":")
        if not (low.isdecimal() and (high.isdecimal() or not colon)):
            raise ValueError(f"--only must read like 0:10 or 3,5,8:12, found {text!r}")
        first, end = int(low), int(high or low) + (not colon)
        if not first < end <= most:
            raise ValueError(f"--only must name tasks in 0 .. {most - 1}, found {part.strip()!r}")
        if len(out) + end - first > _MOST:
            raise ValueError(f"--only may name {_MOST} tasks at most, found {text!r}")
        out += range(first, end)
    return out
