"""Elastic weight consolidation (Kirkpatrick et al. 2017, arXiv 1612.00796), and its online form.

A quadratic penalty keeps weights near their values after earlier tasks, each by its entry of the Fisher
diagonal there. Online EWC (Schwarz et al. 2018, arXiv 1805.06370) decays the Fisher information of old
tasks and centres the penalty on the last weights. What differs is in docs/methods/ewc.md and online-ewc.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from everlearn.core.settings import setting
from everlearn.core.validate import check_int, check_number
from everlearn.stream import Task, TaskStream
from everlearn.training.flat_params import FlatParams
from everlearn.training.quadratic_penalty import QuadraticPenalty, penalized_step
from everlearn.training.step_pair import step_pair
from everlearn.training.train_settings import TrainSettings
from everlearn.training.trainer import Trainer
from everlearn.training.trainer_gradients import fisher_diagonal

FISHER_LABELS = ("sampled", "true")


@dataclass(frozen=True)
class Settings:
    """Settings of elastic weight consolidation."""

    train: TrainSettings = TrainSettings()
    strength: float = setting(
        0.3, "weight of the penalty, lambda without 1/2 (DCL paper's code: 0.3)"
    )
    decay: float | None = setting(
        None,
        "online EWC: factor on the Fisher information of old tasks, per task; none: one penalty per task",
    )
    fisher_samples: int = setting(
        1000, "images per task for the Fisher information (van de Ven: 1000)"
    )
    fisher_labels: str = setting(
        "sampled", "labels for the Fisher information: sampled from the net's predictions, or true"
    )

    def __post_init__(self) -> None:
        """Check every setting."""
        check_number(self.strength, "strength", 0, 1e12)
        check_int(self.fisher_samples, "fisher_samples", 1, 10**9)
        if self.decay is not None:
            check_number(self.decay, "decay", 0, 1)
        if self.fisher_labels not in FISHER_LABELS:
            known = ", ".join(FISHER_LABELS)
            raise ValueError(f"unknown fisher_labels {self.fisher_labels!r}; known: {known}")


class EWC:
    """A classifier and a quadratic penalty on its weights."""

    def __init__(self, stream: TaskStream, settings: Settings, device: str) -> None:
        """Start with random weights, which follow from the stream's seed, and no penalty."""
        self.settings = settings
        self.device = device
        self.trainer = Trainer(stream, settings.train, device)
        self.batch_size = self.trainer.batch_size()
        self.penalty = QuadraticPenalty(self.trainer.weights, settings.strength)
        self.penalized = False
        self._steps = step_pair(self._train_step, self.trainer.training_state)

    def learn(self, task: Task) -> Iterator[Tensor]:
        """Train on the task, then add its Fisher information to the penalty."""
        self.batch_size = self.trainer.batch_size(task)
        for images, targets in self.trainer.training_batches(task):
            yield self._steps[self.penalized](images, targets)
        if len(task.train):
            self._consolidate(self._fisher_diagonal(task))
        self.penalized |= bool(task.classes)  # a task may be empty

    def _train_step(self, penalized: bool, images: Tensor, targets: Tensor) -> Tensor:
        loss = self.trainer.loss(self.trainer.logits(images), targets)
        return penalized_step(self.trainer.optimizer, loss, [self.penalty] if penalized else [])

    def _fisher_diagonal(self, task: Task) -> Tensor:
        """Return the diagonal of the Fisher information on images of a task, one number per weight."""
        true_labels = self.settings.fisher_labels == "true"
        samples = self.settings.fisher_samples
        diagonal = fisher_diagonal(self.trainer, task, samples, true_labels)
        return FlatParams(self.trainer.weights).copy_from(diagonal)

    def _consolidate(self, importance: Tensor) -> None:
        """Add a task's own penalty (a sum of quadratics is a quadratic), or decay and recentre one."""
        decay = self.settings.decay
        if decay is None:
            self.penalty.add_quadratic(importance)
        else:
            self.penalty.importance.flat.mul_(decay).add_(importance)
            self.penalty.recenter()

    def predict(self, images: Tensor, among: Sequence[int] | None = None) -> Tensor:
        """Return the seen class with the largest logit for each image."""
        return self.trainer.predict(images, among)

    def state(self) -> dict[str, Any]:
        """Return the trainer's state and the penalty."""
        return {**self.trainer.state(), "penalty": self.penalty.state()}

    def load_state(self, state: dict[str, Any]) -> None:
        """Continue from a state."""
        self.trainer.load_state(state)
        self.penalty.load_state(state["penalty"])
        self.penalized = bool(self.trainer.model.seen.any())
