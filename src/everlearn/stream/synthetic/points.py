"""Points as images: one pixel, with one channel per dimension."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from everlearn.core.random import Floats
from everlearn.stream.task import Split


@dataclass(frozen=True)
class FeatureCanvas:
    """The format of inputs that are features rather than pixels: points and latents."""

    channels: int
    size: int = 1
    dtype: str = "float32"
    bits: int = 32

    @property
    def shape(self) -> tuple[int, int, int]:
        """The channels, height and width of an input."""
        return self.channels, self.size, self.size


@dataclass(frozen=True, eq=False)
class PointImages:
    """The points of a split, (rows, dimensions), as images."""

    points: NDArray[np.float32]

    def loader(self, device: str) -> Callable[[Tensor], Tensor]:
        """Return a function from row numbers to points (B, dimensions, 1, 1), both on the device."""
        points = torch.from_numpy(self.points).to(device)[:, :, None, None]
        return lambda rows: points[rows]


def points_split(labels: Sequence[int], points: Floats) -> Split:
    """Make a split of points (groups, rows, dimensions) with one label per group."""
    groups, rows, dimensions = points.shape
    each = np.repeat(np.array(labels, np.int64), rows)
    return Split(each, PointImages(points.reshape(groups * rows, dimensions).astype(np.float32)))
