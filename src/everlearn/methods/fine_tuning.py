"""Fine-tuning: cross-entropy on the current task and nothing against forgetting, the lower bound."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from everlearn.nets import fast
from everlearn.stream import Task
from everlearn.student import Student, Study


@dataclass(frozen=True)
class Settings:
    """What fine-tuning can be told."""

    study: Study = Study()


class FineTuning:
    """One net, one head over all classes of the stream."""

    def __init__(self, stream: Any, settings: Settings, device: str) -> None:
        """Start with random weights, which follow from the stream's seed."""
        self.student, self.device = Student(stream, settings.study, device), device
        self.batch_size = self.student.batch_size()
        self._step = fast.Step(self.student.descend, self.student.changed)

    def learn(self, task: Task) -> Iterator[Tensor]:
        """Go through the task."""
        self.batch_size = self.student.batch_size(task)
        for images, units in self.student.lessons(task):
            yield self._step(images, units)

    def predict(self, images: Tensor, among: Sequence[int] | None = None) -> Tensor:
        """Name the class with the largest logit."""
        return self.student.predict(images, among)

    def state(self) -> dict[str, Any]:
        """What the student has learned."""
        return self.student.state()

    def load_state(self, state: dict[str, Any]) -> None:
        """Go on from a state."""
        self.student.load_state(state)
