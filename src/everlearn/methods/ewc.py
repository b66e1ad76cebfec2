"""Elastic weight consolidation (Kirkpatrick et al. 2017, arXiv 1612.00796), and its online form.

Weights are held the more, the more the net's answers on old tasks depend on them: by the diagonal of the
Fisher information. The online form (Schwarz et al. 2018, arXiv 1805.06370) lets old tasks fade and holds
on to the last weights only. What differs is in docs/methods/ewc.md and online-ewc.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from everlearn.border import check_number, check_whole
from everlearn.nets import fast
from everlearn.nets.anchor import Anchor, Row, descend
from everlearn.settings import setting
from everlearn.stream import Task
from everlearn.student import Student, Study

LABELS = ("sampled", "true")


@dataclass(frozen=True)
class Settings:
    """What elastic weight consolidation can be told."""

    study: Study = Study()
    strength: float = setting(0.3, "of the penalty, lambda without 1/2 (DCL paper's code: 0.3)")
    decay: float | None = setting(
        None, "what a task is worth one task later, held at the last weights; none: all count fully"
    )
    samples: int = setting(1000, "images a task for the Fisher information (van de Ven: 1000)")
    labels: str = setting("sampled", "for the Fisher information: sampled from the net, or true")

    def __post_init__(self) -> None:
        """Check every setting."""
        check_number(self.strength, "strength", 0, 1e12)
        check_whole(self.samples, "samples", 1, 10**9)
        if self.decay is not None:
            check_number(self.decay, "decay", 0, 1)
        if self.labels not in LABELS:
            raise ValueError(f"unknown labels {self.labels!r}; known: {', '.join(LABELS)}")


class EWC:
    """A net, where its weights were and how much they mattered there."""

    def __init__(self, stream: Any, settings: Settings, device: str) -> None:
        """Start with random weights and nothing to keep."""
        self.settings, self.device = settings, device
        self.student = Student(stream, settings.study, device)
        self.batch_size = self.student.batch_size()
        self.anchor, self.held = Anchor(self.student.weights, settings.strength), False
        self._steps = fast.both_ways(self._learn_batch, self.student.changed)

    def learn(self, task: Task) -> Iterator[Tensor]:
        """Go through the task; then hold on to what it needs."""
        self.batch_size = self.student.batch_size(task)
        for images, units in self.student.lessons(task):
            yield self._steps[self.held](images, units)
        if len(task.train):
            self._consolidate(self._measure(task))
        self.held |= bool(task.classes)  # a task may be empty

    def _learn_batch(self, held: bool, images: Tensor, units: Tensor) -> Tensor:
        student = self.student
        loss = student.loss(student.logits(images), units)
        return descend(student.optimizer, loss, [self.anchor] if held else [])

    def _measure(self, task: Task) -> Tensor:
        """The diagonal of the Fisher information on some images of a task, a row."""
        student, true = self.student, self.settings.labels == "true"
        return Row(student.weights).read(student.fisher(task, self.settings.samples, true))

    def _consolidate(self, importance: Tensor) -> None:
        """Every task with its own place (the sum of their quadratics is one), or all with the last."""
        decay = self.settings.decay
        if decay is None:
            self.anchor.add(importance)
        else:
            self.anchor.importance.all.mul_(decay).add_(importance)
            self.anchor.hold()

    def predict(self, images: Tensor, among: Sequence[int] | None = None) -> Tensor:
        """Name the class with the largest logit."""
        return self.student.predict(images, among)

    def state(self) -> dict[str, Any]:
        """What the student has learned, where it is held and how much."""
        return {**self.student.state(), "anchor": self.anchor.state()}

    def load_state(self, state: dict[str, Any]) -> None:
        """Go on from a state."""
        self.student.load_state(state)
        self.anchor.load_state(state["anchor"])
        self.held = self.student.has_met
