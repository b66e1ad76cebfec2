"""GDumb (Prabhu et al. 2020, ECCV): keep images greedily; train a new net on these alone.

The net is trained from random weights and sees nothing but the buffer. What differs is in
docs/methods/gdumb.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from everlearn.core.random import Purpose, permutation
from everlearn.core.settings import setting
from everlearn.core.validate import check_int
from everlearn.memory import Buffer
from everlearn.memory.greedy_balanced import GreedyBalanced
from everlearn.stream import Task, TaskStream
from everlearn.training.captured_step import CapturedStep
from everlearn.training.optimizer_step import optimizer_step, set_learning_rate
from everlearn.training.schedule import Schedule
from everlearn.training.snapshot import Snapshot
from everlearn.training.train_settings import TrainSettings
from everlearn.training.trainer import Trainer

# The paper's code: SGD with momentum 0.9, 0.05 to 0.0005, batches of 16, 256 epochs.
_SCHEDULE = Schedule(batch_size=16, epochs=256, learning_rate=0.05, final_learning_rate=0.0005)


@dataclass(frozen=True)
class Settings:
    """Settings of GDumb; epochs are passes over the buffer."""

    train: TrainSettings = TrainSettings(schedule=_SCHEDULE, optimizer="sgd", reset_optimizer=True)
    buffer_size: int = setting(
        5000, "images kept (paper's code: 200 to 9,000, for 10 to 200 classes)"
    )
    retrain_every: int = setting(
        1, "train after every so many tasks, and after the last; the net is unchanged in between"
    )

    def __post_init__(self) -> None:
        """Check the buffer and how often it trains."""
        check_int(self.buffer_size, "buffer_size", 1, 10**9)
        check_int(self.retrain_every, "retrain_every", 1, 10**9)


class GDumb:
    """A class-balanced buffer and a classifier trained on it."""

    def __init__(self, stream: TaskStream, settings: Settings, device: str) -> None:
        """Start with random weights, which follow from the stream's seed, and an empty buffer."""
        self.settings = settings
        self.device = device
        self._seed = stream.seed
        self._last_task = len(stream) - 1
        self.tasks = 0
        # The schedule's epochs go over the buffer, so an online stream allows them: its images are
        # seen once. A net that starts from random weights needs a new optimizer state, too.
        schedule = replace(settings.train.schedule, epochs=1)
        train = replace(settings.train, schedule=schedule, reset_optimizer=True)
        self.trainer = Trainer(stream, train, device)
        self.batch_size = self.trainer.batch_size()
        canvas = stream.canvas
        self.buffer = Buffer(settings.buffer_size, canvas.shape, canvas.bits, device)
        self.sampler = GreedyBalanced(settings.buffer_size, stream.seed)
        self._initial_net = Snapshot(self.trainer.net)
        self._step = CapturedStep(self._train_step, self.trainer.training_state)

    def learn(self, task: Task) -> Iterator[Tensor]:
        """Update the buffer with images of the task; when it is time, train a new net."""
        self.trainer.begin_task(task)
        self.tasks += 1
        self._store(task)
        due = self.tasks % self.settings.retrain_every == 0 or task.index == self._last_task
        if due and self.buffer.filled:
            self._initial_net.restore()
            yield from self._train(task.index)

    def _store(self, task: Task) -> None:
        """Offer the images to the buffer, in the order in which other methods see them first."""
        order = task.order()
        items, slots = self.sampler.insert(task.index, task.train.labels[order])
        kept = task.train.batch(order[items], self.device)
        self.buffer.put(slots, kept.images, self.trainer.model.targets(kept.labels))

    def _train(self, task: int) -> Iterator[Tensor]:
        """Train for all epochs on the buffer; an incomplete last batch is dropped."""
        schedule = self.settings.train.schedule
        filled = self.buffer.filled
        self.batch_size = min(schedule.batch_size, filled)
        steps_per_epoch = filled // self.batch_size
        steps = schedule.epochs * steps_per_epoch
        for epoch in range(schedule.epochs):
            order = permutation(self._seed, Purpose.RECALL, task, filled, substream=epoch)
            rows = torch.from_numpy(order[: steps_per_epoch * self.batch_size]).to(self.device)
            for number, batch in enumerate(torch.split(rows, self.batch_size)):
                step = epoch * steps_per_epoch + number
                learning_rate = schedule.learning_rate_at(step, steps)
                set_learning_rate(self.trainer.optimizer, learning_rate)
                yield self._step(batch)

    def _train_step(self, rows: Tensor) -> Tensor:
        """Take one step on rows of the buffer."""
        logits = self.trainer.logits(self.buffer.images(rows))
        loss = self.trainer.loss(logits, self.buffer.targets(rows))
        return optimizer_step(self.trainer.optimizer, loss)

    def predict(self, images: Tensor, among: Sequence[int] | None = None) -> Tensor:
        """Return the seen class with the largest logit for each image."""
        return self.trainer.predict(images, among)

    def state(self) -> dict[str, Any]:
        """Return the trainer's state, the buffer, the state of its sampler and the number of tasks."""
        return {
            **self.trainer.state(),
            "memory": self.buffer.state(),
            "sampler": self.sampler.state(),
            "tasks": self.tasks,
        }

    def load_state(self, state: dict[str, Any]) -> None:
        """Continue from a state."""
        self.trainer.load_state(state)
        self.buffer.load_state(state["memory"])
        self.sampler.load_state(state["sampler"])
        self.tasks = state["tasks"]
