"""Items of a data set, in the size that goes with a canvas; read once, and once on every device."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from everlearn.stream.arrays.files import Arrays, Bytes, Ints
from everlearn.stream.arrays.sources import load

SIDE = 28
CANVAS = 64
_FARTHEST = 35  # of the paper's offsets, at 64 pixels


class Items(NamedTuple):
    """The items of a data set for canvases of one size: 28 x 28 on 64 x 64, less on a smaller one."""

    source: str
    folder: Path
    size: int

    @property
    def side(self) -> int:
        """Height and width of an item."""
        return SIDE * self.size // CANVAS

    @property
    def farthest(self) -> int:
        """The largest offset of an item that moves; the smallest is 0."""
        return min(self.size - self.side, _FARTHEST)

    @property
    def middle(self) -> int:
        """The offset of an item that does not move."""
        return (self.size - self.side) // 2

    @property
    def labels(self) -> Ints:
        """The class of every item, (n,)."""
        return _load(self).labels

    @property
    def tests(self) -> NDArray[np.bool_]:
        """Which items are official test images, (n,)."""
        tests = _load(self).test
        assert tests is not None  # checked when they were loaded
        return tests


def _load(items: Items) -> Arrays:
    """The data set as it is; raise where it has other images than environments are made of."""
    arrays = load(items.source, items.folder)
    if arrays.images.shape[1:] != (1, SIDE, SIDE):
        raise ValueError(
            f"environments are made of grey images of {SIDE} x {SIDE}, found {arrays.images.shape[1:]} "
            f"of {items.source} in {items.folder}"
        )
    if arrays.test is None or arrays.test.all() or not arrays.test.any():
        raise ValueError(f"{items.source} in {items.folder} needs training and test images")
    return arrays


@lru_cache(maxsize=8)
def place(items: Items, device: str) -> Tensor:
    """The levels of all items on a device, (n, side * side): all tasks share them."""
    return torch.from_numpy(_levels(items).reshape(-1, items.side**2)).to(device)


@lru_cache(maxsize=4)
def _levels(items: Items) -> Bytes:
    """All items as levels, (n, side, side)."""
    return pool(np.asarray(_load(items).images)[:, 0], items.side)


def pool(images: Bytes, side: int) -> Bytes:
    """Shrink square images (n, H, H) to a side that divides theirs: means, to the nearest level."""
    count, across = len(images), images.shape[-1] // side
    if across == 1:
        return images
    cut = images.reshape(count, side, across, side, across)
    total = cut.sum(axis=(2, 4), dtype=np.uint16)
    means: Bytes = ((total + across**2 // 2) // across**2).astype(np.uint8)
    return means
