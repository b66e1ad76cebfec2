"""L2 to the last weights: no weight may go far from where the task before left it.

The plain one of the parameter penalties that Smith et al. 2023 (arXiv 2203.17269) compare. What differs is
in docs/methods/l2.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from everlearn.border import check_number
from everlearn.nets import fast
from everlearn.nets.anchor import Anchor, descend
from everlearn.settings import setting
from everlearn.stream import Task
from everlearn.student import Student, Study


@dataclass(frozen=True)
class Settings:
    """What L2 can be told."""

    study: Study = Study()
    strength: float = setting(0.1, "of the penalty on squared distances (our choice)")

    def __post_init__(self) -> None:
        """Check the strength."""
        check_number(self.strength, "strength", 0, 1e12)


class L2:
    """A net, and its weights as they were before the current task."""

    def __init__(self, stream: Any, settings: Settings, device: str) -> None:
        """Start with random weights and nothing to keep."""
        self.student, self.device = Student(stream, settings.study, device), device
        self.batch_size = self.student.batch_size()
        self.anchor, self.held = Anchor(self.student.weights, settings.strength), False
        self.anchor.importance.all.fill_(1.0)
        self._steps = fast.both_ways(self._learn_batch, self.student.changed)

    def learn(self, task: Task) -> Iterator[Tensor]:
        """Go through the task; then hold on to where it led."""
        self.batch_size = self.student.batch_size(task)
        for images, units in self.student.lessons(task):
            yield self._steps[self.held](images, units)
        self.anchor.hold()
        self.held |= bool(task.classes)  # a task may be empty

    def _learn_batch(self, held: bool, images: Tensor, units: Tensor) -> Tensor:
        student = self.student
        loss = student.loss(student.logits(images), units)
        return descend(student.optimizer, loss, [self.anchor] if held else [])

    def predict(self, images: Tensor, among: Sequence[int] | None = None) -> Tensor:
        """Name the class with the largest logit."""
        return self.student.predict(images, among)

    def state(self) -> dict[str, Any]:
        """What the student has learned; after a task it is held where it is."""
        return self.student.state()

    def load_state(self, state: dict[str, Any]) -> None:
        """Go on from a state."""
        self.student.load_state(state)
        self.anchor.hold()
        self.held = self.student.has_met
