"""Test sheets: which images of a task are asked, drawn anew each time; tables are kept, images not."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
import torch
from torch import Tensor

from everlearn.exam.plan import spread
from everlearn.stream.task import Ints, Split, Task

_KEPT = 4096
_PIXELS = 2**24


class Labelled(Protocol):
    """Something with right answers to count."""

    @property
    def labels(self) -> Tensor:
        """The right answers."""


Asks = TypeVar("Asks", bound=Labelled)


class Sheet(NamedTuple):
    """Questions of one task, always the same ones.

    Attributes:
        images: draws the questions.
        labels: the right answers.
        theta: the true maps, where there are any.
        told: the classes to choose from, where the stream tells the task; None for all.
    """

    task: int
    images: Callable[[], Tensor]
    labels: Tensor
    theta: Tensor | None
    told: tuple[int, ...] | None = None


class Sheets:
    """The sheets of a stream's tasks on a device; the last few thousand are kept."""

    def __init__(self, stream: Any, images: int | None, device: str) -> None:
        """Keep nothing yet.

        Args:
            images: how many questions a task has at most.
        """
        self.stream, self._images, self._device = stream, images, device
        self._kept: OrderedDict[int, Sheet] = OrderedDict()
        self._at_once = at_once(stream.canvas)

    def sheet(self, index: int) -> Sheet:
        """The sheet of a task."""
        return self._kept[index] if index in self._kept else self.take(self.stream[index])

    def take(self, task: Task) -> Sheet:
        """Make the sheet of a task that is at hand."""
        sheet = make_sheet(task, self._images, self._device)
        self._kept[task.index] = sheet
        while len(self._kept) > _KEPT:
            self._kept.popitem(last=False)
        return sheet

    def asking(self, tasks: Iterable[int]) -> Iterator[Sheet]:
        """The sheets that ask something: a task of a blurry stream may have nothing to test."""
        return (sheet for sheet in map(self.sheet, tasks) if len(sheet.labels))

    def groups(self, tasks: Iterable[int]) -> Iterator[list[Sheet]]:
        """Sheets in groups that are drawn and answered together."""
        return grouped(self.asking(tasks), self._at_once)


def at_once(canvas: Any) -> int:
    """How many images to draw and answer together."""
    numbers: int = canvas.size**2 * canvas.channels
    return max(64, _PIXELS // numbers)


def grouped(sheets: Iterable[Asks], most: int) -> Iterator[list[Asks]]:
    """Put sheets together until they have `most` questions."""
    group: list[Asks] = []
    for sheet in sheets:
        group.append(sheet)
        if sum(len(sheet.labels) for sheet in group) >= most:
            yield group
            group = []
    if group:
        yield group


def draw_rows(split: Split, rows: Ints, device: str) -> Callable[[], Tensor]:
    """Return what draws some rows of a split on a device; only what that takes is held."""
    draw, placed = split.pictures.drawer(device), torch.from_numpy(rows).to(device)
    return lambda: draw(placed)


def make_sheet(task: Task, images: int | None, device: str) -> Sheet:
    """Choose questions, evenly spread."""
    test = task.test
    chosen = np.array(spread(len(test), images), np.int64)
    labels = torch.from_numpy(test.labels[chosen]).to(device)
    theta = None
    if test.theta is not None:
        theta = torch.from_numpy(test.theta[chosen].astype(np.float32)).to(device)
    told = task.classes if task.tells_index else None
    return Sheet(task.index, draw_rows(test, chosen, device), labels, theta, told)
