"""Test sheets: which images of a task are asked, drawn anew each time; tables are kept, images not."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor

from everlearn.exam.plan import spread
from everlearn.stream.task import Placed, Split, Task

_KEPT = 4096
_PIXELS = 2**24


class Sheet(NamedTuple):
    """Questions of one task, always the same ones."""

    task: int
    split: Placed
    rows: Tensor
    canonical: Split

    @property
    def labels(self) -> Tensor:
        """The right answers."""
        return self.split.labels[self.rows]

    def images(self) -> Tensor:
        """The questions."""
        return self.split.images(self.rows)


class Sheets:
    """The sheets of a stream's tasks on a device; the last few thousand are kept."""

    def __init__(self, stream: Any, images: int | None, device: str) -> None:
        """Keep nothing yet.

        Args:
            images: how many questions a task has at most.
        """
        self._stream, self._images, self._device = stream, images, device
        self._kept: OrderedDict[int, Sheet] = OrderedDict()
        side = stream.canvas
        self._at_once = max(64, _PIXELS // (side.size**2 * side.channels))

    def sheet(self, index: int) -> Sheet:
        """The sheet of a task."""
        return self._kept[index] if index in self._kept else self.take(self._stream[index])

    def take(self, task: Task) -> Sheet:
        """Make the sheet of a task that is at hand."""
        rows = torch.tensor(spread(len(task.test), self._images), dtype=torch.int64)
        placed = task.test.on(self._device)
        sheet = Sheet(task.index, placed, rows.to(self._device), task.canonical)
        self._kept[task.index] = sheet
        while len(self._kept) > _KEPT:
            self._kept.popitem(last=False)
        return sheet

    def groups(self, tasks: Iterable[int]) -> Iterator[list[Sheet]]:
        """Sheets in groups that are drawn and answered together."""
        group: list[Sheet] = []
        for index in tasks:
            group.append(self.sheet(index))
            if sum(len(sheet.rows) for sheet in group) >= self._at_once:
                yield group
                group = []
        if group:
            yield group
