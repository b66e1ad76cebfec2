"""Torch data sets over tasks and streams: the same data for any number of workers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from torch import Tensor
from torch.utils.data import Dataset, IterableDataset, get_worker_info

from everlearn.stream.task import Batch, Ints, Split, Task


class Tasks(Protocol):
    """Anything that gives tasks by number, as streams do."""

    def __len__(self) -> int:
        """Count the tasks."""

    def __getitem__(self, index: int) -> Task:
        """Make a task."""


class SplitDataset(Dataset[tuple[Tensor, Tensor]]):
    """Rows of a split as (image, label) pairs; a data loader may shuffle and share them as it likes."""

    def __init__(self, split: Split) -> None:
        """Look at a split; nothing is drawn yet."""
        self.split = split

    def __len__(self) -> int:
        """Count the rows."""
        return len(self.split)

    def __getitem__(self, row: int) -> tuple[Tensor, Tensor]:
        """Draw one row."""
        return self.__getitems__([row])[0]

    def __getitems__(self, rows: list[int]) -> list[tuple[Tensor, Tensor]]:
        """Draw many rows at once: what a data loader calls for a batch."""
        batch = self.split.batch(rows)
        return list(zip(batch.images, batch.labels, strict=True))


class BatchDataset(IterableDataset[Batch]):
    """The training batches of some tasks, in order; use it with DataLoader(..., batch_size=None).

    Worker w of n makes batches w, w + n, ...; the loader puts them back in order, so that the data do
    not depend on the number of workers.
    """

    def __init__(
        self, stream: Tasks, batch_size: int, epochs: int = 1, tasks: Sequence[int] | None = None
    ) -> None:
        """Choose tasks; by default all of a stream that ends, or all that an export holds."""
        self.stream, self.batch_size, self.epochs = stream, batch_size, epochs
        if tasks is None:
            tasks = getattr(stream, "indices", None) or range(len(stream))
        self.tasks = tasks

    def __iter__(self) -> Iterator[Batch]:
        """Make this worker's share of the batches."""
        worker = get_worker_info()
        mine, workers = (worker.id, worker.num_workers) if worker else (0, 1)
        for number, (task, rows) in enumerate(self._rows()):
            if number % workers == mine:
                yield task.train.batch(rows)

    def _rows(self) -> Iterator[tuple[Task, Ints]]:
        """The rows of every batch, in order; nothing is drawn for them."""
        for index in self.tasks:
            task = self.stream[index]
            task.count_batches(self.batch_size, self.epochs)
            for epoch in range(self.epochs):
                order = task.order(epoch)
                for start in range(0, len(order), self.batch_size):
                    yield task, order[start : start + self.batch_size]
