"""PyTorch data sets over splits and streams; the data do not depend on the number of workers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from torch import Tensor
from torch.utils.data import Dataset, IterableDataset, get_worker_info

from everlearn.stream.protocol import TaskStream
from everlearn.stream.task import Batch, Ints, Split, Task


class SplitDataset(Dataset[tuple[Tensor, Tensor]]):
    """The rows of a split as (image, label) pairs, for a DataLoader."""

    def __init__(self, split: Split) -> None:
        """Wrap a split; images are made on access."""
        self.split = split

    def __len__(self) -> int:
        """Count the rows."""
        return len(self.split)

    def __getitem__(self, row: int) -> tuple[Tensor, Tensor]:
        """Make one row."""
        return self.__getitems__([row])[0]

    def __getitems__(self, rows: list[int]) -> list[tuple[Tensor, Tensor]]:
        """Make many rows at once; a DataLoader calls this for a batch."""
        batch = self.split.batch(rows)
        return list(zip(batch.images, batch.labels, strict=True))


class BatchDataset(IterableDataset[Batch]):
    """The training batches of some tasks, in order; use it with DataLoader(..., batch_size=None).

    Worker w of n makes batches w, w + n, ...; the loader restores their order, so that the data do not
    depend on the number of workers.
    """

    def __init__(
        self,
        stream: TaskStream,
        batch_size: int,
        epochs: int = 1,
        tasks: Sequence[int] | None = None,
    ) -> None:
        """Choose tasks; by default all tasks of a finite stream, or all that an export holds."""
        self.stream = stream
        self.batch_size = batch_size
        self.epochs = epochs
        if tasks is None:
            tasks = getattr(stream, "indices", None) or range(len(stream))
        self.tasks = tasks

    def __iter__(self) -> Iterator[Batch]:
        """Yield this worker's batches."""
        worker = get_worker_info()
        worker_id, workers = (worker.id, worker.num_workers) if worker else (0, 1)
        for number, (task, rows) in enumerate(self._rows()):
            if number % workers == worker_id:
                yield task.train.batch(rows)

    def _rows(self) -> Iterator[tuple[Task, Ints]]:
        """Yield the rows of every batch, in order, without making images."""
        for index in self.tasks:
            task = self.stream[index]
            task.count_batches(self.batch_size, self.epochs)
            for epoch in range(self.epochs):
                order = task.order(epoch)
                for start in range(0, len(order), self.batch_size):
                    yield task, order[start : start + self.batch_size]
