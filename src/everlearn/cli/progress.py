"""How a run is going: a bar where someone can see it, a line for each test elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from time import monotonic
from typing import Any

import typer

Row = dict[str, Any]
# How much is done, of how much (None: not known), in words, and whether these are worth a line.
Show = Callable[[int, int | None, Callable[[], str], bool], None]
_A_SECOND = 5  # how often the bar is drawn
_PARTS = 10  # lines of a work, where there is no terminal


class Watch:
    """What the rows of a run have said so far."""

    def __init__(self, tasks: int | None) -> None:
        """Know nothing yet.

        Args:
            tasks: how many there are; None for no end.
        """
        self.tasks = tasks
        self.done = self.right = self.total = 0
        self.loss = self.speed = 0.0
        self.tested = False
        self._began, self._first, self._exam = monotonic(), -1, -1

    def see(self, row: Row) -> None:
        """Take a row in; only tests of tasks already learned count."""
        if row["kind"] == "test" and row["tested"] <= row["learned"]:
            if row["learned"] != self._exam:
                self._exam, self.right, self.total = row["learned"], 0, 0
            self.right += row["right"]
            self.total += row["total"]
        elif row["kind"] == "task":
            self._end_task(row)

    def _end_task(self, row: Row) -> None:
        self._first = row["learned"] if self._first < 0 else self._first
        self.done = row["learned"] + 1
        self.tested = self._exam == row["learned"]
        if row["images"]:
            self.loss = row["loss"] or 0.0
            self.speed = row["images"] / max(row["seconds"], 1e-9)

    def words(self) -> str:
        """Task, accuracy, time left, loss and speed, as far as they are known."""
        task = f"task {self.done}" + ("" if self.tasks is None else f" of {self.tasks}")
        accuracy = f"accuracy {100 * self.right / self.total:.1f} %" if self.total else ""
        pace = f"loss {self.loss:.3g}, {self.speed:,.0f} images/s" if self.speed else ""
        return ", ".join(part for part in (task, accuracy, self._left(), pace) if part)

    def _left(self) -> str:
        if self.tasks is None or not self.done or self.done >= self.tasks:
            return ""
        a_task = (monotonic() - self._began) / (self.done - self._first)
        seconds = round(a_task * (self.tasks - self.done))
        return f"{seconds // 3600}:{seconds // 60 % 60:02}:{seconds % 60:02} left"


def follow(rows: Iterable[Row], name: str, tasks: int | None) -> None:
    """Go through the rows of a run and show how it is going."""
    watch = Watch(tasks)
    with shown(name, tasks) as show:
        for row in rows:
            watch.see(row)
            if row["kind"] == "task":
                show(watch.done, tasks, watch.words, watch.tested)


@contextmanager
def shown(name: str, total: int | None = None) -> Iterator[Show]:
    """Give a function that shows work: by a bar on a terminal, else by lines, where they are worth it."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn

    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda done, total, words, line: _say(name, words()) if line else None
        return
    columns = (TextColumn("{task.description}"), BarColumn(12), TextColumn("{task.fields[words]}"))
    with Progress(*columns, console=console, refresh_per_second=_A_SECOND) as bar:
        task = bar.add_task(name, total=total, words="starts")
        yield lambda done, total, words, line: bar.update(
            task, completed=done, total=total, words=words()
        )


def _say(name: str, words: str) -> None:
    typer.echo(f"{name}: {words}", err=True)


def is_tenth(before: int, done: int, total: int | None) -> bool:
    """Whether another tenth of the work is done: worth a line where there is no terminal."""
    return bool(total) and done * _PARTS // (total or 1) > before * _PARTS // (total or 1)
