"""GEM (Lopez-Paz and Ranzato 2017, arXiv 1706.08840): project gradients that conflict with any past task.

Each step computes one gradient per past task, so its cost grows with their number. What differs is in
docs/methods/gem.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from everlearn.core.settings import setting
from everlearn.core.validate import check_int, check_number
from everlearn.memory import Buffer
from everlearn.nets.precision import deterministic
from everlearn.stream import Task, TaskStream
from everlearn.training.captured_step import CapturedStep
from everlearn.training.episodic_memory import append_random
from everlearn.training.gradients import Floats, flatten, gradients_of, solve_dual, unflatten
from everlearn.training.train_settings import TrainSettings
from everlearn.training.trainer import Trainer
from everlearn.training.trainer_gradients import loss_gradients

_COLUMNS = 2**20  # of gradients in float64 at once


@dataclass(frozen=True)
class Settings:
    """Settings of GEM."""

    train: TrainSettings = TrainSettings()
    images_per_task: int = setting(
        256, "images kept of each task (Lopez-Paz and Ranzato's code: 256)"
    )
    margin: float = setting(0.5, "least share of each old gradient, gamma (appendix A: 0.5)")

    def __post_init__(self) -> None:
        """Check both numbers."""
        check_int(self.images_per_task, "images_per_task", 1, 10**6)
        check_number(self.margin, "margin", 0, 1e3)


class GEM:
    """A classifier and a separate memory of every task."""

    def __init__(self, stream: TaskStream, settings: Settings, device: str) -> None:
        """Start with random weights, which follow from the stream's seed, and an empty buffer."""
        self.settings = settings
        self.device = device
        self.trainer = Trainer(stream, settings.train, device)
        self.batch_size = self.trainer.batch_size()
        canvas = stream.canvas
        capacity = len(stream) * settings.images_per_task
        self.buffer = Buffer(capacity, canvas.shape, canvas.bits, device)
        self.counts: list[int] = []  # images of each past task, in the order of the buffer
        self._plain_step = CapturedStep(self.trainer.train_step, self.trainer.training_state)
        self._gradient = CapturedStep(self._gradient_on, self.trainer.training_state)

    def learn(self, task: Task) -> Iterator[Tensor]:
        """Train on the task with projected gradients, then store some of its images."""
        past = torch.split(torch.arange(self.buffer.filled, device=self.device), self.counts)
        self.batch_size = self.trainer.batch_size(task) + self.buffer.filled
        for images, targets in self.trainer.training_batches(task):
            if past:
                yield self._projected_step(images, targets, past)
            else:
                yield self._plain_step(images, targets)
        stored = append_random(self.trainer, task, self.settings.images_per_task, self.buffer)
        self.counts.append(stored)

    def _projected_step(self, images: Tensor, targets: Tensor, past: Sequence[Tensor]) -> Tensor:
        """Take one step, with the gradient projected where it conflicts with that of a past task."""
        trainer = self.trainer
        old = torch.stack([self._gradient(rows) for rows in past])
        trainer.optimizer.zero_grad()
        with deterministic():
            loss = trainer.loss(trainer.logits(images), targets)
            loss.backward()  # type: ignore[no-untyped-call]
        gradients = gradients_of(trainer.weights)
        correction = self._correction(old, flatten(gradients))
        if correction is not None:
            torch._foreach_add_(gradients, unflatten(correction, gradients))
        trainer.optimizer.step()
        return loss.detach()

    def _correction(self, old: Tensor, new: Tensor) -> Tensor | None:
        """What to add to the new gradient (P,) given those of past tasks (K, P); None without a conflict.

        The dual problem has one unknown per task. It is solved on the CPU, so this waits for a GPU.
        """
        products = _products(old, new[None]).ravel()
        if (products >= 0).all():
            return None
        gram = _products(old, old)
        shares = solve_dual(gram, products, self.settings.margin)
        weights = torch.from_numpy(shares).to(old.device)
        return torch.cat(
            [(weights @ piece.double()).float() for piece in torch.split(old, _COLUMNS, 1)]
        )

    def _gradient_on(self, rows: Tensor) -> Tensor:
        """Return the gradient on rows of the buffer, (P,)."""
        images = self.buffer.images(rows)
        return flatten(loss_gradients(self.trainer, images, self.buffer.targets(rows)))

    def predict(self, images: Tensor, among: Sequence[int] | None = None) -> Tensor:
        """Return the seen class with the largest logit for each image."""
        return self.trainer.predict(images, among)

    def state(self) -> dict[str, Any]:
        """Return the trainer's state, the buffer and the number of images of each task."""
        return {
            **self.trainer.state(),
            "memory": self.buffer.state(),
            "counts": list(self.counts),
        }

    def load_state(self, state: dict[str, Any]) -> None:
        """Continue from a state."""
        self.trainer.load_state(state)
        self.buffer.load_state(state["memory"])
        self.counts = list(state["counts"])


def _products(first: Tensor, second: Tensor) -> Floats:
    """Dot products (K, L) of rows (K, P) and (L, P), summed in float64, some columns at a time."""
    total = torch.zeros((len(first), len(second)), dtype=torch.float64, device=first.device)
    pieces = (torch.split(rows, _COLUMNS, 1) for rows in (first, second))
    for one, two in zip(*pieces, strict=True):
        total += one.double() @ two.double().T
    out: Floats = total.cpu().numpy()
    return out
