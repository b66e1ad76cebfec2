"""A-GEM (Chaudhry et al. 2018, arXiv 1812.00420): no step may hurt the memory as a whole.

Where the gradient of a step would raise the loss on some old images, it is turned until it does not.
What differs is in docs/methods/agem.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from torch import Tensor

from everlearn.border import check_whole
from everlearn.memory import Buffer
from everlearn.nets import fast
from everlearn.nets.gradients import project, slopes_of
from everlearn.settings import setting
from everlearn.stream import Task
from everlearn.student import Student, Study


@dataclass(frozen=True)
class Settings:
    """What A-GEM can be told."""

    study: Study = Study()
    per_task: int = setting(10, "images kept of each task (DCL paper's code: 10)")
    reference: int = setting(64, "old images that a step asks (DCL paper's code: 64)")

    def __post_init__(self) -> None:
        """Check the memory."""
        check_whole(self.per_task, "per_task", 1, 10**6)
        check_whole(self.reference, "reference", 1, 10**6)


class AGEM:
    """A net and some images of every task."""

    def __init__(self, stream: Any, settings: Settings, device: str) -> None:
        """Start with random weights and an empty memory, with room for the whole stream."""
        self.settings, self.device = settings, device
        self.student, canvas = Student(stream, settings.study, device), stream.canvas
        self.batch_size = self.student.batch_size()
        room = len(stream) * settings.per_task
        self.buffer = Buffer(room, canvas.shape, canvas.bits, device)
        self._step = fast.Step(self._learn_batch, self.student.changed)

    def learn(self, task: Task) -> Iterator[Tensor]:
        """Go through the task with an eye on the memory; then keep some of its images."""
        held, new = np.arange(self.buffer.filled), self.student.batch_size(task)
        recalled = self.student.draw(task, held, self.settings.reference)
        self.batch_size = new + (recalled.shape[1] if len(recalled) else 0)
        for step, (images, units) in enumerate(self.student.lessons(task)):
            yield self._step(images, units, *recalled[step : step + 1])
        self.student.append(task, self.settings.per_task, self.buffer)

    def _learn_batch(self, images: Tensor, units: Tensor, *recalled: Tensor) -> Tensor:
        """A step down the loss on new images, turned where it would go up on old ones."""
        student = self.student
        loss = student.loss(student.logits(images), units)
        student.optimizer.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        for rows in recalled:
            old = student.slopes(self.buffer.images(rows), self.buffer.units(rows))
            project(slopes_of(student.weights), old)
        student.optimizer.step()
        return loss

    def predict(self, images: Tensor, among: Sequence[int] | None = None) -> Tensor:
        """Name the class with the largest logit."""
        return self.student.predict(images, among)

    def state(self) -> dict[str, Any]:
        """What the student has learned and the images kept."""
        return {**self.student.state(), "memory": self.buffer.state()}

    def load_state(self, state: dict[str, Any]) -> None:
        """Go on from a state."""
        self.student.load_state(state)
        self.buffer.load_state(state["memory"])
