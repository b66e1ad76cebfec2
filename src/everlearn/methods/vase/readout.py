"""The class of an image by its code: the nearest mean of the codes of each class. It moves nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from everlearn.nets.means import name_nearest
from everlearn.stream import Task

_IMAGES, _AT_ONCE = 10_000, 2048


class Readout:
    """Means of codes, those of the last task that showed a class.

    Args:
        classes: the ids of all classes.
        z: numbers of a code.
    """

    def __init__(self, classes: range, z: int, device: str) -> None:
        """Start without a class."""
        self.classes, self.device = classes, device
        self.sums = torch.zeros((len(classes), z), dtype=torch.float64, device=device)
        self.counts = torch.zeros_like(self.sums[:, 0])

    def look(self, task: Task, encode: Callable[[Tensor], Tensor]) -> None:
        """Average the codes of some images of a task anew, the first ones in their training order."""
        labels = torch.tensor(task.classes, dtype=torch.int64, device=self.device)
        rows, order = labels - self.classes.start, task.order()[:_IMAGES]
        self.sums[rows], self.counts[rows] = 0.0, 0.0
        for start in range(0, len(order), _AT_ONCE):
            batch = task.train.batch(order[start : start + _AT_ONCE], self.device)
            # A product, not index_add_, which on a GPU adds in another order each time.
            members = (labels[:, None] == batch.labels).double()
            self.sums[rows] += members @ encode(batch.images).double()
            self.counts[rows] += members.sum(1)

    def name(self, codes: Tensor, among: Sequence[int] | None = None) -> Tensor:
        """Name the class of the nearest mean; -1 before there is one."""
        means = (self.sums / self.counts.clamp(min=1)[:, None]).float()
        return name_nearest(codes, means, self.counts > 0, self.classes, among)

    def state(self) -> dict[str, Tensor]:
        """Sums and counts."""
        return {"sums": self.sums, "counts": self.counts}

    def load(self, state: dict[str, Any]) -> None:
        """Go on from what was kept."""
        self.sums.copy_(state["sums"])
        self.counts.copy_(state["counts"])
