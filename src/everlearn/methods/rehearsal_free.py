"""Four regularizers without old images, in any mixture (Smith et al. 2023, arXiv 2203.17269).

Prediction distillation, feature distillation, L2 to the previous weights and elastic weight consolidation.
One with weight 0 costs nothing. What differs is in docs/methods/rehearsal-free.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from everlearn.core.settings import setting
from everlearn.core.validate import check_int, check_number
from everlearn.losses.distillation import distillation_loss
from everlearn.nets.features import FeaturesAndLogits
from everlearn.nets.precision import forward_pass
from everlearn.stream import Task, TaskStream
from everlearn.training.flat_params import FlatParams
from everlearn.training.quadratic_penalty import QuadraticPenalty, penalized_step
from everlearn.training.step_pair import step_pair
from everlearn.training.train_settings import TrainSettings
from everlearn.training.trainer import Trainer
from everlearn.training.trainer_gradients import fisher_diagonal


@dataclass(frozen=True)
class Settings:
    """Settings of the mixture."""

    train: TrainSettings = TrainSettings()
    prediction_distillation: float = setting(0.1, "weight of prediction distillation, as in lwf")
    feature_distillation: float = setting(0.0, "weight of feature distillation")
    l2: float = setting(0.1, "weight of the L2 penalty on the distance from the previous weights")
    ewc: float = setting(0.0, "weight of the penalty of elastic weight consolidation")
    temperature: float = setting(2.0, "of both softmaxes of prediction distillation")
    fisher_samples: int = setting(1000, "images per task for the Fisher information")

    def __post_init__(self) -> None:
        """Check every setting."""
        for name in ("prediction_distillation", "feature_distillation", "l2", "ewc"):
            check_number(getattr(self, name), name, 0, 1e12)
        check_number(self.temperature, "temperature", 1e-3, 1e3)
        check_int(self.fisher_samples, "fisher_samples", 1, 10**9)


class RehearsalFree:
    """A classifier and what the regularizers need of it from before the current task."""

    def __init__(self, stream: TaskStream, settings: Settings, device: str) -> None:
        """Start with random weights, which follow from the stream's seed, and no regularizer."""
        self.settings = settings
        self.device = device
        self.trainer = Trainer(stream, settings.train, device)
        self.batch_size = self.trainer.batch_size()
        self.old_classes = torch.zeros_like(self.trainer.model.seen)
        self.regularized = False
        self.student = FeaturesAndLogits(self.trainer.net)
        self.teacher = None
        if settings.prediction_distillation or settings.feature_distillation:
            self.teacher = deepcopy(self.student).requires_grad_(False).eval()
        self.l2 = self._penalties(settings.l2)
        for penalty in self.l2:
            penalty.importance.flat.fill_(1.0)
        self.ewc = self._penalties(settings.ewc)
        self._steps = step_pair(self._train_step, self.trainer.training_state)

    def _penalties(self, strength: float) -> list[QuadraticPenalty]:
        """Return one penalty, or none for a strength of 0."""
        return [QuadraticPenalty(self.trainer.weights, strength)] if strength else []

    def learn(self, task: Task) -> Iterator[Tensor]:
        """Train on the task, then update the teacher and the penalties."""
        self.batch_size = self.trainer.batch_size(task)
        for images, targets in self.trainer.training_batches(task):
            yield self._steps[self.regularized](images, targets)
        for penalty in self.ewc if len(task.train) else ():
            diagonal = fisher_diagonal(self.trainer, task, self.settings.fisher_samples)
            penalty.add_quadratic(FlatParams(self.trainer.weights).copy_from(diagonal))
        self._update_reference()

    def _update_reference(self) -> None:
        """Take the net as it is now as the reference of distillation and L2."""
        if self.teacher is not None:
            self.teacher.load_state_dict(self.student.state_dict())
        for penalty in self.l2:
            penalty.recenter()
        self.old_classes.copy_(self.trainer.model.seen)
        self.regularized = bool(self.trainer.model.seen.any())

    def _train_step(self, regularized: bool, images: Tensor, targets: Tensor) -> Tensor:
        """Cross-entropy and, after the first task, the regularizers that are on."""
        trainer = self.trainer
        if regularized and self.teacher is not None:
            loss = self._distil(self.teacher, images, targets)
        else:
            loss = trainer.loss(trainer.logits(images), targets)
        penalties = [*self.l2, *self.ewc] if regularized else []
        return penalized_step(trainer.optimizer, loss, penalties)

    def _distil(self, teacher: FeaturesAndLogits, images: Tensor, targets: Tensor) -> Tensor:
        """Cross-entropy plus the distillation losses of predictions and features."""
        settings = self.settings
        width = teacher.net.width
        now = forward_pass(self.student, images)
        with torch.no_grad():
            before = forward_pass(teacher, images)
        logits = now[:, width:]
        loss = self.trainer.loss(logits, targets)
        if settings.prediction_distillation:
            distance = distillation_loss(
                logits, before[:, width:], self.old_classes, settings.temperature
            )
            loss = loss + settings.prediction_distillation * distance
        if settings.feature_distillation:
            change = (now - before)[:, :width]
            loss = loss + settings.feature_distillation * change.square().sum(1).mean().float()
        return loss

    def predict(self, images: Tensor, among: Sequence[int] | None = None) -> Tensor:
        """Return the seen class with the largest logit for each image."""
        return self.trainer.predict(images, among)

    def state(self) -> dict[str, Any]:
        """Return the trainer's state, which includes the teacher after a task, and EWC's penalty."""
        return {**self.trainer.state(), "penalty": [penalty.state() for penalty in self.ewc]}

    def load_state(self, state: dict[str, Any]) -> None:
        """Continue from a state."""
        self.trainer.load_state(state)
        for penalty, kept in zip(self.ewc, state["penalty"], strict=True):
            penalty.load_state(kept)
        self._update_reference()
