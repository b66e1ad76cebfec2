"""Fine-tuning: cross-entropy on the current task and nothing against forgetting, the lower bound."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from everlearn.stream import Task, TaskStream
from everlearn.training.captured_step import CapturedStep
from everlearn.training.train_settings import TrainSettings
from everlearn.training.trainer import Trainer


@dataclass(frozen=True)
class Settings:
    """Settings of fine-tuning."""

    train: TrainSettings = TrainSettings()


class FineTuning:
    """A classifier with one head over all classes of the stream."""

    def __init__(self, stream: TaskStream, settings: Settings, device: str) -> None:
        """Start with random weights, which follow from the stream's seed."""
        self.device = device
        self.trainer = Trainer(stream, settings.train, device)
        self.batch_size = self.trainer.batch_size()
        self._step = CapturedStep(self.trainer.train_step, self.trainer.training_state)

    def learn(self, task: Task) -> Iterator[Tensor]:
        """Train on the task."""
        self.batch_size = self.trainer.batch_size(task)
        for images, targets in self.trainer.training_batches(task):
            yield self._step(images, targets)

    def predict(self, images: Tensor, among: Sequence[int] | None = None) -> Tensor:
        """Return the seen class with the largest logit for each image."""
        return self.trainer.predict(images, among)

    def state(self) -> dict[str, Any]:
        """Return the trainer's state."""
        return self.trainer.state()

    def load_state(self, state: dict[str, Any]) -> None:
        """Continue from a state."""
        self.trainer.load_state(state)
