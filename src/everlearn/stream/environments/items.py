"""Items of a data set, scaled to a canvas; read once, and copied once to every device."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from everlearn.stream.datasets.files import Arrays, Bytes, Ints
from everlearn.stream.datasets.sources import load

SIDE = 28
CANVAS = 64
_MAX_OFFSET = 35  # pixels at size 64; Achille et al. 2018


class Items(NamedTuple):
    """The items of a data set for canvases of one size: 28 x 28 on 64 x 64, smaller in proportion."""

    source: str
    folder: Path
    size: int

    @property
    def side(self) -> int:
        """The height and width of an item."""
        return SIDE * self.size // CANVAS

    @property
    def max_offset(self) -> int:
        """The largest offset of a moving item, in pixels; the smallest is 0."""
        return min(self.size - self.side, _MAX_OFFSET)

    @property
    def centre_offset(self) -> int:
        """The offset of a centred item, in pixels."""
        return (self.size - self.side) // 2

    @property
    def labels(self) -> Ints:
        """The class of every item, (n,)."""
        return _load(self).labels

    @property
    def is_test(self) -> NDArray[np.bool_]:
        """Which items are official test images, (n,)."""
        is_test = _load(self).test
        assert is_test is not None  # checked by _load
        return is_test


def _load(items: Items) -> Arrays:
    """Read the data set; raise where its images do not suit environments."""
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
def levels_on(items: Items, device: str) -> Tensor:
    """Return the 8-bit levels of all items on a device, (n, side * side), shared by all tasks."""
    return torch.from_numpy(_levels(items).reshape(-1, items.side**2)).to(device)


@lru_cache(maxsize=4)
def _levels(items: Items) -> Bytes:
    """Return all items as 8-bit levels, (n, side, side)."""
    return downsample(np.asarray(_load(items).images)[:, 0], items.side)


def downsample(images: Bytes, side: int) -> Bytes:
    """Shrink square images (n, H, H) to a side that divides H, by means rounded to the nearest level."""
    factor = images.shape[-1] // side
    if factor == 1:
        return images
    blocks = images.reshape(len(images), side, factor, side, factor)
    total = blocks.sum(axis=(2, 4), dtype=np.uint16)
    means: Bytes = ((total + factor**2 // 2) // factor**2).astype(np.uint8)
    return means
