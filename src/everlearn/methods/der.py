"""DER and DER++ (Buzzega et al. 2020, arXiv 2004.07211): answer old images as when they were new.

A reservoir keeps images with the logits of when they were first seen; DER++ asks for their classes, too.
With `refresh`, a step first unlearns its batch (Wang et al. 2024). What differs is in docs/methods/der.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import mse_loss

from everlearn.border import check_number, check_whole
from everlearn.memory import Buffer, Reservoir, draw_rows
from everlearn.memory.reservoir import Ints, last_of
from everlearn.nets import fast
from everlearn.nets.refresh import Refresh
from everlearn.settings import setting
from everlearn.stream import Task
from everlearn.student import Student, Study


@dataclass(frozen=True)
class Settings:
    """What DER can be told; alpha and beta as Mammoth has them for CIFAR-100."""

    study: Study = Study()
    memory: int = setting(5000, "images kept with their logits (DCL paper, section 5.2: 5,000)")
    alpha: float = setting(0.3, "of the distance to old logits (Mammoth, CIFAR-100: 0.3)")
    beta: float = setting(
        0.0, "of the cross-entropy on old images; DER++ (Mammoth, CIFAR-100): 0.5"
    )
    late: bool = setting(
        False, "keep images and logits of when a task ends, as Avalanche; else of the first sight"
    )
    refresh: float = setting(0.0, "how far to unlearn first, delta (Wang et al. 2024: 1e-5); 0: no")

    def __post_init__(self) -> None:
        """Check every number."""
        check_whole(self.memory, "memory", 1, 10**9)
        check_number(self.alpha, "alpha", 0, 1e6)
        check_number(self.beta, "beta", 0, 1e6)
        check_number(self.refresh, "refresh", 0, 1)


class DER:
    """A net and a buffer of images with logits."""

    def __init__(self, stream: Any, settings: Settings, device: str) -> None:
        """Start with random weights and an empty buffer."""
        if stream.online and settings.late:
            raise ValueError(
                "late looks at the images of a task again when it ends, which an online stream "
                "forbids; give late=False"
            )
        self.settings, self.device, self._seed = settings, device, stream.seed
        self.student, canvas = Student(stream, settings.study, device), stream.canvas
        self.batch_size, logits = self.student.batch_size(), len(self.student.model.classes)
        self.buffer = Buffer(settings.memory, canvas.shape, canvas.bits, device, logits)
        self.choice = Reservoir(settings.memory, stream.seed)
        delta, weights = settings.refresh, self.student.weights
        self.refresh = Refresh(weights, delta) if delta else None
        noted = self.refresh.changed if self.refresh else []
        changed = [*self.student.changed, *self.buffer.tensors, *noted]
        self._step = fast.Step(self._learn_batch, changed)

    def learn(self, task: Task) -> Iterator[Tensor]:
        """Go through the task beside the buffer, which takes images in as they come, once each."""
        new, steps = self.student.batch_size(task), self.student.count_steps(task)
        early = not self.settings.late
        count = new * (steps // self.settings.study.pace.epochs) if early else 0
        slots = self._find_slots(task, count, new)
        recalled = self._draw(task, steps, count, new)
        self.batch_size = new * (1 + recalled.shape[1])
        for step, (images, units) in enumerate(self.student.lessons(task)):
            place = slots[step] if step < len(slots) else slots.new_empty(0)
            yield self._step(images, units, place, recalled[step])
        self.choice.seen += count
        self.buffer.filled = min(self.choice.seen, self.settings.memory)
        if self.settings.late:
            self.student.keep(task, self.choice, self.buffer, self._say)
        if self.refresh and steps:
            self.refresh.end_task(steps)

    def _say(self, images: Tensor) -> Tensor:
        """Logits in evaluation."""
        with fast.evaluating(self.student.net):
            return self.student.logits(images)

    def _find_slots(self, task: Task, count: int, new: int) -> Tensor:
        """Where each image of the first epoch goes, (steps, new); of a batch the last in a slot stays."""
        wanted = self.choice.slots(task.index, count).reshape(-1, max(1, new))
        slots = np.full_like(wanted, self.settings.memory)
        for row, places in zip(slots, wanted, strict=True):
            items, taken = last_of(places, self.settings.memory)
            row[items] = taken
        return torch.from_numpy(slots).to(self.device)

    def _draw(self, task: Task, steps: int, count: int, new: int) -> Tensor:
        """What each step recalls: (steps, kinds, new), of what the buffer holds by then.

        Kinds are rows for logits and rows for classes, those that count; none in the first task.
        """
        before, weights = self.choice.seen, (self.settings.alpha, self.settings.beta)
        came = before + np.minimum(np.arange(steps) * new, count)
        held: Ints = np.minimum(came, self.settings.memory)
        kinds = [
            draw_rows(self._seed, task.index, held, steps, new, lane)
            for lane, weight in enumerate(weights)
            if weight and before
        ]
        rows = np.stack(kinds, 1) if kinds else np.zeros((steps, 0, new), np.int64)
        return torch.from_numpy(rows).to(self.device)

    def _learn_batch(self, images: Tensor, units: Tensor, slots: Tensor, rows: Tensor) -> Tensor:
        """One step on new images (B) and old ones, rows (kinds, B); no slots: nothing is kept."""
        if self.refresh:
            self.refresh.unlearn(self.student.slopes(images, units), len(images))
        old = [self.buffer.images(rows.flatten())] if len(rows) else []
        whole = self.student.logits(torch.cat([images, *old]))
        logits, *recalled = torch.split(whole, len(images))
        loss = self._loss(logits, units, recalled, rows)
        if len(slots):
            self.buffer.write(slots, images, units)
            self.buffer.write_logits(slots, logits)
        return fast.descend(self.student.optimizer, loss)

    def _loss(self, logits: Tensor, units: Tensor, recalled: list[Tensor], rows: Tensor) -> Tensor:
        """Section 3: cross-entropy, and the terms of old images whose weights are not zero."""
        alpha, beta = self.settings.alpha, self.settings.beta
        loss, pairs = self.student.loss(logits, units), list(zip(recalled, rows, strict=True))
        if pairs and alpha:
            found, kept = pairs.pop(0)
            loss = loss + alpha * mse_loss(found, self.buffer.logits(kept))
        for found, kept in pairs:
            loss = loss + beta * self.student.loss(found, self.buffer.units(kept))
        return loss

    def predict(self, images: Tensor, among: Sequence[int] | None = None) -> Tensor:
        """Name the class with the largest logit."""
        return self.student.predict(images, among)

    def state(self) -> dict[str, Any]:
        """What the student has learned, what is kept, how many came and what matters to refresh."""
        return {
            **self.student.state(),
            "memory": self.buffer.state(),
            "choice": self.choice.state(),
            "fisher": self.refresh.state() if self.refresh else [],
        }

    def load_state(self, state: dict[str, Any]) -> None:
        """Go on from a state."""
        self.student.load_state(state)
        self.buffer.load_state(state["memory"])
        self.choice.load_state(state["choice"])
        if self.refresh:
            self.refresh.load_state(state["fisher"])
