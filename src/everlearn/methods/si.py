"""Synaptic intelligence (Zenke et al. 2017, arXiv 1703.04200): hold weights by what they did for the loss.

Each weight counts, step by step, how much of the fall of the loss its own move explains. What differs,
and Avalanche's other form of it, is in docs/methods/si.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from everlearn.border import check_number
from everlearn.nets import fast
from everlearn.nets.anchor import Anchor, Row
from everlearn.nets.path import Path, without_norms
from everlearn.settings import setting
from everlearn.stream import Task
from everlearn.student import Student, Study

# Of Avalanche's form.
_EPS, _MOST = 1e-7, 1e-3


@dataclass(frozen=True)
class Settings:
    """What synaptic intelligence can be told."""

    study: Study = Study()
    strength: float = setting(0.1, "of the penalty, c (DCL paper, section 5.1: 0.1)")
    damping: float = setting(0.1, "keeps importance finite where a weight stayed, xi (Zenke: 0.1)")
    avalanche_compat: bool = setting(False, "Avalanche's form, which the DCL paper ran")

    def __post_init__(self) -> None:
        """Check both numbers."""
        check_number(self.strength, "strength", 0, 1e12)
        check_number(self.damping, "damping", 1e-12, 1e12)


class SI:
    """A net, its weights as they were before the current task, and what each did so far."""

    def __init__(self, stream: Any, settings: Settings, device: str) -> None:
        """Start with random weights and nothing to keep."""
        self.settings, self.device = settings, device
        self.student = Student(stream, settings.study, device)
        self.batch_size = self.student.batch_size()
        compat = settings.avalanche_compat
        weights = without_norms(self.student.net) if compat else self.student.weights
        self.anchor = Anchor(weights, settings.strength * (0.5 if compat else 1))
        self.path, self.total, self.held = Path(weights), Row(weights).all, False
        self.anchor.hold()
        changed = [*self.student.changed, self.path.omega.all]
        self._steps = fast.both_ways(self._learn_batch, changed)

    def learn(self, task: Task) -> Iterator[Tensor]:
        """Go through the task; then hold on to what led through it."""
        self.batch_size = self.student.batch_size(task)
        for images, units in self.student.lessons(task):
            yield self._steps[self.held](images, units)
        self._consolidate()
        self.held |= bool(task.classes)  # a task may be empty

    def _learn_batch(self, held: bool, images: Tensor, units: Tensor) -> Tensor:
        """A step whose slopes are noted before the penalty adds its own; Avalanche notes them after."""
        student, compat = self.student, self.settings.avalanche_compat
        loss = student.loss(student.logits(images), units)
        student.optimizer.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        if not compat:
            self.path.depart()
        if held:
            loss = loss.detach() + self.anchor.pull()
        if compat:
            self.path.depart()
        student.optimizer.step()
        self.path.arrive()
        return loss

    def _consolidate(self) -> None:
        """Omega += omega / (move^2 + xi) (eq. 5); then begin a new path from here."""
        settings, omega = self.settings, self.path.omega.all
        xi = _EPS if settings.avalanche_compat else settings.damping
        self.total += omega / (self.anchor.leave().square() + xi)
        self._hold()
        omega.zero_()

    def _hold(self) -> None:
        """Hold the weights here, by Omega: not below 0, or in Avalanche's form not above a bound."""
        if self.settings.avalanche_compat:
            torch.clamp(self.total, max=_MOST, out=self.anchor.importance.all)
        else:
            self.anchor.importance.all.copy_(self.total.clamp_(min=0))
        self.anchor.hold()

    def predict(self, images: Tensor, among: Sequence[int] | None = None) -> Tensor:
        """Name the class with the largest logit."""
        return self.student.predict(images, among)

    def state(self) -> dict[str, Any]:
        """What the student has learned, and how much each weight did for it."""
        return {**self.student.state(), "importance": self.total}

    def load_state(self, state: dict[str, Any]) -> None:
        """Go on from a state."""
        self.student.load_state(state)
        self.total.copy_(state["importance"])
        self.path.omega.all.zero_()
        self._hold()
        self.held = self.student.has_met
