"""Naive negative replay (Graffieti et al. 2022, arXiv 2204.05842): old images teach no old class.

Experience replay in which replayed images only push down the logits of the current classes. What differs
is in docs/methods/negative-replay.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from everlearn.core.settings import setting
from everlearn.core.validate import check_int
from everlearn.losses.negative import negative_loss
from everlearn.memory import Buffer, Reservoir
from everlearn.stream import Task, TaskStream
from everlearn.training.captured_step import CapturedStep
from everlearn.training.optimizer_step import optimizer_step
from everlearn.training.train_settings import TrainSettings
from everlearn.training.trainer import Trainer


@dataclass(frozen=True)
class Settings:
    """Settings of negative replay."""

    train: TrainSettings = TrainSettings()
    buffer_size: int = setting(5000, "images kept")
    replay_batch_size: int | None = setting(
        None, "replayed images per step; none: as many as new ones"
    )

    def __post_init__(self) -> None:
        """Check every setting."""
        check_int(self.buffer_size, "buffer_size", 1, 10**9)
        if self.replay_batch_size is not None:
            check_int(self.replay_batch_size, "replay_batch_size", 1, 10**6)


class NegativeReplay:
    """A classifier with a buffer of old images."""

    def __init__(self, stream: TaskStream, settings: Settings, device: str) -> None:
        """Start with random weights, which follow from the stream's seed, and an empty buffer."""
        self.settings = settings
        self.device = device
        self.trainer = Trainer(stream, settings.train, device)
        self.batch_size = self.trainer.batch_size()
        canvas = stream.canvas
        self.buffer = Buffer(settings.buffer_size, canvas.shape, canvas.bits, device)
        self.sampler = Reservoir(settings.buffer_size, stream.seed)
        self.current = torch.zeros_like(self.trainer.model.seen)
        self._step = CapturedStep(self._train_step, self.trainer.training_state)

    def learn(self, task: Task) -> Iterator[Tensor]:
        """Train on the task and the buffer, then update the buffer with images of the task."""
        self._set_current(task)
        new = self.trainer.batch_size(task)
        replay = self.trainer.draw_replay(
            task, self.sampler.used, self.settings.replay_batch_size or new
        )
        self.batch_size = new + (replay.shape[1] if len(replay) else 0)
        for step, (images, targets) in enumerate(self.trainer.training_batches(task)):
            yield self._step(images, targets, *replay[step : step + 1])
        self.trainer.store(task, self.sampler, self.buffer)

    def _set_current(self, task: Task) -> None:
        """Mark the classes of a task in place, because a captured step reads this tensor."""
        targets = self.trainer.model.targets(torch.tensor(task.classes, dtype=torch.int64))
        self.current.copy_((torch.arange(len(self.current))[:, None] == targets).any(1))

    def _train_step(self, images: Tensor, targets: Tensor, *replayed: Tensor) -> Tensor:
        """Take one step on new images and those of replayed rows, if any."""
        trainer = self.trainer
        new = len(targets)
        images, targets = self.buffer.join(images, targets, *replayed)
        logits = trainer.logits(images)
        if not replayed:
            return optimizer_step(trainer.optimizer, trainer.loss(logits, targets))
        is_old = torch.arange(len(targets), device=logits.device) >= new
        seen = None if trainer.settings.include_unseen else trainer.model.seen
        loss = negative_loss(logits, targets, is_old, self.current, seen)
        return optimizer_step(trainer.optimizer, loss)

    def predict(self, images: Tensor, among: Sequence[int] | None = None) -> Tensor:
        """Return the seen class with the largest logit for each image."""
        return self.trainer.predict(images, among)

    def state(self) -> dict[str, Any]:
        """Return the trainer's state, the buffer and the state of its sampler."""
        return {
            **self.trainer.state(),
            "memory": self.buffer.state(),
            "sampler": self.sampler.state(),
        }

    def load_state(self, state: dict[str, Any]) -> None:
        """Continue from a state."""
        self.trainer.load_state(state)
        self.buffer.load_state(state["memory"])
        self.sampler.load_state(state["sampler"])
