"""Synaptic intelligence (Zenke et al. 2017, arXiv 1703.04200): penalize moves of important weights.

The importance of a weight is the part of the loss decrease that its own moves account for, summed over the
steps of a task. What differs, and Avalanche's variant, is in docs/methods/si.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from everlearn.core.settings import setting
from everlearn.core.validate import check_number
from everlearn.stream import Task, TaskStream
from everlearn.training.flat_params import FlatParams
from everlearn.training.path_integral import PathIntegral, without_norms
from everlearn.training.quadratic_penalty import QuadraticPenalty
from everlearn.training.step_pair import step_pair
from everlearn.training.train_settings import TrainSettings
from everlearn.training.trainer import Trainer

# Constants of Avalanche's variant.
_AVALANCHE_DAMPING = 1e-7
_AVALANCHE_MAX_IMPORTANCE = 1e-3


@dataclass(frozen=True)
class Settings:
    """Settings of synaptic intelligence."""

    train: TrainSettings = TrainSettings()
    strength: float = setting(0.1, "weight of the penalty, c (DCL paper, section 5.1: 0.1)")
    damping: float = setting(
        0.1, "bounds the importance of weights that barely moved, xi (Zenke: 0.1)"
    )
    avalanche_compat: bool = setting(False, "Avalanche's variant, which the DCL paper ran")

    def __post_init__(self) -> None:
        """Check both numbers."""
        check_number(self.strength, "strength", 0, 1e12)
        check_number(self.damping, "damping", 1e-12, 1e12)


class SI:
    """A classifier, its weights before the current task and the importance of each."""

    def __init__(self, stream: TaskStream, settings: Settings, device: str) -> None:
        """Start with random weights, which follow from the stream's seed, and no penalty."""
        self.settings = settings
        self.device = device
        self.trainer = Trainer(stream, settings.train, device)
        self.batch_size = self.trainer.batch_size()
        compat = settings.avalanche_compat
        weights = without_norms(self.trainer.net) if compat else self.trainer.weights
        self.penalty = QuadraticPenalty(weights, settings.strength * (0.5 if compat else 1))
        self.penalty.recenter()
        self.penalized = False
        self.path = PathIntegral(weights)
        self.importance = FlatParams(weights).flat
        self._steps = step_pair(
            self._train_step, [*self.trainer.training_state, self.path.omega.flat]
        )

    def learn(self, task: Task) -> Iterator[Tensor]:
        """Train on the task, then update importance and penalty."""
        self.batch_size = self.trainer.batch_size(task)
        for images, targets in self.trainer.training_batches(task):
            yield self._steps[self.penalized](images, targets)
        self._consolidate()
        self.penalized |= bool(task.classes)  # a task may be empty

    def _train_step(self, penalized: bool, images: Tensor, targets: Tensor) -> Tensor:
        """Integrate over the gradients of the loss alone; Avalanche's include those of the penalty."""
        trainer = self.trainer
        compat = self.settings.avalanche_compat
        loss = trainer.loss(trainer.logits(images), targets)
        trainer.optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        if not compat:
            self.path.before_step()
        if penalized:
            loss = loss.detach() + self.penalty.add_gradients()
        if compat:
            self.path.before_step()
        trainer.optimizer.step()
        self.path.after_step()
        return loss

    def _consolidate(self) -> None:
        """Omega += omega / (displacement^2 + xi) (eq. 5); then start a new path at these weights."""
        compat = self.settings.avalanche_compat
        xi = _AVALANCHE_DAMPING if compat else self.settings.damping
        omega = self.path.omega.flat
        self.importance += omega / (self.penalty.displacement().square() + xi)
        self._update_penalty()
        omega.zero_()

    def _update_penalty(self) -> None:
        """Centre the penalty here, with importance clamped at 0; Avalanche clamps it from above.

        The sum itself stays as it is, so that negative contributions of a task are not lost.
        """
        out = self.penalty.importance.flat
        if self.settings.avalanche_compat:
            torch.clamp(self.importance, max=_AVALANCHE_MAX_IMPORTANCE, out=out)
        else:
            torch.clamp(self.importance, min=0, out=out)
        self.penalty.recenter()

    def predict(self, images: Tensor, among: Sequence[int] | None = None) -> Tensor:
        """Return the seen class with the largest logit for each image."""
        return self.trainer.predict(images, among)

    def state(self) -> dict[str, Any]:
        """Return the trainer's state and the importance of every weight."""
        return {**self.trainer.state(), "importance": self.importance}

    def load_state(self, state: dict[str, Any]) -> None:
        """Continue from a state."""
        self.trainer.load_state(state)
        self.importance.copy_(state["importance"])
        self.path.omega.flat.zero_()
        self._update_penalty()
        self.penalized = bool(self.trainer.model.seen.any())
