"""Learning without forgetting (Li and Hoiem 2016, arXiv 1606.09282): answer as before on old classes.

While a task is learned, the net of before is asked what it makes of the new images. What differs is in
docs/methods/lwf.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from everlearn.border import check_number
from everlearn.nets import fast
from everlearn.nets.distil import divergence
from everlearn.settings import setting
from everlearn.stream import Task
from everlearn.student import Student, Study


@dataclass(frozen=True)
class Settings:
    """What learning without forgetting can be told."""

    study: Study = Study()
    weight: float = setting(0.1, "of the distillation, lambda_o (DCL paper, section 5.1: 0.1)")
    temperature: float = setting(2.0, "of both softmaxes (Li and Hoiem 2016, section 3: 2)")

    def __post_init__(self) -> None:
        """Check both."""
        check_number(self.weight, "weight", 0, 1e6)
        check_number(self.temperature, "temperature", 1e-3, 1e3)


class LwF:
    """A net and a copy of it as it was before the current task."""

    def __init__(self, stream: Any, settings: Settings, device: str) -> None:
        """Start with random weights and nothing to keep."""
        self.settings, self.device = settings, device
        self.student = Student(stream, settings.study, device)
        self.batch_size = self.student.batch_size()
        self.teacher = deepcopy(self.student.net).requires_grad_(False).eval()
        self.past = torch.zeros_like(self.student.model.met)
        self._step = fast.Step(self._learn_batch, self.student.changed)

    def learn(self, task: Task) -> Iterator[Tensor]:
        """Go through the task; then be the teacher of the next one."""
        self.batch_size = self.student.batch_size(task)
        old = [self.past] if self.past.any() else []
        for images, units in self.student.lessons(task):
            yield self._step(images, units, *old)
        self.teacher.load_state_dict(self.student.net.state_dict())
        self.past.copy_(self.student.model.met)

    def _learn_batch(self, images: Tensor, units: Tensor, *old: Tensor) -> Tensor:
        """Cross-entropy, and the divergence from the teacher on the classes of earlier tasks."""
        student, settings = self.student, self.settings
        logits = student.logits(images)
        loss = student.loss(logits, units)
        for past in old:
            with torch.no_grad():
                before = fast.forward(self.teacher, images)
            loss = loss + settings.weight * divergence(logits, before, past, settings.temperature)
        return fast.descend(student.optimizer, loss)

    def predict(self, images: Tensor, among: Sequence[int] | None = None) -> Tensor:
        """Name the class with the largest logit."""
        return self.student.predict(images, among)

    def state(self) -> dict[str, Any]:
        """What the student has learned; after a task the teacher is the student, the past what it met."""
        return self.student.state()

    def load_state(self, state: dict[str, Any]) -> None:
        """Go on from a state."""
        self.student.load_state(state)
        self.teacher.load_state_dict(self.student.net.state_dict())
        self.past.copy_(self.student.model.met)
