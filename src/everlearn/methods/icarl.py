"""iCaRL (Rebuffi et al. 2017, arXiv 1611.07725): exemplars by herding, answers by their nearest mean.

The net has a sigmoid for each class. New classes learn their labels, old ones what the net told before.
What differs is in docs/methods/icarl.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits, normalize, one_hot

from everlearn.border import check_whole
from everlearn.memory import Buffer
from everlearn.memory.herded import Herded
from everlearn.nets import fast
from everlearn.nets.means import features, name_nearest
from everlearn.settings import setting
from everlearn.stream import Task
from everlearn.student import Student, Study


@dataclass(frozen=True)
class Settings:
    """What iCaRL can be told."""

    study: Study = Study()
    memory: int = setting(2000, "exemplars of all classes together (paper, section 4: 2,000)")
    recalled: int | None = setting(None, "exemplars a step; none: as many as new images")

    def __post_init__(self) -> None:
        """Check the memory."""
        check_whole(self.memory, "memory", 1, 10**9)
        if self.recalled is not None:
            check_whole(self.recalled, "recalled", 1, 10**6)


class ICaRL:
    """A net, a copy of it as it was before the current task, and exemplars."""

    def __init__(self, stream: Any, settings: Settings, device: str) -> None:
        """Start with random weights and no exemplar."""
        if stream.online:
            raise ValueError(
                "icarl chooses exemplars among images that it has learned from, and an online stream "
                "shows them once; use er or gdumb there"
            )
        self.settings, self.device = settings, device
        self.student, canvas = Student(stream, settings.study, device), stream.canvas
        self.batch_size, model = self.student.batch_size(), self.student.model
        self.buffer = Buffer(settings.memory, canvas.shape, canvas.bits, device)
        self.exemplars = Herded(self.buffer, len(model.classes), stream.seed, device)
        self.teacher = deepcopy(model.net).requires_grad_(False).eval()
        self.past = torch.zeros_like(model.met)
        self._counted = torch.ones_like(model.met) if settings.study.unmet else model.met
        self._means: tuple[Tensor, Tensor] | None = None
        self._step = fast.Step(self._learn_batch, self.student.changed)

    def learn(self, task: Task) -> Iterator[Tensor]:
        """Go through the task beside the exemplars; then choose exemplars of its classes."""
        new = self.student.batch_size(task)
        recalled = self.student.draw(task, self.exemplars.used, self.settings.recalled or new)
        self.batch_size = new + (recalled.shape[1] if len(recalled) else 0)
        self._set_past(task)
        for step, (images, units) in enumerate(self.student.lessons(task)):
            loss = self._step(images, units, *recalled[step : step + 1])
            self._means = None
            yield loss
        if len(task.train):
            first = self.student.model.classes.start
            self.exemplars.renew(task.train, task.train.labels - first, self._see)
        self.teacher.load_state_dict(self.student.net.state_dict())
        self._means = None

    def _set_past(self, task: Task) -> None:
        """Tell old classes from new ones; a class that comes back is new again."""
        model = self.student.model
        self.past.copy_(model.met)
        labels = torch.tensor(task.classes, dtype=torch.int64, device=self.device)
        self.past[model.unit(labels)] = False

    def _learn_batch(self, images: Tensor, units: Tensor, *recalled: Tensor) -> Tensor:
        """Binary cross-entropy: the sum over classes met, the mean over new images and exemplars."""
        images, units = self.buffer.join(images, units, *recalled)
        logits, targets = self.student.logits(images), one_hot(units, len(self.past)).float()
        if recalled:
            with torch.no_grad():
                before = fast.forward(self.teacher, images).sigmoid()
            targets = torch.where(self.past, before, targets)
        losses = binary_cross_entropy_with_logits(logits, targets, reduction="none")
        return fast.descend(self.student.optimizer, (losses * self._counted).sum(1).mean())

    def _see(self, images: Tensor) -> Tensor:
        """Features of length 1."""
        return normalize(features(self.student.net, images), dim=1)

    def predict(self, images: Tensor, among: Sequence[int] | None = None) -> Tensor:
        """Name the class whose exemplars have the nearest mean, by the net as it is now."""
        if not len(self.exemplars.used):
            return torch.full((len(images),), -1, device=self.device)
        if self._means is None:
            self._means = self.exemplars.means(self._see)
        return name_nearest(self._see(images), *self._means, self.student.model.classes, among)

    def state(self) -> dict[str, Any]:
        """What the student has learned, and the exemplars; after a task the teacher is the student."""
        return {
            **self.student.state(),
            "memory": self.buffer.state(),
            "choice": self.exemplars.state(),
        }

    def load_state(self, state: dict[str, Any]) -> None:
        """Go on from a state."""
        self.student.load_state(state)
        self.buffer.load_state(state["memory"])
        self.exemplars.load_state(state["choice"])
        self.teacher.load_state_dict(self.student.net.state_dict())
        self._means = None
