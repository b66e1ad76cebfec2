"""Points as pictures: an image of a point is one pixel with a channel for each of its numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from everlearn.philox import Floats
from everlearn.stream.task import Split


@dataclass(frozen=True)
class Plain:
    """What stands in for a canvas where images are numbers of any kind, given as they are."""

    channels: int
    size: int = 1
    dtype: str = "float32"
    bits: int = 32

    @property
    def shape(self) -> tuple[int, int, int]:
        """Channels, height and width of an image."""
        return self.channels, self.size, self.size


@dataclass(frozen=True, eq=False)
class Points:
    """Points as the pictures of a split, (rows, dimensions)."""

    points: NDArray[np.float32]

    def drawer(self, device: str) -> Callable[[Tensor], Tensor]:
        """Return a function from rows on the device to points there, (B, dimensions, 1, 1)."""
        placed = torch.from_numpy(self.points).to(device)[:, :, None, None]
        return lambda rows: placed[rows]


def split_of(labels: Sequence[int], points: Floats) -> Split:
    """Make a split of points (groups, rows, dimensions), a label for each group."""
    groups, rows, dimensions = points.shape
    each = np.repeat(np.array(labels, np.int64), rows)
    return Split(each, Points(points.reshape(groups * rows, dimensions).astype(np.float32)))
