"""Nearest class mean (Mensink et al. 2013, TPAMI 35 (11)) on frozen features.

A net learns the first task and is then frozen. A class is represented by the mean of the features of its
images. What differs is in docs/methods/nearest-mean.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from everlearn.core.settings import setting
from everlearn.core.validate import check_int
from everlearn.nets.nearest_mean import extract_features, nearest_class
from everlearn.stream import Task, TaskStream
from everlearn.training.captured_step import CapturedStep
from everlearn.training.train_settings import TrainSettings
from everlearn.training.trainer import Trainer


@dataclass(frozen=True)
class Settings:
    """Settings of the nearest class mean."""

    train: TrainSettings = TrainSettings()
    trained_tasks: int = setting(
        1, "number of first tasks that train the net before it is frozen; 0: it stays random"
    )

    def __post_init__(self) -> None:
        """Check when the net is frozen."""
        check_int(self.trained_tasks, "trained_tasks", 0, 10**9)


class NearestMean:
    """A classifier's features, with their sum and count for each class."""

    def __init__(self, stream: TaskStream, settings: Settings, device: str) -> None:
        """Start with random weights, which follow from the stream's seed, and no class."""
        if stream.online and settings.trained_tasks:
            raise ValueError(
                "nearest-mean learns from images and then averages them, and an online stream shows "
                "them once; give trained_tasks=0"
            )
        self.settings = settings
        self.device = device
        self.tasks = 0
        self.trainer = Trainer(stream, settings.train, device)
        self.batch_size = self.trainer.batch_size()
        self.classes = self.trainer.model.classes
        width: Any = self.trainer.net.width
        # In float64 a sum of many numbers hardly depends on their order.
        self.sums = torch.zeros((len(self.classes), width), dtype=torch.float64, device=device)
        self.counts = torch.zeros_like(self.sums[:, 0])
        self._step = CapturedStep(self.trainer.train_step, self.trainer.training_state)

    def learn(self, task: Task) -> Iterator[Tensor]:
        """Train the net on the first tasks; average the features of every task by class."""
        self.batch_size = self.trainer.batch_size(task)
        if self.tasks < self.settings.trained_tasks:
            for images, targets in self.trainer.training_batches(task):
                yield self._step(images, targets)
            for _ in self._average(task):
                pass
        else:
            yield from self._average(task)
        self.tasks += 1

    def _average(self, task: Task) -> Iterator[Tensor]:
        """Add the features of a task to the sums of its classes, batch by batch; the loss is 0."""
        labels = torch.tensor(task.classes, device=self.device)
        rows = labels - self.classes.start
        no_loss = torch.zeros((), device=self.device)
        for batch in task.batches(self.trainer.batch_size(), device=self.device):
            # A matrix product, because index_add_ adds in another order each time on a GPU.
            members = (labels[:, None] == batch.labels).double()
            self.sums[rows] += members @ extract_features(self.trainer.net, batch.images).double()
            self.counts[rows] += members.sum(1)
            yield no_loss

    def predict(self, images: Tensor, among: Sequence[int] | None = None) -> Tensor:
        """Return the class of the nearest mean for each image; -1 before there is one."""
        means = (self.sums / self.counts.clamp(min=1)[:, None]).float()
        features = extract_features(self.trainer.net, images)
        return nearest_class(features, means, self.counts > 0, self.classes, among)

    def state(self) -> dict[str, Any]:
        """Return the net, sums and counts and, until the net is frozen, the optimizer's state."""
        frozen = self.tasks >= self.settings.trained_tasks
        net = {**self.trainer.model.state(), "optimizer": []} if frozen else self.trainer.state()
        return {**net, "means": {"sums": self.sums, "counts": self.counts}, "tasks": self.tasks}

    def load_state(self, state: dict[str, Any]) -> None:
        """Continue from a state."""
        self.trainer.load_state(state)
        self.sums.copy_(state["means"]["sums"])
        self.counts.copy_(state["means"]["counts"])
        self.tasks = state["tasks"]
