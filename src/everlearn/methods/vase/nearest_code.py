"""Classification by the nearest class mean of codes; it leaves the net alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from everlearn.nets.nearest_mean import nearest_class
from everlearn.stream import Task

_MAX_IMAGES = 10_000
_CHUNK = 2048


class NearestCode:
    """Mean codes of every class, from the last task that contained it.

    Args:
        classes: the ids of all classes.
    """

    def __init__(self, classes: range, latent_dim: int, device: str) -> None:
        """Start without a class."""
        self.classes = classes
        self.device = device
        self.sums = torch.zeros((len(classes), latent_dim), dtype=torch.float64, device=device)
        self.counts = torch.zeros_like(self.sums[:, 0])

    def update(self, task: Task, encode: Callable[[Tensor], Tensor]) -> None:
        """Replace the means of a task's classes by those of its first images in training order."""
        labels = torch.tensor(task.classes, dtype=torch.int64, device=self.device)
        rows = labels - self.classes.start
        order = task.order()[:_MAX_IMAGES]
        self.sums[rows] = 0.0
        self.counts[rows] = 0.0
        for start in range(0, len(order), _CHUNK):
            batch = task.train.batch(order[start : start + _CHUNK], self.device)
            # A product, because index_add_ on a GPU adds in another order each time.
            members = (labels[:, None] == batch.labels).double()
            self.sums[rows] += members @ encode(batch.images).double()
            self.counts[rows] += members.sum(1)

    def predict(self, codes: Tensor, among: Sequence[int] | None = None) -> Tensor:
        """Return the class of the nearest mean; -1 before there is one."""
        means = (self.sums / self.counts.clamp(min=1)[:, None]).float()
        return nearest_class(codes, means, self.counts > 0, self.classes, among)

    def state(self) -> dict[str, Tensor]:
        """Return sums and counts."""
        return {"sums": self.sums, "counts": self.counts}

    def load_state(self, state: dict[str, Any]) -> None:
        """Restore sums and counts."""
        self.sums.copy_(state["sums"])
        self.counts.copy_(state["counts"])
