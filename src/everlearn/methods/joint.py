"""Joint training: a new net learns all tasks so far together, the upper bound of a classifier.

It stores no images, because the stream redraws any task. Its cost grows with every task.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from everlearn.core.random import Purpose, permutation
from everlearn.core.settings import setting
from everlearn.core.validate import check_int
from everlearn.stream import Task, TaskStream
from everlearn.training.captured_step import CapturedStep
from everlearn.training.optimizer_step import set_learning_rate
from everlearn.training.snapshot import Snapshot
from everlearn.training.train_settings import TrainSettings
from everlearn.training.trainer import Trainer

Ints = NDArray[np.int64]
# Numbers rendered at once, 268 MB: few large renderings are faster, because each touches many tasks.
_NUMBERS_AT_ONCE = 2**26


@dataclass(frozen=True)
class Settings:
    """Settings of joint training; epochs are passes over all tasks so far."""

    train: TrainSettings = TrainSettings()
    retrain_every: int = setting(
        1, "train after every so many tasks, and after the last; the net is unchanged in between"
    )
    from_scratch: bool = setting(
        True, "start from random weights each time; otherwise continue (cumulative)"
    )

    def __post_init__(self) -> None:
        """Check how often it trains."""
        check_int(self.retrain_every, "retrain_every", 1, 10**9)


class Joint:
    """A classifier with one head over all classes of the stream, trained on all tasks so far."""

    def __init__(self, stream: TaskStream, settings: Settings, device: str) -> None:
        """Start with random weights, which follow from the stream's seed."""
        if stream.online:
            raise ValueError(
                "joint trains on every image several times, which an online stream forbids; "
                "use another method or a stream that is not online"
            )
        self.stream = stream
        self.settings = settings
        self.device = device
        # A net that starts from random weights needs a new optimizer state, too.
        reset = settings.from_scratch or settings.train.reset_optimizer
        self.trainer = Trainer(stream, replace(settings.train, reset_optimizer=reset), device)
        self.batch_size = self.trainer.batch_size()
        self._initial_net = Snapshot(self.trainer.net)
        self._step = CapturedStep(self.trainer.train_step, self.trainer.training_state)
        self.tasks: list[int] = []

    def learn(self, task: Task) -> Iterator[Tensor]:
        """Add the task to those seen; train on all of them when it is time."""
        self.trainer.begin_task(task)
        self.tasks.append(task.index)
        if len(self.tasks) % self.settings.retrain_every and task.index != len(self.stream) - 1:
            return
        tasks = [task for task in map(self.stream.__getitem__, self.tasks) if len(task.train)]
        if tasks:
            if self.settings.from_scratch:
                self._initial_net.restore()
            yield from self._train(tasks)

    def _train(self, tasks: list[Task]) -> Iterator[Tensor]:
        schedule = self.settings.train.schedule
        rows = sum(len(task.train) for task in tasks)
        steps = schedule.epochs * max(1, rows // schedule.batch_size)
        self.batch_size = min(schedule.batch_size, rows)
        batches = mixed_batches(tasks, schedule.batch_size, schedule.epochs, self.device)
        for step, (images, labels) in enumerate(batches):
            set_learning_rate(self.trainer.optimizer, schedule.learning_rate_at(step, steps))
            yield self._step(images, self.trainer.model.targets(labels))

    def predict(self, images: Tensor, among: Sequence[int] | None = None) -> Tensor:
        """Return the seen class with the largest logit for each image."""
        return self.trainer.predict(images, among)

    def state(self) -> dict[str, Any]:
        """Return the trainer's state and the tasks seen so far."""
        return {**self.trainer.state(), "tasks": list(self.tasks)}

    def load_state(self, state: dict[str, Any]) -> None:
        """Continue from a state."""
        self.trainer.load_state(state)
        self.tasks = list(state["tasks"])


def mixed_batches(
    tasks: Sequence[Task], batch_size: int, epochs: int, device: str
) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield images and labels of all tasks, shuffled together; incomplete last batches are dropped."""
    starts = np.cumsum([0, *(len(task.train) for task in tasks)])
    rows = int(starts[-1])
    numbers = tasks[0].train.batch([0], device).images.numel()
    rows_at_once = batch_size * max(1, _NUMBERS_AT_ONCE // (batch_size * numbers))
    for epoch in range(epochs):
        order = _order(tasks, rows, epoch)
        complete = order[: max(rows - rows % batch_size, min(batch_size, rows))]
        for start in range(0, len(complete), rows_at_once):
            images, labels = _gather(tasks, starts, complete[start : start + rows_at_once], device)
            batches = (torch.split(part, batch_size) for part in (images, labels))
            yield from zip(*batches, strict=True)


def _order(tasks: Sequence[Task], count: int, epoch: int) -> Ints:
    """Shuffle all rows; a single task keeps the order in which every method sees it."""
    if len(tasks) == 1:
        return tasks[0].order(epoch)
    return permutation(tasks[0].seed, Purpose.JOINT, len(tasks), count, substream=epoch)


def _gather(tasks: Sequence[Task], starts: Ints, rows: Ints, device: str) -> tuple[Tensor, Tensor]:
    """Draw rows of several tasks, task by task, and return them in the order of `rows`."""
    owner = np.searchsorted(starts, rows, side="right") - 1
    by_task = np.argsort(owner, kind="stable")
    batches = [
        tasks[number].train.batch(rows[owner == number] - starts[number], device)
        for number in np.unique(owner)
    ]
    inverse = torch.from_numpy(np.argsort(by_task)).to(device)
    images = torch.cat([batch.images for batch in batches])[inverse]
    return images, torch.cat([batch.labels for batch in batches])[inverse]
