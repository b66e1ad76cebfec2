"""A-GEM (Chaudhry et al. 2018, arXiv 1812.00420): project gradients that conflict with old images.

Where a step would raise the loss on a batch of old images, its gradient is projected so that it does not.
What differs is in docs/methods/agem.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from torch import Tensor

from everlearn.core.settings import setting
from everlearn.core.validate import check_int
from everlearn.memory import Buffer
from everlearn.stream import Task, TaskStream
from everlearn.training.captured_step import CapturedStep
from everlearn.training.episodic_memory import append_random
from everlearn.training.gradients import gradients_of, project
from everlearn.training.train_settings import TrainSettings
from everlearn.training.trainer import Trainer
from everlearn.training.trainer_gradients import loss_gradients


@dataclass(frozen=True)
class Settings:
    """Settings of A-GEM."""

    train: TrainSettings = TrainSettings()
    images_per_task: int = setting(10, "images kept of each task (DCL paper's code: 10)")
    reference_batch_size: int = setting(
        64, "old images per step for the reference gradient (DCL paper's code: 64)"
    )

    def __post_init__(self) -> None:
        """Check both numbers."""
        check_int(self.images_per_task, "images_per_task", 1, 10**6)
        check_int(self.reference_batch_size, "reference_batch_size", 1, 10**6)


class AGEM:
    """A classifier and a few images of every task."""

    def __init__(self, stream: TaskStream, settings: Settings, device: str) -> None:
        """Start with random weights, which follow from the stream's seed, and an empty buffer."""
        self.settings = settings
        self.device = device
        self.trainer = Trainer(stream, settings.train, device)
        self.batch_size = self.trainer.batch_size()
        canvas = stream.canvas
        capacity = len(stream) * settings.images_per_task
        self.buffer = Buffer(capacity, canvas.shape, canvas.bits, device)
        self._step = CapturedStep(self._train_step, self.trainer.training_state)

    def learn(self, task: Task) -> Iterator[Tensor]:
        """Train on the task with projected gradients, then store some of its images."""
        new = self.trainer.batch_size(task)
        filled = np.arange(self.buffer.filled)
        reference = self.trainer.draw_replay(task, filled, self.settings.reference_batch_size)
        self.batch_size = new + (reference.shape[1] if len(reference) else 0)
        for step, (images, targets) in enumerate(self.trainer.training_batches(task)):
            yield self._step(images, targets, *reference[step : step + 1])
        append_random(self.trainer, task, self.settings.images_per_task, self.buffer)

    def _train_step(self, images: Tensor, targets: Tensor, *reference: Tensor) -> Tensor:
        """Take one step, with the gradient projected where it conflicts with the reference gradient."""
        trainer = self.trainer
        loss = trainer.loss(trainer.logits(images), targets)
        trainer.optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        for rows in reference:
            old = loss_gradients(trainer, self.buffer.images(rows), self.buffer.targets(rows))
            project(gradients_of(trainer.weights), old)
        trainer.optimizer.step()
        return loss

    def predict(self, images: Tensor, among: Sequence[int] | None = None) -> Tensor:
        """Return the seen class with the largest logit for each image."""
        return self.trainer.predict(images, among)

    def state(self) -> dict[str, Any]:
        """Return the trainer's state and the buffer."""
        return {**self.trainer.state(), "memory": self.buffer.state()}

    def load_state(self, state: dict[str, Any]) -> None:
        """Continue from a state."""
        self.trainer.load_state(state)
        self.buffer.load_state(state["memory"])
