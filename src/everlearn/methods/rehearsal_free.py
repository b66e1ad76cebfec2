"""Four ways to forget less without old images, in any mixture (Smith et al. 2023, arXiv 2203.17269).

Prediction distillation, feature distillation, L2 to the last weights, elastic weight consolidation. One
whose weight is 0 costs nothing. What differs is in docs/methods/rehearsal-free.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from everlearn.border import check_number, check_whole
from everlearn.nets import fast
from everlearn.nets.anchor import Anchor, Row, descend
from everlearn.nets.both import Both
from everlearn.nets.distil import divergence
from everlearn.settings import setting
from everlearn.stream import Task
from everlearn.student import Student, Study


@dataclass(frozen=True)
class Settings:
    """What a mixture can be told."""

    study: Study = Study()
    prediction: float = setting(0.1, "weight of prediction distillation, the loss of lwf")
    feature: float = setting(0.0, "weight of feature distillation")
    l2: float = setting(0.1, "strength of the penalty on distances from the last weights")
    ewc: float = setting(0.0, "strength of the penalty of elastic weight consolidation")
    temperature: float = setting(2.0, "of both softmaxes of prediction distillation")
    samples: int = setting(1000, "images a task for the Fisher information")

    def __post_init__(self) -> None:
        """Check every setting."""
        for name in ("prediction", "feature", "l2", "ewc"):
            check_number(getattr(self, name), name, 0, 1e12)
        check_number(self.temperature, "temperature", 1e-3, 1e3)
        check_whole(self.samples, "samples", 1, 10**9)


class RehearsalFree:
    """A net, and what the mixture needs of it as it was before the current task."""

    def __init__(self, stream: Any, settings: Settings, device: str) -> None:
        """Start with random weights and nothing to keep."""
        self.settings, self.device = settings, device
        self.student = Student(stream, settings.study, device)
        self.batch_size = self.student.batch_size()
        self.past, self.held = torch.zeros_like(self.student.model.met), False
        self.pupil, self.teacher = Both(self.student.net), None
        if settings.prediction or settings.feature:
            self.teacher = deepcopy(self.pupil).requires_grad_(False).eval()
        self.l2, self.ewc = self._anchor(settings.l2), self._anchor(settings.ewc)
        for anchor in self.l2:
            anchor.importance.all.fill_(1.0)
        self._steps = fast.both_ways(self._learn_batch, self.student.changed)

    def _anchor(self, strength: float) -> list[Anchor]:
        """One anchor, or none."""
        return [Anchor(self.student.weights, strength)] if strength else []

    def learn(self, task: Task) -> Iterator[Tensor]:
        """Go through the task; then be the net of before for the next one."""
        self.batch_size = self.student.batch_size(task)
        for images, units in self.student.lessons(task):
            yield self._steps[self.held](images, units)
        for anchor in self.ewc if len(task.train) else ():
            matters = self.student.fisher(task, self.settings.samples)
            anchor.add(Row(self.student.weights).read(matters))
        self._hold()

    def _hold(self) -> None:
        """Take the net of now for the one of before."""
        if self.teacher is not None:
            self.teacher.load_state_dict(self.pupil.state_dict())
        for anchor in self.l2:
            anchor.hold()
        self.past.copy_(self.student.model.met)
        self.held = self.student.has_met

    def _learn_batch(self, held: bool, images: Tensor, units: Tensor) -> Tensor:
        """Cross-entropy and, after the first task, what is on of the four."""
        student = self.student
        if held and self.teacher is not None:
            loss = self._distil(self.teacher, images, units)
        else:
            loss = student.loss(student.logits(images), units)
        return descend(student.optimizer, loss, [*self.l2, *self.ewc] if held else [])

    def _distil(self, teacher: Both, images: Tensor, units: Tensor) -> Tensor:
        """Cross-entropy, and how far answers and features are from those of before."""
        settings, width = self.settings, teacher.net.width
        now = fast.forward(self.pupil, images)
        with torch.no_grad():
            before = fast.forward(teacher, images)
        logits, old = now[:, width:], before[:, width:]
        loss = self.student.loss(logits, units)
        if settings.prediction:
            far = divergence(logits, old, self.past, settings.temperature)
            loss = loss + settings.prediction * far
        if settings.feature:
            off = (now - before)[:, :width]
            loss = loss + settings.feature * off.square().sum(1).mean()
        return loss

    def predict(self, images: Tensor, among: Sequence[int] | None = None) -> Tensor:
        """Name the class with the largest logit."""
        return self.student.predict(images, among)

    def state(self) -> dict[str, Any]:
        """What the student has learned, which is the net of before, too; and what EWC holds."""
        return {**self.student.state(), "anchor": [anchor.state() for anchor in self.ewc]}

    def load_state(self, state: dict[str, Any]) -> None:
        """Go on from a state."""
        self.student.load_state(state)
        for anchor, kept in zip(self.ewc, state["anchor"], strict=True):
            anchor.load_state(kept)
        self._hold()
