"""Nearest class mean (Mensink et al. 2013, TPAMI 35 (11)) of features that are frozen.

A net learns the first task and is then left as it is. Every class is the mean of what the net sees in
its images. What differs is in docs/methods/nearest-mean.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from everlearn.border import check_whole
from everlearn.nets import fast
from everlearn.nets.means import features, name_nearest
from everlearn.settings import setting
from everlearn.stream import Task
from everlearn.student import Student, Study


@dataclass(frozen=True)
class Settings:
    """What the nearest class mean can be told."""

    study: Study = Study()
    trained: int = setting(1, "how many first tasks the net learns before it is frozen; 0: none")

    def __post_init__(self) -> None:
        """Check when the net is frozen."""
        check_whole(self.trained, "trained", 0, 10**9)


class NearestMean:
    """A net, and the sum of its features over all images of each class."""

    def __init__(self, stream: Any, settings: Settings, device: str) -> None:
        """Start with random weights and no class."""
        if stream.online and settings.trained:
            raise ValueError(
                "nearest-mean learns from images and then averages them, and an online stream shows "
                "them once; give trained=0"
            )
        self.settings, self.device = settings, device
        self.student, self.tasks = Student(stream, settings.study, device), 0
        self.batch_size, self.classes = self.student.batch_size(), self.student.model.classes
        width: Any = self.student.net.width
        # In float64 a sum of many numbers hardly depends on their order.
        self.sums = torch.zeros((len(self.classes), width), dtype=torch.float64, device=device)
        self.counts = torch.zeros_like(self.sums[:, 0])
        self._step = fast.Step(self.student.descend, self.student.changed)

    def learn(self, task: Task) -> Iterator[Tensor]:
        """Train on the first tasks; take the features of every task into the means of its classes."""
        self.batch_size = self.student.batch_size(task)
        if self.tasks < self.settings.trained:
            for images, units in self.student.lessons(task):
                yield self._step(images, units)
            for _ in self._average(task):
                pass
        else:
            yield from self._average(task)
        self.tasks += 1

    def _average(self, task: Task) -> Iterator[Tensor]:
        """Add what the net sees to sums and counts, batch by batch; there is no loss."""
        labels = torch.tensor(task.classes, device=self.device)
        rows, none = labels - self.classes.start, torch.zeros((), device=self.device)
        for batch in task.batches(self.student.batch_size(), device=self.device):
            # A product, not index_add_, which on a GPU adds in another order each time.
            members = (labels[:, None] == batch.labels).double()
            self.sums[rows] += members @ features(self.student.net, batch.images).double()
            self.counts[rows] += members.sum(1)
            yield none

    def predict(self, images: Tensor, among: Sequence[int] | None = None) -> Tensor:
        """Name the class of the nearest mean; -1 before there is one."""
        means = (self.sums / self.counts.clamp(min=1)[:, None]).float()
        seen = features(self.student.net, images)
        return name_nearest(seen, means, self.counts > 0, self.classes, among)

    def state(self) -> dict[str, Any]:
        """The net, the means as sums and counts and, until the net is frozen, its optimiser."""
        student, frozen = self.student, self.tasks >= self.settings.trained
        net = {**student.model.state(), "optimizer": []} if frozen else student.state()
        return {**net, "means": {"sums": self.sums, "counts": self.counts}, "tasks": self.tasks}

    def load_state(self, state: dict[str, Any]) -> None:
        """Go on from a state."""
        self.student.load_state(state)
        self.sums.copy_(state["means"]["sums"])
        self.counts.copy_(state["means"]["counts"])
        self.tasks = state["tasks"]
