"""L2: a penalty on the squared distance from the weights after the task before.

The plainest of the parameter penalties that Smith et al. 2023 (arXiv 2203.17269) compare. What differs is
in docs/methods/l2.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from everlearn.core.settings import setting
from everlearn.core.validate import check_number
from everlearn.stream import Task, TaskStream
from everlearn.training.quadratic_penalty import QuadraticPenalty, penalized_step
from everlearn.training.step_pair import step_pair
from everlearn.training.train_settings import TrainSettings
from everlearn.training.trainer import Trainer


@dataclass(frozen=True)
class Settings:
    """Settings of L2."""

    train: TrainSettings = TrainSettings()
    strength: float = setting(0.1, "weight of the penalty on squared distances (our choice)")

    def __post_init__(self) -> None:
        """Check the strength."""
        check_number(self.strength, "strength", 0, 1e12)


class L2:
    """A classifier and its weights before the current task."""

    def __init__(self, stream: TaskStream, settings: Settings, device: str) -> None:
        """Start with random weights, which follow from the stream's seed, and no penalty."""
        self.device = device
        self.trainer = Trainer(stream, settings.train, device)
        self.batch_size = self.trainer.batch_size()
        self.penalty = QuadraticPenalty(self.trainer.weights, settings.strength)
        self.penalty.importance.flat.fill_(1.0)
        self.penalized = False
        self._steps = step_pair(self._train_step, self.trainer.training_state)

    def learn(self, task: Task) -> Iterator[Tensor]:
        """Train on the task, then centre the penalty on the new weights."""
        self.batch_size = self.trainer.batch_size(task)
        for images, targets in self.trainer.training_batches(task):
            yield self._steps[self.penalized](images, targets)
        self.penalty.recenter()
        self.penalized |= bool(task.classes)  # a task may be empty

    def _train_step(self, penalized: bool, images: Tensor, targets: Tensor) -> Tensor:
        loss = self.trainer.loss(self.trainer.logits(images), targets)
        return penalized_step(self.trainer.optimizer, loss, [self.penalty] if penalized else [])

    def predict(self, images: Tensor, among: Sequence[int] | None = None) -> Tensor:
        """Return the seen class with the largest logit for each image."""
        return self.trainer.predict(images, among)

    def state(self) -> dict[str, Any]:
        """Return the trainer's state; after a task the penalty is centred on its weights."""
        return self.trainer.state()

    def load_state(self, state: dict[str, Any]) -> None:
        """Continue from a state."""
        self.trainer.load_state(state)
        self.penalty.recenter()
        self.penalized = bool(self.trainer.model.seen.any())
