"""Experience replay (Chaudhry et al. 2019, arXiv 1902.10486): old images beside the new ones.

As in the DCL paper the buffer takes a task in when it has been learned, and a step sees as many old
images as new ones. What differs is in docs/methods/er.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from everlearn.border import check_whole
from everlearn.memory import Balanced, Buffer, Reservoir
from everlearn.nets import fast
from everlearn.nets.negative import negative_loss
from everlearn.settings import setting
from everlearn.stream import Task
from everlearn.student import Student, Study


@dataclass(frozen=True)
class Settings:
    """What replay can be told; the DCL paper (section 5.2) tries 1,000 to 20,000 images."""

    study: Study = Study()
    memory: int = setting(5000, "images kept (DCL paper, section 5.2: 1,000 to 20,000)")
    recalled: int | None = setting(None, "old images a step; none: as many as new ones (Avalanche)")
    balanced: bool = setting(False, "keep as many of each class, not each image equally likely")
    apart: bool = setting(False, "add the mean over old images to that over new ones, not one mean")
    negative: bool = setting(
        False, "old images only push down the classes of the current task: naive negative replay"
    )

    def __post_init__(self) -> None:
        """Check the memory, and what does not go together."""
        check_whole(self.memory, "memory", 1, 10**9)
        if self.recalled is not None:
            check_whole(self.recalled, "recalled", 1, 10**6)
        if self.negative and self.apart:
            raise ValueError(
                "negative replay has one mean over new and old images, found negative=True with "
                "apart=True; leave one of them out"
            )


class ER:
    """A net and a buffer."""

    def __init__(self, stream: Any, settings: Settings, device: str) -> None:
        """Start with random weights and an empty buffer."""
        self.settings, self.device = settings, device
        self.student, canvas = Student(stream, settings.study, device), stream.canvas
        self.batch_size = self.student.batch_size()
        self.buffer = Buffer(settings.memory, canvas.shape, canvas.bits, device)
        self.choice = (Balanced if settings.balanced else Reservoir)(settings.memory, stream.seed)
        self.current = torch.zeros_like(self.student.model.met)
        self._step = fast.Step(self._learn_batch, self.student.changed)

    def learn(self, task: Task) -> Iterator[Tensor]:
        """Go through the task beside the buffer; then let the buffer choose from the task."""
        new = self.student.batch_size(task)
        self._name_current(task)
        recalled = self.student.draw(task, self.choice.used, self.settings.recalled or new)
        self.batch_size = new + (recalled.shape[1] if len(recalled) else 0)
        for step, (images, units) in enumerate(self.student.lessons(task)):
            yield self._step(images, units, *recalled[step : step + 1])
        self.student.keep(task, self.choice, self.buffer)

    def _name_current(self, task: Task) -> None:
        """Note the classes of a task, in the memory that a step reads."""
        units = self.student.model.unit(torch.tensor(task.classes, dtype=torch.int64))
        self.current.copy_((torch.arange(len(self.current))[:, None] == units).any(1))

    def _learn_batch(self, images: Tensor, units: Tensor, *recalled: Tensor) -> Tensor:
        """One step on new images and those recalled, if any."""
        student, new = self.student, len(units)
        images, units = self.buffer.join(images, units, *recalled)
        return fast.descend(student.optimizer, self._loss(student.logits(images), units, new))

    def _loss(self, logits: Tensor, units: Tensor, new: int) -> Tensor:
        """Mean cross-entropy over new and old images together, or the sum of a mean over each."""
        student, both = self.student, len(units) > new
        if both and self.settings.apart:
            return student.loss(logits[:new], units[:new]) + student.loss(logits[new:], units[new:])
        if both and self.settings.negative:
            old = torch.arange(len(units), device=logits.device) >= new
            met = None if student.study.unmet else student.model.met
            return negative_loss(logits, units, old, self.current, met)
        return student.loss(logits, units)

    def predict(self, images: Tensor, among: Sequence[int] | None = None) -> Tensor:
        """Name the class with the largest logit."""
        return self.student.predict(images, among)

    def state(self) -> dict[str, Any]:
        """What the student has learned, the images kept and how they were chosen."""
        return {
            **self.student.state(),
            "memory": self.buffer.state(),
            "choice": self.choice.state(),
        }

    def load_state(self, state: dict[str, Any]) -> None:
        """Go on from a state."""
        self.student.load_state(state)
        self.buffer.load_state(state["memory"])
        self.choice.load_state(state["choice"])
