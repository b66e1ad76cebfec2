"""Photos as the pictures of a split: taken from arrays or files, brought to a canvas's size."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import interpolate

from everlearn.render.canvas import Canvas
from everlearn.stream.arrays.files import Images, Ints
from everlearn.stream.points import Plain
from everlearn.stream.shades import shader


@dataclass(frozen=True, eq=False)
class Photos:
    """Row r shows images[rows[r]], with the size, channels and dtype of a canvas."""

    images: Images
    rows: Ints
    canvas: Canvas | Plain

    def drawer(self, device: str) -> Callable[[Tensor], Tensor]:
        """Return a function from rows on the device to images there.

        Images in memory are put on a GPU once; those in files are read for every batch.
        """
        shade = shader(self.canvas.dtype, device)
        if device == "cpu" or not isinstance(self.images, np.ndarray):
            return lambda rows: shade(self._widen(self._take(rows.cpu().numpy()).to(device)))
        table = self._take(np.arange(len(self.rows))).to(device)
        return lambda rows: shade(self._widen(table[rows]))

    def _take(self, rows: Ints) -> Tensor:
        """Rows as bytes (B, C, size, size), still grey where the data are."""
        images = torch.from_numpy(self.images[self.rows[rows]])
        if images.shape[1] > self.canvas.channels:
            images = images.float().mean(1, keepdim=True).round().to(torch.uint8)
        return resize(images, self.canvas.size)

    def _widen(self, images: Tensor) -> Tensor:
        return images.expand(-1, self.canvas.channels, -1, -1).contiguous()


def resize(images: Tensor, size: int) -> Tensor:
    """Resize bytes (B, C, H, W) to a square, bilinear and smoothed when it gets smaller.

    In bytes, so that an image does not depend on the batch it is in.
    """
    if images.shape[2:] == (size, size) or len(images) == 0:
        return images.reshape(-1, images.shape[1], size, size)
    return interpolate(images, (size, size), mode="bilinear", antialias=True)
