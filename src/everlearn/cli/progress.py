"""Progress of a run: a bar on a terminal, a line after each evaluation elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from time import monotonic

import typer

from everlearn.rows import Row, TaskRow

# Called with the work done, the total (None: unknown), a function that describes the state, and
# whether that description deserves a line where there is no terminal.
Show = Callable[[int, int | None, Callable[[], str], bool], None]
_REFRESHES_PER_SECOND = 5
_LINES = 10  # where there is no terminal


class RunProgress:
    """What the rows of a run say about its progress so far."""

    def __init__(self, tasks: int | None) -> None:
        """Start before the first row.

        Args:
            tasks: how many tasks the run has; None for an endless one.
        """
        self.tasks = tasks
        self.done = 0
        self.correct = 0
        self.total = 0
        self.loss = 0.0
        self.images_per_second = 0.0
        self.evaluated = False
        self._began = monotonic()
        self._first_task = -1
        self._last_evaluation = -1

    def add_row(self, row: Row) -> None:
        """Take a row in; only tests of tasks already learned count."""
        if row["kind"] == "test" and row["tested"] <= row["learned"]:
            if row["learned"] != self._last_evaluation:
                self._last_evaluation = row["learned"]
                self.correct = 0
                self.total = 0
            self.correct += row["correct"]
            self.total += row["total"]
        elif row["kind"] == "task":
            self._end_task(row)

    def _end_task(self, row: TaskRow) -> None:
        if self._first_task < 0:
            self._first_task = row["learned"]
        self.done = row["learned"] + 1
        self.evaluated = self._last_evaluation == row["learned"]
        if row["images"]:
            self.loss = row["loss"] or 0.0
            self.images_per_second = row["images"] / max(row["seconds"], 1e-9)

    def describe(self) -> str:
        """Return task, accuracy, time left, loss and speed, as far as they are known."""
        task = f"task {self.done}" + ("" if self.tasks is None else f" of {self.tasks}")
        accuracy = f"accuracy {100 * self.correct / self.total:.1f} %" if self.total else ""
        speed = ""
        if self.images_per_second:
            speed = f"loss {self.loss:.3g}, {self.images_per_second:,.0f} images/s"
        return ", ".join(part for part in (task, accuracy, self._time_left(), speed) if part)

    def _time_left(self) -> str:
        if self.tasks is None or not self.done or self.done >= self.tasks:
            return ""
        seconds_per_task = (monotonic() - self._began) / (self.done - self._first_task)
        seconds = round(seconds_per_task * (self.tasks - self.done))
        return f"{seconds // 3600}:{seconds // 60 % 60:02}:{seconds % 60:02} left"


def show_progress(rows: Iterable[Row], name: str, tasks: int | None) -> None:
    """Consume the rows of a run and show its progress."""
    progress = RunProgress(tasks)
    with progress_display(name, tasks) as show:
        for row in rows:
            progress.add_row(row)
            if row["kind"] == "task":
                show(progress.done, tasks, progress.describe, progress.evaluated)


@contextmanager
def progress_display(name: str, total: int | None = None) -> Iterator[Show]:
    """Yield a function that shows progress: a bar on a terminal, lines elsewhere."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn

    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda done, total, describe, line: _print(name, describe()) if line else None
        return
    columns = (TextColumn("{task.description}"), BarColumn(12), TextColumn("{task.fields[state]}"))
    with Progress(*columns, console=console, refresh_per_second=_REFRESHES_PER_SECOND) as bar:
        task = bar.add_task(name, total=total, state="starting")
        yield lambda done, total, describe, line: bar.update(
            task, completed=done, total=total, state=describe()
        )


def _print(name: str, state: str) -> None:
    typer.echo(f"{name}: {state}", err=True)


def is_tenth(before: int, done: int, total: int | None) -> bool:
    """Return whether another tenth of the work is done: it deserves a line without a terminal."""
    return bool(total) and done * _LINES // (total or 1) > before * _LINES // (total or 1)
