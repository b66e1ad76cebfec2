"""The schedule of a task: batch size, epochs and learning rate; and its training batches."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from everlearn.core.settings import setting
from everlearn.core.validate import check_int, check_number
from everlearn.stream import Batch, Task


@dataclass(frozen=True)
class Schedule:
    """Batch size, epochs and learning rate of a task."""

    batch_size: int = setting(256, "images per step")
    epochs: int = setting(5, "passes over the training images of a task")
    learning_rate: float = setting(1e-3, "learning rate at the start of a task")
    final_learning_rate: float | None = setting(None, "at its end, by a cosine; none: constant")

    def __post_init__(self) -> None:
        """Check every setting."""
        check_int(self.batch_size, "batch_size", 1, 1_000_000)
        check_int(self.epochs, "epochs", 1, 1_000_000)
        check_number(self.learning_rate, "learning_rate", 0, 1e3)
        if self.final_learning_rate is not None:
            check_number(self.final_learning_rate, "final_learning_rate", 0, 1e3)

    def learning_rate_at(self, step: int, steps: int) -> float:
        """The learning rate of a step, counted from 0."""
        if self.final_learning_rate is None:
            return self.learning_rate
        cosine = 0.5 * (1 + math.cos(math.pi * step / max(1, steps - 1)))
        return self.final_learning_rate + (self.learning_rate - self.final_learning_rate) * cosine


class TrainingBatch(NamedTuple):
    """A batch, its step within the task and its learning rate."""

    batch: Batch
    step: int
    learning_rate: float


def training_batches(task: Task, schedule: Schedule, device: str) -> Iterator[TrainingBatch]:
    """Yield the batches of a task; the incomplete last batch of an epoch is dropped, unless it is alone."""
    steps = count_steps(task, schedule)
    drop = len(task.train) >= schedule.batch_size
    batches = task.batches(schedule.batch_size, schedule.epochs, device, drop_last=drop)
    for step, batch in enumerate(batches):
        yield TrainingBatch(batch, step, schedule.learning_rate_at(step, steps))


def count_steps(task: Task, schedule: Schedule) -> int:
    """The number of training batches of a task."""
    drop = len(task.train) >= schedule.batch_size
    return task.count_batches(schedule.batch_size, schedule.epochs, drop_last=drop)
