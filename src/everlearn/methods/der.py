"""DER and DER++ (Buzzega et al. 2020, arXiv 2004.07211): replay old images with their old logits.

A reservoir keeps images with the logits of when they were first seen, of the classes known then; DER++ adds
cross-entropy on old images. With `refresh`, a step first unlearns its batch (Wang et al. 2024). What
differs is in docs/methods/der.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from everlearn.core.settings import setting
from everlearn.core.validate import check_int, check_number
from everlearn.losses.distillation import NOT_STORED, logit_distance
from everlearn.memory import Buffer, ClassBalanced, Reservoir, draw_replay_rows
from everlearn.memory.reservoir import Ints, last_per_slot
from everlearn.nets.precision import eval_mode
from everlearn.stream import Task, TaskStream
from everlearn.training.captured_step import CapturedStep
from everlearn.training.optimizer_step import optimizer_step
from everlearn.training.refresh import Refresh
from everlearn.training.train_settings import TrainSettings
from everlearn.training.trainer import Sampler, Trainer
from everlearn.training.trainer_gradients import loss_gradients


@dataclass(frozen=True)
class Settings:
    """Settings of DER; alpha and beta as in Mammoth for CIFAR-100."""

    train: TrainSettings = TrainSettings()
    buffer_size: int = setting(
        5000, "images kept with their logits (DCL paper, section 5.2: 5,000)"
    )
    alpha: float = setting(0.3, "weight of the distance to stored logits (Mammoth, CIFAR-100: 0.3)")
    beta: float = setting(
        0.0, "weight of the cross-entropy on old images; DER++ (Mammoth, CIFAR-100): 0.5"
    )
    store_at_task_end: bool = setting(
        False, "store images and logits when a task ends, as Avalanche; else at first sight"
    )
    balanced: bool = setting(
        False, "keep equally many images of each class, with store_at_task_end; else a reservoir"
    )
    refresh: float = setting(0.0, "how far to unlearn first, delta (Wang et al. 2024: 1e-5); 0: no")

    def __post_init__(self) -> None:
        """Check every number."""
        check_int(self.buffer_size, "buffer_size", 1, 10**9)
        check_number(self.alpha, "alpha", 0, 1e6)
        check_number(self.beta, "beta", 0, 1e6)
        check_number(self.refresh, "refresh", 0, 1)
        if self.balanced and not self.store_at_task_end:
            raise ValueError(
                "balanced needs store_at_task_end, found False: which images stay is known when a task "
                "ends; give store_at_task_end=True"
            )


class DER:
    """A classifier and a buffer of images with logits."""

    def __init__(self, stream: TaskStream, settings: Settings, device: str) -> None:
        """Start with random weights, which follow from the stream's seed, and an empty buffer."""
        if stream.online and settings.store_at_task_end:
            raise ValueError(
                "store_at_task_end sees the images of a task again when it ends, which an online "
                "stream forbids; give store_at_task_end=False"
            )
        self.settings = settings
        self.device = device
        self._seed = stream.seed
        self.trainer = Trainer(stream, settings.train, device)
        self.batch_size = self.trainer.batch_size()
        canvas = stream.canvas
        logits = len(self.trainer.model.classes)
        self.buffer = Buffer(settings.buffer_size, canvas.shape, canvas.bits, device, logits)
        self.reservoir = Reservoir(settings.buffer_size, stream.seed)
        self.sampler: Sampler = self.reservoir
        if settings.balanced:
            self.sampler = ClassBalanced(settings.buffer_size, stream.seed)
        delta = settings.refresh
        self.refresh = Refresh(self.trainer.weights, delta) if delta else None
        squared_gradients = self.refresh.squared_gradients if self.refresh else []
        changed = [*self.trainer.training_state, *self.buffer.tensors, *squared_gradients]
        self._step = CapturedStep(self._train_step, changed)

    def learn(self, task: Task) -> Iterator[Tensor]:
        """Train on the task and the buffer, which stores each image in the first epoch or at the end."""
        new = self.trainer.batch_size(task)
        steps = self.trainer.count_steps(task)
        at_end = self.settings.store_at_task_end
        count = 0 if at_end else new * (steps // self.settings.train.schedule.epochs)
        slots = self._find_slots(task, count, new)
        replay = self._draw_replay(task, steps, count, new)
        self.batch_size = new * (1 + replay.shape[1])
        for step, (images, targets) in enumerate(self.trainer.training_batches(task)):
            step_slots = slots[step] if step < len(slots) else slots.new_empty(0)
            yield self._step(images, targets, step_slots, replay[step])
        if at_end:
            self.trainer.store(task, self.sampler, self.buffer, self._eval_logits)
        else:
            self.reservoir.seen += count
            self.buffer.filled = len(self.reservoir.used)
        if self.refresh and steps:
            self.refresh.end_task(steps)

    def _eval_logits(self, images: Tensor) -> Tensor:
        """Return the logits to store, in evaluation mode."""
        with eval_mode(self.trainer.net):
            return self._known(self.trainer.logits(images))

    def _known(self, logits: Tensor) -> Tensor:
        """Mark the logits of classes that are not known yet: they are not to be matched."""
        known = self.trainer.model.seen | self.settings.train.include_unseen
        return logits.masked_fill(~known, NOT_STORED)

    def _find_slots(self, task: Task, count: int, new: int) -> Tensor:
        """Return the slot of each image of the first epoch, (steps, new); `buffer_size` is no slot.

        Where several images of a batch draw one slot, the last one is kept.
        """
        no_slot = self.settings.buffer_size
        drawn = self.reservoir.slots(task.index, count).reshape(-1, max(1, new))
        slots = np.full_like(drawn, no_slot)
        for row, drawn_row in zip(slots, drawn, strict=True):
            items, taken = last_per_slot(drawn_row, no_slot)
            row[items] = taken
        return torch.from_numpy(slots).to(self.device)

    def _draw_replay(self, task: Task, steps: int, count: int, new: int) -> Tensor:
        """Draw rows of the buffer for each step, of those filled by then: (steps, terms, new).

        Terms are rows for the distance to logits (alpha) and rows for the cross-entropy (beta), where the
        weight is not 0; there are none in the first task.
        """
        used = self.sampler.used
        arrived = len(used) + np.minimum(np.arange(steps) * new, count)
        filled: Ints = np.minimum(arrived, self.settings.buffer_size)
        weights = (self.settings.alpha, self.settings.beta)
        terms = [
            draw_replay_rows(self._seed, task.index, filled, steps, new, substream)
            for substream, weight in enumerate(weights)
            if weight and len(used)
        ]
        rows = np.stack(terms, 1) if terms else np.zeros((steps, 0, new), np.int64)
        if self.settings.balanced:  # it leaves slots empty; a reservoir fills them in their order
            rows = used[rows]
        return torch.from_numpy(rows).to(self.device)

    def _train_step(self, images: Tensor, targets: Tensor, slots: Tensor, rows: Tensor) -> Tensor:
        """Take one step on new images (B) and rows (terms, B); without slots nothing is stored."""
        if self.refresh:
            self.refresh.unlearn(loss_gradients(self.trainer, images, targets), len(images))
        old = [self.buffer.images(rows.flatten())] if len(rows) else []
        all_logits = self.trainer.logits(torch.cat([images, *old]))
        logits, *old_logits = torch.split(all_logits, len(images))
        loss = self._loss(logits, targets, old_logits, rows)
        if len(slots):
            self.buffer.write(slots, images, targets)
            self.buffer.write_logits(slots, self._known(logits))
        return optimizer_step(self.trainer.optimizer, loss)

    def _loss(
        self, logits: Tensor, targets: Tensor, old_logits: list[Tensor], rows: Tensor
    ) -> Tensor:
        """Section 3: cross-entropy, and the terms of old images with a weight (eq. 6)."""
        loss = self.trainer.loss(logits, targets)
        terms = list(zip(old_logits, rows, strict=True))
        if terms and self.settings.alpha:
            found, kept = terms.pop(0)
            loss = loss + self.settings.alpha * logit_distance(found, self.buffer.logits(kept))
        for found, kept in terms:
            cross_entropy = self.trainer.loss(found, self.buffer.targets(kept))
            loss = loss + self.settings.beta * cross_entropy
        return loss

    def predict(self, images: Tensor, among: Sequence[int] | None = None) -> Tensor:
        """Return the seen class with the largest logit for each image."""
        return self.trainer.predict(images, among)

    def state(self) -> dict[str, Any]:
        """Return the trainer's state, the buffer, the sampler's state and refresh's Fisher diagonal."""
        return {
            **self.trainer.state(),
            "memory": self.buffer.state(),
            "sampler": self.sampler.state(),
            "fisher": self.refresh.state() if self.refresh else [],
        }

    def load_state(self, state: dict[str, Any]) -> None:
        """Continue from a state."""
        self.trainer.load_state(state)
        self.buffer.load_state(state["memory"])
        self.sampler.load_state(state["sampler"])
        if self.refresh:
            self.refresh.load_state(state["fisher"])
