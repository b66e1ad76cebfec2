"""Learning without forgetting (Li and Hoiem 2016, arXiv 1606.09282): distil the net before the task.

While a task is learned, the net's predictions of old classes on the new images are kept close to those of
the net before the task. What differs is in docs/methods/lwf.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from everlearn.core.settings import setting
from everlearn.core.validate import check_number
from everlearn.losses.distillation import distillation_loss
from everlearn.nets.precision import forward_pass
from everlearn.stream import Task, TaskStream
from everlearn.training.captured_step import CapturedStep
from everlearn.training.optimizer_step import optimizer_step
from everlearn.training.train_settings import TrainSettings
from everlearn.training.trainer import Trainer


@dataclass(frozen=True)
class Settings:
    """Settings of learning without forgetting."""

    train: TrainSettings = TrainSettings()
    distillation_weight: float = setting(
        0.1, "weight of the distillation loss, lambda_o (DCL paper, section 5.1: 0.1)"
    )
    temperature: float = setting(2.0, "of both softmaxes (Li and Hoiem 2016, section 3: 2)")

    def __post_init__(self) -> None:
        """Check both numbers."""
        check_number(self.distillation_weight, "distillation_weight", 0, 1e6)
        check_number(self.temperature, "temperature", 1e-3, 1e3)


class LwF:
    """A classifier and a copy of it from before the current task, the teacher."""

    def __init__(self, stream: TaskStream, settings: Settings, device: str) -> None:
        """Start with random weights, which follow from the stream's seed, and no old classes."""
        self.settings = settings
        self.device = device
        self.trainer = Trainer(stream, settings.train, device)
        self.batch_size = self.trainer.batch_size()
        self.teacher = deepcopy(self.trainer.net).requires_grad_(False).eval()
        self.old_classes = torch.zeros_like(self.trainer.model.seen)
        self._step = CapturedStep(self._train_step, self.trainer.training_state)

    def learn(self, task: Task) -> Iterator[Tensor]:
        """Train on the task with distillation, then update the teacher."""
        self.batch_size = self.trainer.batch_size(task)
        old_classes = [self.old_classes] if self.old_classes.any() else []
        for images, targets in self.trainer.training_batches(task):
            yield self._step(images, targets, *old_classes)
        self._update_teacher()

    def _train_step(self, images: Tensor, targets: Tensor, *old_classes: Tensor) -> Tensor:
        """Cross-entropy and, where there are old classes, distillation on these."""
        trainer = self.trainer
        settings = self.settings
        logits = trainer.logits(images)
        loss = trainer.loss(logits, targets)
        for classes in old_classes:
            with torch.no_grad():
                teacher = forward_pass(self.teacher, images)
            distillation = distillation_loss(logits, teacher, classes, settings.temperature)
            loss = loss + settings.distillation_weight * distillation
        return optimizer_step(trainer.optimizer, loss)

    def _update_teacher(self) -> None:
        self.teacher.load_state_dict(self.trainer.net.state_dict())
        self.old_classes.copy_(self.trainer.model.seen)

    def predict(self, images: Tensor, among: Sequence[int] | None = None) -> Tensor:
        """Return the seen class with the largest logit for each image."""
        return self.trainer.predict(images, among)

    def state(self) -> dict[str, Any]:
        """Return the trainer's state; after a task the teacher equals its net."""
        return self.trainer.state()

    def load_state(self, state: dict[str, Any]) -> None:
        """Continue from a state."""
        self.trainer.load_state(state)
        self._update_teacher()
